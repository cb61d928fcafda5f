"""What a radius promises when the model samples, by brute force on the real defences (proof: docs/internals/proofs.md).

Where every source draws for itself, no replacement of `radius` sources changes this run's answer. Where all sources
draw from one stream, or an answer is chosen among several runs by its radius, it is broken.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from robustrag_integrations import KeywordAggregation, MajorityVoting
from robustrag_integrations._util.errors import QuorumError
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.models.base import Response, Role, Until
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedModel, context_of, split

OPTIONS = ["Lyon", "Paris", "Rome"]
SAMPLES = Repeats("samples", "temperature 1")
LETTERS = [*"ABC", "I don't know", None]
WORDS = ["lyon", "paris", "rome", "lyon paris rome", "I don't know", None]


@dataclass(frozen=True)
class Planted:
    """What an attacker makes of a source: its reply, and how often drawing it advances the stream."""

    says: str | None
    draws: int


class SamplingModel(ScriptedModel):
    """Each honest source draws its reply from `replies`; the final call echoes what it is asked.

    Args:
        replies: what honest sources draw from.
        seed: of this run.
        shared: whether all sources draw from one stream, in the order of the sources, or each for itself.
        planted: per passage text, what the attacker made of it.
    """

    repeats = SAMPLES

    def __init__(self, replies: Sequence[str], seed: int, *, shared: bool, planted: dict[str, Planted]) -> None:
        super().__init__({})
        self._replies, self._seed, self._shared, self._planted = replies, seed, shared, planted

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        if role == "final":
            return [Response(p.text) for p in prompts]
        stream = random.Random(self._seed)
        return [self._draw(place, context_of(p), stream) for place, p in enumerate(prompts)]

    def _draw(self, place: int, text: str, stream: random.Random) -> Response:
        source = stream if self._shared else random.Random(f"{self._seed}/{place}")
        if (planted := self._planted.get(text)) is not None:
            for _ in range(planted.draws):
                source.random()
            return Response(planted.says, error=None if planted.says is not None else "failed on purpose")
        return Response(self._replies[int(source.random() * len(self._replies))])


Make = Callable[[ScriptedModel], TextDefense]


def voting(model: ScriptedModel) -> TextDefense:
    return MajorityVoting(model, prompts=BARE_CHOICES, quorum=0.3)


def keyword(model: ScriptedModel) -> TextDefense:
    return KeywordAggregation(model, alpha=0.4, beta=9, extractor=split, prompts=BARE, quorum=0.3)


METHODS = {
    "voting": (voting, OPTIONS, LETTERS, ["B", "B", "B", "A"]),
    "keyword": (keyword, None, WORDS, ["paris", "paris", "paris", "lyon"]),
}
methods = pytest.mark.parametrize(("make", "choices", "moves", "honest"), METHODS.values(), ids=METHODS)


def answered(make: Make, choices: list[str] | None, model: ScriptedModel, texts: list[str]) -> RobustAnswer | None:
    try:
        return make(model).answer("q", texts, choices=choices)
    except QuorumError:
        return None


def attacks(count: int, size: int, moves: Sequence[str | None], rng: random.Random) -> Iterator[dict[int, Planted]]:
    """Every set of `size` sources, with a few combinations of replies and draws each."""
    for places in itertools.combinations(range(count), size):
        for _ in range(4):
            yield {place: Planted(rng.choice(moves), rng.randrange(4)) for place in places}


def attacked(
    make: Make, choices: list[str] | None, moves: Sequence[str | None], honest: list[str], *, shared: bool
) -> tuple[int, int]:
    """How many attacks within the radius were tried, and how many of them changed the answer of that very run."""
    tried = changed = 0
    for seed in range(60):
        rng = random.Random(f"promises/{make.__name__}/{seed}")
        count = rng.choice([4, 5, 6, 7, 8])
        texts = [f"p{i}" for i in range(count)]
        clean = answered(make, choices, SamplingModel(honest, seed, shared=shared, planted={}), texts)
        assert clean is not None
        for size in range(1, min(clean.radius, 2) + 1):
            for attack in attacks(count, size, moves, rng):
                planted = {f"evil{place}": move for place, move in attack.items()}
                lied = [f"evil{i}" if i in attack else text for i, text in enumerate(texts)]
                model = SamplingModel(honest, seed, shared=shared, planted=planted)
                found = answered(make, choices, model, lied)
                tried += 1
                changed += found is None or found.text != clean.text
    return tried, changed


@methods
def test_where_every_source_draws_for_itself_no_attack_within_the_radius_changes_this_run(
    make, choices, moves, honest, capsys
) -> None:
    tried, changed = attacked(make, choices, moves, honest, shared=False)
    with capsys.disabled():
        print(f"\n  {make.__name__}, own draws: {changed} of {tried} attacks within the radius changed the answer")
    assert changed == 0
    assert tried >= 1000


@methods
def test_one_stream_that_all_sources_draw_from_breaks_the_promise(make, choices, moves, honest, capsys) -> None:
    tried, changed = attacked(make, choices, moves, honest, shared=True)
    with capsys.disabled():
        print(f"\n  {make.__name__}, one stream: {changed} of {tried} attacks within the radius changed the answer")
    assert changed >= 20


def test_asking_again_until_the_radius_is_large_hands_the_answer_to_the_attacker() -> None:
    """One liar among three voters: three equal votes, which a radius of 1 takes, can only be the liar's."""
    texts = ["p0", "p1", "evil"]
    accepted, single = [], []
    for seed in range(300):
        for again in range(20):
            model = SamplingModel(["B", "B", "C"], seed * 1000 + again, shared=False, planted={"evil": Planted("C", 0)})
            answer = voting(model).answer("q", texts, choices=OPTIONS)
            if again == 0:
                single.append(answer.text)
            if answer.radius >= 1:
                accepted.append(answer.text)
                break
    assert len(accepted) > 200
    assert accepted.count("Paris") == 0, "every accepted answer is the attacker's"
    assert single.count("Paris") > 100, "while a single run often is right"
