"""Citations come from what sources said alone; their markers are placed by us and never by a model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations import CallableModel, KeywordAggregation, Passage, VanillaRAG
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.citations import Citation, last_mention, listed, marked_text


def cite(number: int, *words: str) -> Citation:
    return Citation(number, number - 1, (f"p{number}",), (), (number - 1,), words)


def robust(final: str = "Karl Gross") -> RobustAnswer:
    def model(prompt: str) -> str:
        return "Hans Wolf" if "evil" in prompt else "Karl Gross" if "passage" in prompt else final

    passages = [Passage(f"passage {i}", origin=f"s{i}") for i in range(4)] + [Passage("evil passage", origin="bad")]
    return KeywordAggregation(CallableModel(model)).answer("Who?", passages)


def test_citations_name_the_supporting_passages_and_their_words() -> None:
    answer = robust()
    assert [(c.number, c.origins, c.positions, c.words) for c in answer.citations] == [
        (i + 1, (f"s{i}",), (i,), ("gross", "karl", "karl gross")) for i in range(4)
    ]
    assert answer.marked_text == "Karl Gross [1][2][3][4]\n\n[1] s0; [2] s1; [3] s2; [4] s3"
    assert answer.shown(markers=True, to="model") == "Karl Gross [1][2][3][4]"
    assert answer.shown(markers=False, to="people") == "Karl Gross"
    assert "[1] s0: gross, karl, karl gross" in answer.explain()


def test_names_of_sources_are_no_links_no_markup_and_no_orders() -> None:
    names = [
        "https://a.example/Call the police?x=1",
        "dir/Annual report; [9] (2).pdf",
        "Say 'no'!\x1b[31m\n<b>",
        "../..",
    ]
    cited = [Citation(n, n, ("id",), (name,), (n,), ("x",)) for n, name in enumerate(names, 1)]
    assert listed(cited) == (
        "[1] a.example/Call the police?x=1; [2] dir/Annual report_ _9_ (2).pdf; [3] Say 'no'!·_31m _b_; [4] ../.."
    )


def test_without_isolation_nobody_can_be_cited() -> None:
    assert VanillaRAG(CallableModel(lambda prompt: "Rome")).answer("q", ["a", "b"]).citations == ()


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Karl Gross won.", "Karl Gross [1] won."),
        ("Karlgross, Karl Grossmann", "Karlgross, Karl Grossmann [1]"),
        ("Hans Wolf [1][2] 【3†source】 [^4] won [5, 6].", "Hans Wolf won. [1]"),
        ("", "[1]"),
    ],
)
def test_markers_stand_after_what_is_supported_and_the_models_own_are_taken_out(text: str, marked: str) -> None:
    assert marked_text(text, [cite(1, "karl gross")]) == marked


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("karl gross", "KARL-GROSS, Karl  Gross and Karl Grossmann", "Karl  Gross"),
        ("15", "2015, 15 and 15th", "15"),
        ("c++", "C++ and C", "C++"),
        ("北京", "答案是北京市", "北京"),
        ("...", "a ... b", None),
        ("", "text", None),
    ],
)
def test_mentions_are_found_as_whole_words(phrase: str, text: str, found: str | None) -> None:
    end = (last_mention(phrase, text) or (0, None))[1]
    assert (end is None) == (found is None)
    assert found is None or text[:end].endswith(found)


@given(st.text(max_size=80), st.lists(st.text(min_size=1, max_size=12), max_size=3))
def test_markers_change_nothing_else(text: str, words: list[str]) -> None:
    bare = marked_text(text, [])
    marked = marked_text(text, [cite(1, *words)])
    assert marked.replace(" [1]", "").replace("[1]", "") == bare.replace("[1]", "")


def test_a_report_comes_back_from_json_as_it_was() -> None:
    answer = robust()
    assert RobustAnswer.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other"}, "schema is 'other'"),
        ({"sources": [{"index": 0}]}, "sources.0. lacks one of passage_ids"),
        ({"sources": 3}, "sources must be a list"),
    ],
)
def test_a_report_that_is_none_is_refused_by_name(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobustAnswer.from_dict(robust().to_dict() | change)
