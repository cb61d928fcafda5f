"""Abstaining below a smallest radius: nothing is shown before the radius is known, and the abstention says why."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from robustrag_integrations import ConsensusAggregation, DecodingAggregation, KeywordAggregation, MajorityVoting
from robustrag_integrations.defenses.base import Defense
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel

PASSAGES = [f"p{i}" for i in range(7)]


def keyword(min_radius: int = 0, says: Any = None, **settings: Any) -> KeywordAggregation:
    model = ScriptedModel(says or (lambda text: "paris"), lambda prompt: "paris" if "paris" in prompt else "nobody")
    chosen = {"alpha": 0.5, "beta": 9, **settings}
    return KeywordAggregation(model, extractor=lambda t: set(t.split()), prompts=BARE, min_radius=min_radius, **chosen)


def voting(min_radius: int = 0) -> MajorityVoting:
    return MajorityVoting(ScriptedModel(lambda text: "A"), prompts=BARE_CHOICES, min_radius=min_radius)


def decoding(min_radius: int = 0) -> DecodingAggregation:
    model = ScriptedDecodingModel(lambda text, prefix: [1.0, 0.0, 0.0] if prefix else [0.1, 0.9, 0.0])
    return DecodingAggregation(model, prompts=BARE, min_radius=min_radius)


CASES = {"keyword": (keyword, None), "voting": (voting, ["yes", "no"]), "decoding": (decoding, None)}
methods = pytest.mark.parametrize(("make", "choices"), CASES.values(), ids=CASES)


async def every_way(defense: Defense, choices: list[str] | None) -> list[tuple[list[str], Any]]:
    """The pieces and the answer, in each of the four ways of asking."""
    whole = [defense.answer("q", PASSAGES, choices=choices), await defense.aanswer("q", PASSAGES, choices=choices)]
    found = [([answer.text], answer) for answer in whole]
    with defense.stream("q", PASSAGES, choices=choices) as stream:
        found.append((list(stream), stream.answer))
    async with defense.astream("q", PASSAGES, choices=choices) as stream:
        found.append(([piece async for piece in stream], stream.answer))
    return found


@methods
async def test_an_answer_with_too_small_a_radius_is_withheld_in_every_way_of_asking(make: Any, choices: Any) -> None:
    plain = make().answer("q", PASSAGES, choices=choices)
    assert not plain.abstained
    assert plain.radius > 0
    least = plain.radius + 1
    for pieces, answer in await every_way(make(least), choices):
        assert (pieces, answer.text, answer.abstained) == (["I don't know"], "I don't know", True)
        assert (answer.radius, answer.choice, answer.evidence["radius"]) == (0, None, plain.radius)
        assert f"radius is {plain.radius}, below min_radius={least}" in answer.warnings[-1]
        assert answer.settings["min_radius"] == least


def test_within_the_radius_an_attacker_gets_the_answer_or_an_abstention_and_nothing_else() -> None:
    says = ["paris", "paris", "paris", "paris", "rome"]
    words = [None, "", "paris", "rome", "paris rome", "x"]
    outcomes = set()
    for least in (1, 2):
        replies = dict(zip(PASSAGES, says, strict=False))
        clean = keyword(least, says=replies.get).answer("q", PASSAGES[:5])
        for size in range(1, (clean.radius or clean.evidence["radius"]) + 1):
            for hit in itertools.combinations(range(5), size):
                for forged in itertools.product(words, repeat=size):
                    attacked = {**replies, **{PASSAGES[i]: word for i, word in zip(hit, forged, strict=True)}}
                    answer = keyword(least, says=attacked.get).answer("q", PASSAGES[:5])
                    outcomes.add((least, answer.text))
    assert {text for _, text in outcomes} <= {"paris", "I don't know"}
    assert (1, "I don't know") in outcomes


@pytest.mark.parametrize("method", ["consensus", "voting"])
async def test_with_a_smallest_radius_sources_that_disagree_are_told_to_nobody(method: str) -> None:
    def asked(least: int) -> Defense:
        if method == "voting":
            return MajorityVoting(
                ScriptedModel(lambda text: "AB"[int(text[-1]) % 2]), prompts=BARE_CHOICES, min_radius=least
            )
        return ConsensusAggregation(ScriptedModel(lambda text: f"town {text}"), prompts=BARE, min_radius=least)

    choices = ["yes", "no"] if method == "voting" else None
    told = asked(0).answer("q", PASSAGES[:6], choices=choices)
    assert told.abstained
    assert told.text != "I don't know"
    for answer in (asked(1).answer("q", PASSAGES[:6], choices=choices), told.for_prompt()):
        assert (answer.text, answer.abstained, bool(answer.dissent)) == ("I don't know", True, True)
