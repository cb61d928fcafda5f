"""Where groups stand towards an answer: said by their own words, with no understanding of denials."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, Passage
from robustrag_integrations.answers.answer import RobustAnswer

METHODS = [ConsensusAggregation, KeywordAggregation]


def answer_of(
    replies: Sequence[str], question: str = "Which one?", method: type = ConsensusAggregation
) -> RobustAnswer:
    model = CallableModel(lambda prompt: next(r for i, r in enumerate(replies) if f"passage {i}." in prompt))
    passages = [Passage(f"passage {i}.", source=f"s{i}") for i in range(len(replies))]
    found: RobustAnswer = method(model).answer(question, passages)
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("question", "answer", "other", "status"),
    [
        ("What happened?", "Mara won", "Mara lost", "differs"),
        ("What happened?", "Mara won", "Mara did not win", "differs"),
        ("What happened?", "Mara won", "Mara", "mentions"),  # a part
        ("What is it called?", "Tarsk", "Brezar, formerly known as Tarsk", "mentions"),
        ("What is it called?", "Tarsk", "not Tarsk", "mentions"),
        ("What is it called?", "Tarsk", "Tarsk or Brezar", "mentions"),
        ("What is it called?", "Tarsk", "It is called Tarsk.", "supports"),
        ("What is it called?", "Tarsk", "TARSK!", "supports"),
        ("What is it called?", "Tarsk", "Brezar", "differs"),
        ("How far is it?", "less than 5 km", "5 km", "mentions"),
        ("How far is it?", "5 km", "less than 5 km", "mentions"),
        ("How far is it?", "5 km", "5 km/h", "differs"),
        ("How long is it?", "three years", "3 years", "supports"),
        ("Who won?", "George Santos", "George Soros", "differs"),
        ("Who won?", "George Santos", "Santos", "mentions"),
        ("Is parking allowed?", "Parking is not allowed", "Parking is allowed", "differs"),
        ("Is it open?", "Yes", "No, it is open tomorrow", "differs"),
        ("Is it open?", "Yes", "Yes, since 5", "mentions"),
        ("Which command lists them?", "kubectl get pods", "Use `kubectl get pods`", "mentions"),
        ("Which command lists them?", "kubectl get pods", "kubectl delete pods", "differs"),
        ("Wo liegt es?", "Tarsk", "nicht in Tarsk", "mentions"),
        ("他是谁?", "王小明", "王明", "differs"),
    ],
)
def test_a_group_supports_what_it_says_and_nothing_else(
    method: type, question: str, answer: str, other: str, status: str
) -> None:
    found = answer_of([answer] * 6 + [other], question, method)
    assert found.text == answer
    assert [group.status for group in found.groups] == ["supports"] * 6 + [status]
    assert len(found.citations) == 6 + (status == "supports")
    named = [(dissent.text, dissent.support, dissent.groups, dissent.origins) for dissent in found.dissent]
    assert named == ([(other, 1, (6,), ("s6",))] if status == "differs" else [])
    assert bool(named) == any("1 of 7 answering groups says otherwise" in w and other in w for w in found.warnings)


def test_those_who_differ_alike_are_one_dissent_those_with_most_votes_first() -> None:
    replies = ["Tarsk"] * 5 + ["Lund", "Brezar", "brezar.", "I don't know", "Brezar!"]
    found = answer_of(replies)
    assert [(d.text, d.support, d.groups) for d in found.dissent] == [("Brezar", 3, (6, 7, 9)), ("Lund", 1, (5,))]
    [warning] = found.warnings
    assert warning == "4 of 9 answering groups say otherwise: 'Brezar' (s6, s7, s9); 'Lund' (s5)"
    shown = found.explain()
    assert "Differs:  Brezar (s6, s7, s9; groups 7, 8, 10)" in shown
    assert found.to_dict()["dissent"][0]["origins"] == ["s6", "s7", "s9"]
    assert RobustAnswer.from_dict(found.to_dict()) == found


def test_at_most_three_dissenting_answers_are_warned_of_and_their_words_are_neutralised() -> None:
    lies = ["\x1b[31mone\x1b[0m", "two " + "x" * 5_000, "three", "four", "five"]
    found = answer_of(["Tarsk"] * 7 + lies)
    [warning] = [w for w in found.warnings if "otherwise" in w]
    assert "\x1b" not in warning + found.explain()
    assert "and 2 more" in warning
    assert len(warning) < 500
    assert len(found.dissent) == 5
    assert all(len(dissent.text) <= 300 for dissent in found.dissent)


def test_next_to_an_abstention_nobody_dissents() -> None:
    found = answer_of(["one", "two", "three"])
    assert found.abstained
    assert (found.dissent, found.citations) == ((), ())


def test_a_list_is_supported_by_those_who_say_its_items_and_no_other() -> None:
    replies = ["copper, nickel", "copper, nickel", "copper, nickel.", "copper, zinc", "copper, nickel, cobalt"]
    found = answer_of(replies, "Which metals?")
    assert found.text == "copper, nickel"
    assert [group.status for group in found.groups] == ["supports"] * 3 + ["differs", "mentions"]


def test_an_answer_of_the_users_keywords_is_supported_by_those_who_say_no_others() -> None:
    model = CallableModel(lambda prompt: "a b" if "passage 0." in prompt else "a")
    defense = ConsensusAggregation(model, extractor=lambda text: set(text.split()))
    found = defense.answer("Which?", [f"passage {i}." for i in range(4)])
    assert [group.status for group in found.groups] == ["mentions", "supports", "supports", "supports"]
