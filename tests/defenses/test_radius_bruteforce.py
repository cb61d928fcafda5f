"""Every attack within the radius is tried against the real inference code: none may change the answer.

Next to it, how often an attack with one group more really does: the tightness of the radius, printed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, MajorityVoting
from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.decoding.plan import decoding_plan
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.voting.plan import voting_plan
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.errors import QuorumError
from robustrag_integrations.passages import Passage, PassageGroup
from robustrag_integrations.plans.drivers import run
from robustrag_integrations.plans.performers import DecodingPerformer, TextPerformer
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel

FAILS = "!fails"


def groups_of(texts: Sequence[str]) -> list[PassageGroup]:
    return [PassageGroup(i, (Passage(t, id=str(i)),)) for i, t in enumerate(texts)]


def split(text: str) -> set[str]:
    return set(text.split())


class World:
    """Counts attacks and what they did."""

    def __init__(self) -> None:
        self.attacks = 0
        self.worlds = 0
        self.tight = 0
        self.loose = 0

    def report(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        beyond = self.tight + self.loose
        with capsys.disabled():
            print(
                f"\n  {name}: {self.worlds} worlds, {self.attacks} attacks within the radius, 0 violations; "
                f"an attack exists at radius + 1 in {self.tight} of {beyond} worlds ({self.tight / beyond:.1%})"
            )


def substitutions(observed: Sequence[str], r: int, moves: Sequence[str]) -> Iterator[list[str]]:
    """Every replacement of r groups by moves (a group may also be replaced by what it was)."""
    for replaced in itertools.combinations(range(len(observed)), r):
        for said in itertools.product(moves, repeat=r):
            attacked = list(observed)
            for i, text in zip(replaced, said, strict=True):
                attacked[i] = text
            yield attacked


def explore(world: World, observed: Sequence[str], moves: Sequence[str], answer, cap: int) -> None:
    """Try all attacks within the radius of `answer(observed)`, and look for one at radius + 1."""
    try:
        seen: RobustAnswer = answer(observed)
    except QuorumError:
        return
    world.worlds += 1
    for r in range(1, min(seen.radius, cap) + 1):
        for attacked in substitutions(observed, r, moves):
            world.attacks += 1
            changed = answer(attacked)
            assert changed.text == seen.text, (observed, attacked, r, seen.radius)
    beyond = seen.radius + 1
    if beyond <= min(cap, len(observed)):
        found = any(outcome(answer, a) != seen.text for a in substitutions(observed, beyond, moves))
        world.tight += found
        world.loose += not found


def outcome(answer, texts: Sequence[str]) -> str | None:
    try:
        return answer(texts).text
    except QuorumError:
        return None


def test_no_keyword_attack_within_the_radius_changes_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    world, rng = World(), random.Random(1)
    moves = ["a", "b", "a b", "a b c", "x", "c x", "I don't know", FAILS]
    said = ["a"] * 9 + ["a b"] * 3 + ["b", "c", "a c", "I don't know", FAILS]
    for _ in range(150):
        m, alpha, beta = rng.choice([4, 6, 7, 8, 9]), rng.choice([0.3, 0.4, 0.5, 0.7]), rng.choice([2, 3, 4, 9])
        settings = KeywordSettings.of(
            alpha=alpha, beta=beta, extractor=split, prompts=BARE, quorum=rng.choice([0.0, 0.3, 0.5])
        )
        model = ScriptedModel(lambda text: None if text == FAILS else text)

        def answer(texts: Sequence[str], settings=settings, model=model) -> RobustAnswer:
            return run(keyword_plan("q", groups_of(texts), settings), TextPerformer(model))

        explore(world, [rng.choice(said) for _ in range(m)], moves, answer, cap=2)
    assert world.attacks > 10_000
    world.report("keyword", capsys)


def test_no_vote_attack_within_the_radius_changes_the_winner(capsys: pytest.CaptureFixture[str]) -> None:
    world, rng = World(), random.Random(2)
    choices = ["red", "green", "blue"]
    moves = ["A", "B", "C", "I don't know", FAILS]
    model = ScriptedModel(lambda text: None if text == FAILS else text)
    for _ in range(150):
        m = rng.choice([3, 4, 5, 6, 7, 8])
        settings = VotingSettings.of(prompts=BARE_CHOICES, quorum=rng.choice([0.0, 0.5]))

        def answer(texts: Sequence[str], settings=settings) -> RobustAnswer:
            return run(voting_plan("q", groups_of(texts), choices, settings), TextPerformer(model))

        explore(world, [rng.choice("AAAAAABCI") if rng.random() < 0.95 else FAILS for _ in range(m)], moves, answer, 3)
    assert world.attacks > 10_000
    assert world.tight / (world.tight + world.loose) > 0.99
    world.report("voting", capsys)


VOCABULARY = 4  # token 0 ends the text


def random_row(rng: np.random.Generator) -> tuple[float, ...]:
    row = rng.dirichlet(np.full(VOCABULARY, rng.choice([0.1, 0.5, 2.0])))
    return tuple(float(p) for p in row)


@pytest.mark.parametrize("steps", [1, 2])
def test_no_decoding_attack_within_the_radius_changes_the_text(steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    world, rng = World(), np.random.default_rng(3 + steps)
    vertices = [tuple(float(i == t) for i in range(VOCABULARY)) for t in range(VOCABULARY)]
    for _ in range(100 if steps == 1 else 25):
        m = int(rng.integers(3, 6))
        shared = {prefix: random_row(rng) for prefix in prefixes(steps)}  # so that groups tend to agree
        benign = {
            (f"g{j}", prefix): row if rng.random() < 0.75 else random_row(rng)
            for j in range(m)
            for prefix, row in shared.items()
        }
        silent = {f"g{j}" for j in range(m) if rng.random() < 0.1}
        nothing = {prefix: random_row(rng) if rng.random() < 0.5 else row for prefix, row in shared.items()}
        points = vertices + [random_row(rng) for _ in range(3 if steps == 1 else 0)]
        scripts = list(itertools.product(points, repeat=steps))
        moves = ["silent", *(f"attack {i}" for i in range(len(scripts)))]

        def distribution(text, prefix, benign=benign, silent=silent, nothing=nothing, scripts=scripts):
            if text == "":
                return nothing[prefix]
            if text == "silent" or text in silent:
                return None if prefix == () else vertices[0]
            if text.startswith("attack "):
                return scripts[int(text.split()[1])][len(prefix)]
            return benign[text, prefix]

        settings = DecodingSettings.of(
            eta=float(rng.choice([0, 0, 0.5, 1, 2, 3])), max_new_tokens=steps, prompts=BARE, gamma=0.99, slack=0.0
        )
        model = ScriptedDecodingModel(distribution)

        def answer(texts: Sequence[str], settings=settings, model=model) -> RobustAnswer:
            return run(decoding_plan("q", groups_of(texts), settings, model.codec), DecodingPerformer(model))

        explore(world, [f"g{j}" for j in range(m)], moves, answer, cap=2)
    assert world.attacks > (5_000 if steps == 1 else 2_000)
    world.report(f"decoding, {steps} step(s)", capsys)


def prefixes(steps: int) -> list[tuple[int, ...]]:
    return [p for length in range(steps) for p in itertools.product(range(VOCABULARY), repeat=length)]


def test_the_quorum_bounds_the_radius_since_attackers_can_fail_on_purpose() -> None:
    model = ScriptedModel(lambda text: None if text == FAILS else text)
    strict = KeywordAggregation(model, alpha=0.7, beta=9, extractor=split, prompts=BARE, quorum=1.0)
    loose = KeywordAggregation(model, alpha=0.7, beta=9, extractor=split, prompts=BARE, quorum=0.5)
    texts = ["a"] * 10
    assert loose.answer("q", texts).radius == 3
    assert strict.answer("q", texts).radius == 0
    with pytest.raises(QuorumError, match="9 of 10"):
        strict.answer("q", [FAILS, *texts[1:]])


def test_a_vote_won_by_the_tie_break_has_radius_zero() -> None:
    voting = MajorityVoting(CallableModel(lambda p: p[0]), prompts=BARE_CHOICES)
    tied = voting.answer("q", ["B", "A"], choices=["x", "y"])
    assert (tied.text, tied.radius) == ("x", 0)
    ahead = voting.answer("q", ["A", "A", "A", "B"], choices=["x", "y"])
    assert (ahead.text, ahead.radius) == ("x", 1)  # 2 against 2 is still won by the first option
    behind = voting.answer("q", ["B", "B", "B", "A"], choices=["x", "y"])
    assert (behind.text, behind.radius) == ("y", 0)
