"""The radius of a consensus whose copies have one vote: by brute force."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

from robustrag_integrations import ConsensusAggregation, Passage
from robustrag_integrations.answers.answer import RobustAnswer
from tests.helpers.brute_force import same
from tests.helpers.scripted import BARE
from tests.helpers.worlds import ConsensusModel, Move, shown

# A capital letter is a copy of the small one that the model words another way, or is unsure of.
MOVES = {
    "a": Move("Xylo"),
    "A": Move("xylo."),
    "b": Move("the Xylo"),
    "B": Move("the Xylo", is_sure=False),
    "d": Move("xylo"),
    "D": Move(""),
    "e": Move("Xylo"),
    "f": Move("Xylo Yew"),
    "g": Move("Zulu"),
}
TEXTS = [*MOVES]
AGREEING = [8, 1, 1, 1, 8, 0, 8, 1, 1]


def ask(texts: Sequence[str], **rules: Any) -> RobustAnswer:
    made = ConsensusAggregation(ConsensusModel(MOVES.__getitem__), prompts=BARE, quorum=0, **rules)
    return made.answer("q", [Passage(text, origin=f"s{i}") for i, text in enumerate(texts)])


def attacks(sources: int, radius: int, count: int, rng: random.Random) -> list[dict[int, str]]:
    """Some of the ways to replace up to `radius` sources together."""
    chosen = [p for n in range(1, min(radius, 3) + 1) for p in itertools.combinations(range(sources), n)]
    return [{place: rng.choice(TEXTS) for place in rng.choice(chosen)} for _ in range(count)] if chosen else []


def replaced(texts: Sequence[str], new: dict[int, str]) -> list[str]:
    return [new.get(place, text) for place, text in enumerate(texts)]


def stays(seen: RobustAnswer, replaced: int, answer: RobustAnswer) -> bool:
    """Whether the answer is the promised one after so many sources were replaced: to the letter, or by its key."""
    return shown(answer) == seen.text if replaced <= (seen.radius_verbatim or 0) else same(shown(answer), seen.text)


def test_no_attack_within_the_radius_changes_a_consensus() -> None:
    rng, worlds = random.Random(1), 0
    for unsure in ["count", "abstain"] * 30:
        clean = rng.choices(TEXTS, AGREEING, k=rng.randint(6, 8))
        seen = ask(clean, unsure=unsure)
        worlds += seen.radius > 0
        for new in attacks(len(clean), seen.radius, 30, rng):
            answer = ask(replaced(clean, new), unsure=unsure)
            assert stays(seen, len(new), answer), (clean, new)
    assert worlds > 10
