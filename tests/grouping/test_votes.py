"""What one vote is: copies, and enough sources for an answer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest

from robustrag_integrations import DecodingAggregation, KeywordAggregation, MajorityVoting, Passage
from robustrag_integrations.answers.answer import RobustAnswer
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel, split

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


# Copies with one vote


def test_a_copy_abstains_and_says_whose_it_is() -> None:
    texts = ["no evil", "yes b", "NO  EVIL", "no evil", "yes c"]
    assert vote(texts).text == "no"
    answer = vote(texts, copies="one_vote")
    assert answer.text == "yes"
    assert [g.status for g in answer.sources] == ["differs", "supports", "copy", "copy", "supports"]
    assert [g.copy_of for g in answer.sources] == [None, None, 0, 0, None]
    assert "copy of source 1" in answer.explain()
    assert answer.settings["copies"] == "one_vote"


def test_rows_of_copies_count_once_in_decoding() -> None:
    model = ScriptedDecodingModel(lambda text, prefix: [1, 0, 0] if prefix else [0, 1, 0] if "a" in text else [0, 0, 1])
    passages = [Passage(text, origin=str(i)) for i, text in enumerate(["x", "x", "x", "aa", "ab"])]
    plain = DecodingAggregation(model, prompts=BARE).answer("q", passages)
    once = DecodingAggregation(model, prompts=BARE, copies="one_vote").answer("q", passages)
    assert plain.text != once.text
    assert [g.status for g in once.sources] == ["differs", "copy", "copy", "supports", "supports"]


def test_no_attack_within_the_radius_changes_an_answer_whose_copies_have_one_vote() -> None:
    """Attackers write anything: new texts, copies of benign texts, the same in other spellings, nothing at all."""
    rng = random.Random(17)
    reply = {"a": "yes", "A": "no", "b": "no", "B": "yes", "d": "yes", "e": "yes", "f": "yes", "F": "yes", "": ""}
    model = ScriptedModel(lambda text: reply.get(text, "I don't know"))
    texts = list(reply)
    attacks = worlds = reached = 0
    for _ in range(150):
        size = rng.randint(4, 7)
        clean = rng.choices(texts, [4, 1, 1, 1, 3, 3, 3, 2, 1], k=size)
        made = MajorityVoting(model, prompts=BARE_CHOICES, copies="one_vote", quorum=0)

        def ask(listed: Sequence[str], made: MajorityVoting = made) -> RobustAnswer:
            passages = [Passage(text, origin=str(i)) for i, text in enumerate(listed)]
            return made.answer("q", passages, choices=OPTIONS)

        seen = ask(clean)
        worlds += 0 < seen.radius < 3
        for r in range(1, min(seen.radius + 1, 2) + 1):
            changed = 0
            for places, written in _attacks(size, texts, r, rng):
                attacks += r <= seen.radius
                changed += ask(_with(clean, places, written)).text != seen.text
                if changed and r > seen.radius:
                    break
            assert not changed or r > seen.radius, clean
            reached += bool(changed)
    assert worlds >= 80
    assert attacks > 4000
    assert reached > 30


def test_no_attack_within_the_radius_changes_the_keywords_of_copies() -> None:
    rng = random.Random(18)
    said = {"a": "x", "A": "x y", "b": "x", "B": "y", "d": "x", "e": "x z", "f": "x", "": ""}
    model = ScriptedModel(lambda text: said[text], lambda prompt: prompt)
    texts = list(said)
    attacks = worlds = 0
    for _ in range(240):
        clean = rng.choices(texts, [4, 1, 4, 1, 4, 1, 4, 1], k=rng.randint(5, 7))
        threshold = {"alpha": rng.choice([0.4, 0.5, 0.6]), "beta": rng.choice([2, 3, 4])}

        def ask(listed: Sequence[str], threshold: Any = threshold) -> tuple[RobustAnswer, list[str]]:
            passages = [Passage(text, origin=str(i)) for i, text in enumerate(listed)]
            made = KeywordAggregation(model, extractor=split, prompts=BARE, copies="one_vote", quorum=0, **threshold)
            answer = made.answer("q", passages)
            return answer, answer.evidence["retained"]

        seen, kept = ask(clean)
        worlds += seen.radius > 0
        for r in range(1, min(seen.radius, 2) + 1):
            for places, written in _attacks(len(clean), texts, r, rng):
                attacks += 1
                assert ask(_with(clean, places, written))[1] == kept, (clean, places, written, threshold)
    assert worlds >= 80
    assert attacks > 3000


def _attacks(
    size: int, texts: Sequence[str], r: int, rng: random.Random
) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Which r sources are replaced, and by which texts: 60 of all."""
    every = list(itertools.product(itertools.combinations(range(size), r), itertools.product(texts, repeat=r)))
    return rng.sample(every, min(60, len(every)))


def _with(values: Sequence[Any], places: Sequence[int], said: Sequence[Any]) -> list[Any]:
    changed = list(values)
    for place, new in zip(places, said, strict=True):
        changed[place] = new
    return changed


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


@pytest.mark.parametrize(
    "rules", [{"min_sources": 2}, {"min_radius": 1}, {"copies": "one_vote"}], ids=lambda r: next(iter(r))
)
def test_certificates_are_about_one_vote_per_source(rules: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"certify the defence without {next(iter(rules))}"):
        voting(**rules).certify("q", ["yes"], "yes", choices=OPTIONS)
