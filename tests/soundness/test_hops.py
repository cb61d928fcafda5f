"""The theorem of hops, tried: within the radius no set of origins, lying in all hops at once, changes an answer.

Small worlds, and every kind of lie of every set of origins against the real inference code.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from robustrag_integrations import ConsensusAggregation, KeywordAggregation, Passage, RobustAnswer
from robustrag_integrations.defenses import hops
from robustrag_integrations.defenses.hops import MultiHop, MultiHopAnswer, answer_key
from tests.helpers.scripted import BARE, ScriptedModel
from tests.helpers.worlds import Memo

MOVES = ["xylo", "Yoke", "yoke xylo", "zulu", "I don't know", "fail"]
TEMPLATES = (("q", "about {1}"), ("q", "Who is {1}?"), ("q", "about {1}", "of {2} by {1}"), ("q", "about {0} and {1}"))
MOST_ATTACKS = 300  # of one world; more are drawn among

Origin = str | None
Lies = dict[tuple[Origin, int], str]


@dataclass
class HopWorld:
    """Origins that say something about every question, and a defence.

    A document that is "fail" makes its group's call fail. `counts` is what `ask` does to an answer: nothing.
    """

    rng: random.Random
    defense: Any
    templates: tuple[str, ...]
    origins: tuple[Origin, ...]
    grouped: bool = True
    answers: dict[Any, RobustAnswer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = self.rng
        truth = Memo(lambda question: rng.choice(["xylo", "yoke", "xylo yoke"]))
        spelled = {
            "xylo": ["xylo", "Xylo", "xylo.", "xylo"],
            "yoke": ["Yoke", "yoke"],
            "xylo yoke": ["Xylo Yoke", "xylo yoke", "the xylo  yoke."],
        }
        other = ["xylo", "yoke", "zulu", "yoke xylo", "I don't know", "fail", ""]
        self.told = Memo(
            lambda place: rng.choice(spelled[truth[place[1]]]) if rng.random() < 0.85 else rng.choice(other)
        )
        self.found = Memo(lambda question: [o for o in self.origins if rng.random() < 0.9] or list(self.origins))
        self.pieces = Memo(lambda place: rng.choice([1, 1, 1, 2]))  # a document in two passages

    @classmethod
    def of(cls, seed: str) -> HopWorld:
        rng = random.Random(seed)
        model = ScriptedModel(lambda text: None if "fail" in text else text.split("\n\n")[0])
        rules: dict[str, Any] = {"prompts": BARE, "quorum": rng.choice([0.0, 0.3]), "min_radius": rng.choice([0, 0, 1])}
        defense = rng.choice(
            [
                lambda: ConsensusAggregation(model, min_support=rng.choice([1, 2]), **rules),
                lambda: KeywordAggregation(model, alpha=rng.choice([0.3, 0.5]), beta=rng.choice([2, 4]), **rules),
                lambda: KeywordAggregation(model, alpha=0.5, beta=9, final="never", **rules),
            ]
        )()
        names: list[Origin] = [*"abcdef"[: rng.choice([3, 4, 5, 6])], *rng.choice([[], [], [None]])]
        return cls(rng, defense, rng.choice(TEMPLATES), tuple(names))

    def run(self, lies: Lies) -> MultiHopAnswer:
        """The whole run, in which `lies` has what an origin says in the hop of a number."""
        number = itertools.count()

        def ask(question: str) -> RobustAnswer:
            hop = next(number)
            texts = tuple((o, lies.get((o, hop), self.told[o, question])) for o in self.found[question])
            if (question, texts) not in self.answers:
                passages = [
                    Passage(text, source=origin)
                    for origin, text in texts
                    for _ in range(self.pieces[origin, question] if self.grouped else 2)
                ]
                self.answers[question, texts] = self.defense.answer(question, passages)
            return self.answers[question, texts]

        return MultiHop(ask, self.templates).answer("q")

    def attacks(self, size: int) -> Iterator[Lies]:
        """Every set of so many origins, with every lie in every hop; a sample where these are too many."""
        places = len(self.templates) * size
        sets = list(itertools.combinations(self.origins, size))
        if len(sets) * len(MOVES) ** places <= MOST_ATTACKS:
            chosen: Any = itertools.product(sets, itertools.product(MOVES, repeat=places))
        else:
            draw = random.Random(repr(self.origins))
            alike = [(liars, (move,) * places) for liars in sets for move in MOVES]
            drawn = ((draw.choice(sets), tuple(draw.choices(MOVES, k=places))) for _ in range(MOST_ATTACKS))
            chosen = itertools.chain(alike, drawn)
        for liars, moves in chosen:
            spots = itertools.product(liars, range(len(self.templates)))
            yield dict(zip(spots, moves, strict=True))

    def stays(self, clean: MultiHopAnswer, lies: Lies) -> bool:
        attacked = self.run(lies)
        withheld = any("withheld from the next prompt" in warning for warning in attacked.warnings)
        if attacked.abstained and (withheld or self.defense.rules.min_radius):
            return True
        same = [h.question for h in attacked.hops] == [h.question for h in clean.hops]
        return same and answer_key(attacked.hops[-1].answer) == answer_key(clean.hops[-1].answer)


@dataclass
class Found:
    attacks: int = 0
    certified: int = 0  # runs of several hops with a radius
    violations: list[tuple[str, Lies]] = field(default_factory=list)
    tight: list[bool] = field(default_factory=list)


def tried(seeds: range, *, until: int = 10**9, make: Callable[[str], HopWorld] = HopWorld.of) -> Found:
    found = Found()
    for seed in seeds:
        world = make(f"defenses/hops/{seed}")
        clean = world.run({})
        for size in range(1, clean.radius + 1):
            for lies in world.attacks(size):
                found.attacks += 1
                if not world.stays(clean, lies):
                    found.violations.append((f"defenses/hops/{seed}", lies))
                    break
        if clean.radius and len(clean.hops) > 1:
            found.certified += 1
            if clean.radius < len(world.origins) and not world.defense.rules.min_radius:
                broken = (not world.stays(clean, lies) for lies in world.attacks(clean.radius + 1))
                found.tight.append(any(broken))
        if len(found.violations) >= until:
            break
    return found


def test_no_lies_of_r_origins_in_all_hops_at_once_change_the_answer() -> None:
    found = tried(range(100))
    assert not found.violations
    assert found.attacks > 4_000
    assert found.certified >= 20
    assert sum(found.tight) > len(found.tight) / 2


def form_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "answer_key", lambda answer: answer.text)


def the_largest_radius_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "min", max, raising=False)


def no_hop_needs_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "_is_by_origin", lambda answer: True)


def by_passage(seed: str) -> HopWorld:
    world = HopWorld.of(seed)
    world.grouped = False
    world.defense = ConsensusAggregation(world.defense.model, prompts=BARE, group_by="passage")
    return world


@pytest.mark.parametrize(
    ("planted", "make"),
    [(form_goes_on, HopWorld.of), (the_largest_radius_counts, HopWorld.of), (no_hop_needs_origins, by_passage)],
    ids=["the form goes on", "the largest radius", "groups that are not origins"],
)
def test_the_brute_force_would_notice(planted: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch)
    assert tried(range(90), until=1, make=make).violations
