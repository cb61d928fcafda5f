"""Answers that did not wait for all sources: the text is what all would have given, whatever others say and when."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from robustrag_integrations import ConsensusAggregation, MajorityVoting, RobustAnswer
from robustrag_integrations._util.errors import QuorumError
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.models.base import Response, not_asked
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.replies.keys import key_of
from robustrag_integrations.text.prompts import ABSTENTION
from tests.helpers.scripted import ScriptedModel

CHOICES = ("anna", "bert", "cleo")
SILENCE = "I don't know"
FAILS = None
Replies = tuple[str | None, ...]


def consensus(**rules: Any) -> Defense:
    return ConsensusAggregation(ScriptedModel({}), group_by="passage", **rules)


def voting(**rules: Any) -> Defense:
    return MajorityVoting(ScriptedModel({}), group_by="passage", **rules)


def answered(
    defense: Defense, passages: Sequence[str], replies: Replies, heard: Sequence[int] | None = None
) -> RobustAnswer | None:
    """The answer from the replies of these sources; None if they are not enough. None: from all."""
    plan = defense.plan("Who?", passages, choices=CHOICES if isinstance(defense, MajorityVoting) else None)
    request = next(plan)
    assert isinstance(request, Ask)
    said: list[Response] = [Response(text, error=None if text else "fails") for text in replies]
    if heard is not None:
        said = [r if i in heard else not_asked(cancelled=True) for i, r in enumerate(said)]
        assert request.until is not None
        if not request.until(said):
            return None
    try:
        plan.send(said)
        while True:
            plan.send(None)
    except StopIteration as done:
        answer: RobustAnswer = done.value
        return answer


def full_text(defense: Defense, passages: Sequence[str]) -> Callable[[Replies], str]:
    """What all sources together say; `quorum` if too many fail."""

    @cache
    def text_of(replies: Replies) -> str:
        try:
            answer = answered(defense, passages, replies)
        except QuorumError:
            return "quorum"
        assert answer is not None
        return answer.text

    return text_of


def completions(
    replies: Replies, open_: Sequence[int], universe: Sequence[str | None], attacked: Sequence[int] = ()
) -> Iterator[Replies]:
    """These replies, where open and attacked sources say anything."""
    free = [*open_, *attacked]
    for said in itertools.product(universe, repeat=len(free)):
        whole = list(replies)
        for i, text in zip(free, said, strict=True):
            whole[i] = text
        yield tuple(whole)


def violations(defense: Defense, passages: Sequence[str], replies: Replies, universe: Sequence[str | None]) -> int:
    """Tries every set of sources that may have answered first (so every order), and every reply of all others.

    Returns:
        How often the answer was decided before the last reply.
    """
    text_of, decided = full_text(defense, passages), 0
    everybody = range(len(passages))
    for size in range(1, len(passages)):
        for heard in itertools.combinations(everybody, size):
            answer = answered(defense, passages, replies, heard)
            if answer is None:
                continue
            decided += 1
            assert answer.radius >= defense.rules.min_radius
            assert answer.evidence["decided_after"] == size
            others = [i for i in everybody if i not in heard]
            assert [answer.sources[i].status for i in others] == ["not_asked"] * len(others)
            for r in range(min(answer.radius, 1) + 1):
                for attacked in itertools.combinations(heard, r):
                    for whole in completions(replies, others, universe, attacked):
                        text = text_of(whole)
                        if r and defense.rules.min_radius and text == ABSTENTION:
                            continue
                        to_the_letter = len(attacked) <= (answer.radius_verbatim or 0)
                        alike = text == answer.text if to_the_letter else key_of(text) == key_of(answer.text)
                        assert alike, (replies, heard, attacked, whole)
    return decided


VOTES = (*CHOICES, SILENCE, FAILS)


@pytest.mark.parametrize("rules", [{}, {"min_radius": 1}, {"quorum": 0.8}], ids=["plain", "min_radius", "quorum"])
def test_a_vote_is_decided_only_when_no_order_and_no_reply_can_change_it(rules: dict[str, Any]) -> None:
    defense = voting(stop_when_decided=True, **rules)
    passages, chance = [f"text {i}" for i in range(5)], random.Random(0)
    worlds = [("anna",) * 5, *(tuple(chance.choices(VOTES, (6, 2, 1, 1, 1), k=5)) for _ in range(25))]
    assert sum(violations(defense, passages, world, VOTES) for world in worlds) > 5


SAID = ("Anna Lind", "the Anna Lind", "Lind", "Eve Moor", SILENCE, FAILS)


@pytest.mark.parametrize(
    "rules", [{}, {"min_support": 1, "quorum": 0.0}, {"min_radius": 1}], ids=["plain", "one is enough", "min_radius"]
)
def test_a_consensus_is_decided_only_when_no_order_and_no_reply_can_change_it(rules: dict[str, Any]) -> None:
    defense = consensus(stop_when_decided=True, **rules)
    passages, chance = [f"text {i}" for i in range(5)], random.Random(2)
    worlds = [("Anna Lind",) * 5, ("Lind", *("Anna Lind",) * 4)]
    worlds += [tuple(chance.choices(SAID, (8, 1, 1, 1, 1, 1), k=5)) for _ in range(4)]
    assert sum(violations(defense, passages, world, SAID) for world in worlds) > 5


def test_what_an_early_answer_says_of_itself() -> None:
    passages = [f"text {i}" for i in range(10)]
    answer = answered(voting(stop_when_decided=True), passages, ("anna",) * 10, range(8))
    assert answer is not None
    assert (answer.text, answer.radius, answer.evidence["decided_after"]) == ("anna", 2, 8)
    assert [g.status for g in answer.sources] == ["supports"] * 8 + ["not_asked"] * 2
    assert answer.sources[9].error is None
    assert answer.sources[9].note == "cancelled, as the answer was decided"
    assert any("the radius is what was proved by then" in w for w in answer.warnings)
    assert answer.model_calls == answer.spending.calls == 10, "calls that were cancelled had gone out"
    assert answer.settings["stop_when_decided"] is True
    assert RobustAnswer.from_dict(answer.to_dict()) == answer
    whole = answered(voting(stop_when_decided=True), passages, ("anna",) * 10)
    assert whole is not None
    assert (whole.text, whole.radius, whole.evidence["decided_after"]) == ("anna", 4, 10)
    assert not any("decided after" in w for w in whole.warnings)
