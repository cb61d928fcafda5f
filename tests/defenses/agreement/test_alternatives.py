"""Other answers with support are listed beside the answer, and nothing is claimed of them."""

from __future__ import annotations

import json

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, MajorityVoting, VanillaRAG
from robustrag_integrations.answer import Alternative, RobustAnswer
from robustrag_integrations.defenses.agreement.alternatives import LONGEST, MOST, alternatives
from robustrag_integrations.defenses.agreement.support import Support
from robustrag_integrations.drawing.answer import answer_parts
from robustrag_integrations.drawing.elements import to_html

QUERY = "Who wrote Harbour Lights?"
NOVEL = [f"Page {n}: Harbour Lights is by Ada Moss." for n in range(5)]
SONG = [f"Record {n}: Harbour Lights is by Tom Reed." for n in range(3)]
LIE = ["Harbour Lights is by Jo Lum."]


def read(prompt: str) -> str:
    if "Keywords: " in prompt:
        return "Ada Moss"
    text = prompt.rsplit("Text:", 1)[-1]
    return next((name for name in ("Ada Moss", "Tom Reed", "Jo Lum") if f"by {name}" in text), "I don't know")


def choose(prompt: str) -> str:
    return {"Ada Moss": "A", "Tom Reed": "B", "Jo Lum": "C"}.get(read(prompt), "D")


@pytest.mark.parametrize("method", [KeywordAggregation, ConsensusAggregation])
def test_an_answer_that_enough_groups_share_is_listed_with_them(method: type) -> None:
    answer = method(CallableModel(read)).answer(QUERY, [*NOVEL, *SONG, *LIE])
    assert (answer.text.casefold(), answer.abstained) == ("ada moss", False)
    assert answer.alternatives == (Alternative("Tom Reed", 3, (5, 6, 7)),)
    assert "Also:     Tom Reed (support 3, groups 6, 7, 8; nothing is proved of it)" in answer.explain()
    assert RobustAnswer.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
    drawn = "".join(map(to_html, answer_parts(answer.to_dict())))
    assert "nothing is proved of them" in drawn
    assert "Tom Reed" in drawn


def test_what_two_groups_say_is_listed_though_the_threshold_is_higher() -> None:
    answer = KeywordAggregation(CallableModel(read)).answer(QUERY, [*NOVEL, "Harbour Lights: by Ada Moss.", *SONG])
    assert (answer.evidence["threshold"], answer.alternatives) == (4.5, (Alternative("Tom Reed", 3, (6, 7, 8)),))
    two = KeywordAggregation(CallableModel(read)).answer(QUERY, [*NOVEL, *SONG[:2], *LIE])
    assert two.alternatives == (Alternative("Tom Reed", 2, (5, 6)),)


def test_all_other_options_with_a_vote_are_listed() -> None:
    voting = MajorityVoting(CallableModel(choose))
    answer = voting.answer(QUERY, [*NOVEL, *SONG, *LIE], choices=["Ada Moss", "Tom Reed", "Jo Lum", "Nobody"])
    assert answer.alternatives == (Alternative("Tom Reed", 3, (5, 6, 7)), Alternative("Jo Lum", 1, (8,)))


def test_an_abstention_and_a_method_without_groups_list_none() -> None:
    passages = [*NOVEL, *SONG]
    assert KeywordAggregation(CallableModel(read), min_radius=9).answer(QUERY, passages).alternatives == ()
    voting = MajorityVoting(CallableModel(choose), min_radius=9)
    assert voting.answer(QUERY, passages, choices=["Ada Moss", "Tom Reed"]).alternatives == ()
    assert VanillaRAG(CallableModel(read)).answer(QUERY, passages).alternatives == ()
    assert KeywordAggregation(CallableModel(lambda prompt: "I don't know")).answer(QUERY, passages).alternatives == ()


def test_one_reply_counts_for_one_alternative_and_joins_none() -> None:
    sets = [frozenset(s) for s in ({"tom"}, {"tom"}, {"tom", "jo"}, {"jo"})]
    out = [Support("outvoted")] * 4
    found = alternatives((), sets, out, ["Tom", "Tom", "Tom Jo", "Jo"], [1] * 4, 2)
    assert found == (Alternative("Tom", 3, (0, 1, 2)),)
    weighed = alternatives((), sets, out, ["Tom", "Tom", "Tom Jo", "Jo"], [1, 1, 1, 2], 2)
    assert weighed == (Alternative("Jo", 3, (2, 3)), Alternative("Tom", 2, (0, 1))) or weighed[0].support == 3


def test_hostile_replies_are_bounded_and_harmless() -> None:
    sets = [frozenset({f"w{n}"}) for n in range(50)]
    found = alternatives((), sets, [Support("outvoted")] * 50, ["x" * 10_000] * 50, [1] * 50, 1)
    assert (len(found), {len(a.text) for a in found}) == (MOST, {LONGEST})
    evil = "<script>alert(1)</script>\x1b[31m\u202e\U000e0041 Tom Reed"
    answer = RobustAnswer("Ada", 0, False, "Who?", "keyword", alternatives=(Alternative(evil, 2, (1,)),))
    drawn = "".join(map(to_html, answer_parts(answer.to_dict())))
    assert "<script>" not in drawn
    for shown in (drawn, answer.explain()):
        assert not any(c in shown for c in ("\x1b", "\u202e", "\U000e0041"))
