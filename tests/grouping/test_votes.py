"""Warnings about votes, and enough sources for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from robustrag_integrations import MajorityVoting, Passage
from robustrag_integrations.answers.answer import RobustAnswer
from tests.helpers.scripted import BARE_CHOICES, ScriptedModel

OPTIONS = ["yes", "no", "maybe"]


def voting(**rules: Any) -> MajorityVoting:
    """A source votes for the option that its text begins with."""

    def say(text: str) -> str:
        first = text.strip().lower().split(" ")[0]
        return first if first in OPTIONS else "I don't know"

    return MajorityVoting(ScriptedModel(say), prompts=BARE_CHOICES, **rules)


def vote(texts: Sequence[str], **rules: Any) -> RobustAnswer:
    passages = [Passage(text, origin=f"{i}.txt") for i, text in enumerate(texts)]
    return voting(**rules).answer("q", passages, choices=OPTIONS)


# Warnings


def test_one_source_decides_alone_and_two_cannot_outvote_each_other() -> None:
    [alone] = voting().answer("q", [Passage("no", origin="evil.pdf")] * 3, choices=OPTIONS).warnings[:1]
    assert alone.startswith("one source (evil.pdf; 3 passages) decides alone")
    assert any(w.startswith("only 2 sources: neither can be outvoted") for w in vote(["yes a", "no b"]).warnings)
    assert vote(["yes a", "yes b", "no c"]).warnings == ()


def test_copies_are_named_but_for_case_width_and_whitespace() -> None:
    [told] = vote(["yes it  is", "YES It\u3000is", "no c", "ｙｅｓ it\nis", "maybe d"]).warnings
    assert told.startswith("sources 1, 2 and 4 hold the same text (0.txt; 1.txt; 3.txt): several origins, one author?")
    footer = [Passage(text, origin=f"{i}.txt") for i in range(4) for text in (f"yes {i}", "Open on Mondays")]
    assert voting().answer("q", footer, choices=OPTIONS).warnings == ()  # of whole sources, not of a passage in common


def test_spellings_of_queries_are_named() -> None:
    urls = ["x.com/a?u=1", "x.com/a#2", "http://x.com/a", "http://y.com/a?u=1", "http://z.com"]
    passages = [Passage(f"yes {i}", origin=url) for i, url in enumerate(urls)]
    [told] = voting().answer("q", passages, choices=OPTIONS).warnings
    assert told.startswith("sources 1 and 2 are the page x.com/a with other queries, with a vote each")


def test_hostile_names_in_warnings_are_neutralised_and_cut() -> None:
    passages = [Passage("yes", origin="\x1b[31m" + "x" * 5000), Passage("yes", origin="b\n\u202e")]
    said = " ".join(voting().answer("q", passages, choices=OPTIONS).warnings)
    assert not any(c in said for c in "\x1b\n\u202e")
    assert len(said) < 1000


# Enough


def test_below_min_sources_the_answer_is_an_abstention_that_says_why_and_nothing_is_asked() -> None:
    answer = vote(["no evil", "no b"], min_sources=3)
    assert answer.abstained
    assert (answer.text, answer.radius, answer.choice, answer.model_calls) == ("I don't know", 0, None, 0)
    assert [g.origins for g in answer.sources] == [("0.txt",), ("1.txt",)]
    assert any(w.startswith("abstained: 2 sources, below min_sources=3") for w in answer.warnings)
    assert answer.settings["min_sources"] == 3
    assert vote(["no a", "no b", "no c"], min_sources=3).text == "no"
    assert vote([], min_sources=1).abstained


@pytest.mark.parametrize("rules", [{"min_sources": 2}, {"min_radius": 1}], ids=lambda r: next(iter(r)))
def test_certificates_are_about_one_vote_per_source(rules: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"certify the defence without {next(iter(rules))}"):
        voting(**rules).certify("q", ["yes"], "yes", choices=OPTIONS)
