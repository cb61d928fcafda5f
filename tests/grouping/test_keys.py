"""Grouping by sources and keys that a passage's author chose: nothing wins votes, and nothing costs the answer."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations import KeywordAggregation, MajorityVoting, Passage, isolate
from robustrag_integrations.certification.cases import benign_source_cases
from robustrag_integrations.grouping.warnings import keyless_warnings
from tests.helpers.hostile_keys import HOSTILE_KEYS, KEYS_WITH_NAN, USABLE_KEYS
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedModel

hostile = pytest.mark.parametrize("make", HOSTILE_KEYS.values(), ids=HOSTILE_KEYS)
ALL = HOSTILE_KEYS | KEYS_WITH_NAN
unequal = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


def author(passage: Passage) -> Any:
    return passage.metadata["author"]


def mixed(make: Any) -> list[Passage]:
    """Four honest authors, and five texts of one who has a key of his own making each time."""
    honest = [Passage(f"honest {i}", metadata={"author": f"author {i}"}) for i in range(4)]
    return [*honest, *(Passage("evil", metadata={"author": make()}) for _ in range(5))]


@unequal
def test_a_vote_is_not_decided_by_keys_made_to_be_unequal(make: Any) -> None:
    model = ScriptedModel(lambda text: "A" if "honest" in text else "B")
    defense = MajorityVoting(model, prompts=BARE_CHOICES, group_by=author)
    answer = defense.answer("q", mixed(make), choices=["right", "wrong"])
    assert (answer.text, answer.radius) == ("right", 1)
    assert [len(g.passage_ids) for g in answer.sources] == [1, 1, 1, 1, 5]
    [untouched] = benign_source_cases(mixed(make), 0, by=author)  # certificates source as answers do
    assert [len(ranks) for ranks in untouched.ranks] == [1, 1, 1, 1, 5]


@pytest.mark.parametrize("make", USABLE_KEYS.values(), ids=USABLE_KEYS)
def test_equal_keys_share_a_source_and_others_do_not(make: Any) -> None:
    passages = [Passage(str(i), metadata={"author": make(i)}) for i in (1, 2, 1, 2)]
    sources = isolate(passages, by=author)
    assert [g.text for g in sources] == ["1\n\n1", "2\n\n2"]
    assert keyless_warnings(sources, author) == []


def test_each_reason_is_counted_and_no_words_of_the_error_are_shown() -> None:
    def key(passage: Passage) -> Any:
        if passage.text == "bad":
            raise ValueError("\x1b[31m hostile words")
        return {"none": None, "list": []}.get(passage.text, passage.text)

    sources = isolate(["a", "bad", "none", "bad", "list", "a"], by=key)
    assert keyless_warnings(sources, key) == [
        "4 of 6 passages have no group_by key (2 ValueError, 1 None, 1 TypeError); they count as one source"
    ]


@hostile
def test_a_source_that_is_no_name_is_none(make: Any) -> None:
    passages = [Passage("honest", origin="a"), *(Passage("evil", origin=make(), id=make()) for _ in range(5))]
    assert [p.origin for p in passages] == ["a", None, None, None, None, None]
    sources = isolate(passages, by="source")
    assert [len(g.passages) for g in sources] == [1, 5]
    assert keyless_warnings(sources, "source") == ["5 of 6 passages have no source; they count as one source"]
    model = ScriptedModel(lambda text: "x", lambda prompt: "x")
    answer = KeywordAggregation(model, extractor=lambda text: {text}, prompts=BARE).answer("q", passages)
    assert [len(g.passage_ids) for g in answer.sources] == [1, 5]
    assert answer.explain()
