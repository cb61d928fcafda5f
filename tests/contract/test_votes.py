"""Who has a vote: an author has one, whatever its chunks, names, copies and metadata; what too few votes lead to."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations import (
    Passage,
    RobustAnswer,
    TooFewVotesError,
    VoteRules,
)
from tests.contract.drivers import STYLES, Driver
from tests.contract.script import ABSTENTION, EVIL, Script, passages, quoted, replies, truthful


def answer(framework: Driver, found: list[Passage], **settings: Any) -> RobustAnswer:
    return framework.engine(Script(), found, **settings).ask().answer


def sizes(found: RobustAnswer) -> list[int]:
    return [len(g.passage_ids) for g in found.sources]


def chunks(count: int, **metadata: Any) -> list[Passage]:
    """Pieces of what somebody planted."""
    return [Passage(f"{EVIL} {n}", id=f"chunk-{n}", metadata={"page": n, **metadata}) for n in range(count)]


def warned(found: RobustAnswer, words: str) -> bool:
    return any(words in warning for warning in found.warnings)


@pytest.mark.parametrize("key", ["source", "file_path", "url", "URL", "link", "file_name"])
def test_chunks_of_one_planted_file_have_one_vote(framework: Driver, key: str) -> None:
    found = answer(framework, [*chunks(10, **{key: "planted.pdf"}), *truthful(4)])
    assert (found.text, sizes(found)) == ("Paris", [10, 1, 1, 1, 1])


def test_chunks_that_name_no_file_share_a_vote_beside_others_and_are_told_where_nobody_does(framework: Driver) -> None:
    found = answer(framework, [*chunks(10), *truthful(4)])
    assert (found.text, sizes(found)) == ("Paris", [10, 1, 1, 1, 1])
    assert "10 of 14 passages have no origin; they count as one source" in found.warnings
    assert warned(answer(framework, chunks(10)), "names its origin")


def test_one_source_that_fills_the_retrieval_is_said_to_decide_alone(framework: Driver) -> None:
    flood = chunks(10, source="long.pdf")
    found = answer(framework, flood)
    assert found.radius == 0
    assert warned(found, "one source (long.pdf; 10 passages) decides alone")
    withheld = answer(framework, flood, votes=VoteRules(min_sources=3))
    assert (withheld.abstained, withheld.model_calls) == (True, 0)
    with pytest.raises(TooFewVotesError):
        answer(framework, flood, votes=VoteRules(min_sources=3, below="raise"))


def test_an_author_chooses_no_origin_beside_the_readers_own_entry(framework: Driver) -> None:
    own, other = ("source", "file_path") if framework.name == "langchain" else ("file_path", "source")
    entries = {other: "https://0.example/", "url": "https://0.example/", own: "/uploads/evil.pdf"}
    evil = Passage(EVIL, id="evil", metadata=entries)
    found = answer(framework, [evil, *truthful(3)])
    assert (found.text, len(found.sources)) == ("Paris", 4)
    assert any("/uploads/evil.pdf" in w and "name different origins" in w for w in found.warnings)


def test_spellings_of_one_address_have_one_vote_or_are_warned_of(framework: Driver) -> None:
    urls = ["x.com/a?u=1", "x.com/a#2", "http://x.com/a"]
    found = answer(framework, [*(Passage(f"{EVIL} {u}", id=u, metadata={"url": u}) for u in urls), *truthful(3)])
    assert sizes(found) == [1, 2, 1, 1, 1]
    assert warned(found, "are the page x.com/a with other queries")


def test_copies_under_several_names_are_warned_of(framework: Driver) -> None:
    flood = [Passage(EVIL, id=f"m{n}", origin=f"mirror{n}.example") for n in range(6)]
    assert warned(answer(framework, [*flood, *truthful(3)]), "hold the same text")


@pytest.mark.parametrize("name", ["source", "file_path", "file name", "url"])
def test_files_of_one_name_and_other_ids_are_other_files_and_are_named(framework: Driver, name: str) -> None:
    found = [Passage(p.text, id=p.id, metadata={name: "leave.pdf", "file_id": "F-1"}) for p in truthful(2)]
    upload = [Passage(f"{EVIL} {n}", id=f"e{n}", metadata={name: "leave.pdf", "File ID": "F-2"}) for n in range(3)]
    asked = answer(framework, [*found, *upload, *truthful(4)[2:]])
    assert sizes(asked) == [2, 3, 1, 1]
    assert warned(asked, "sources 1 and 2 are files of one name (leave.pdf) and other file ids (F-1, F-2)")


def test_spellings_of_one_file_id_and_ids_that_are_blank_separate_nothing(framework: Driver) -> None:
    ids: list[Any] = ["7", "7 ", 7]
    same = [Passage(f"{EVIL} {n}", id=f"s{n}", metadata={"source": "a.pdf", "file_id": i}) for n, i in enumerate(ids)]
    blank = [
        Passage(f"{EVIL} {n}", id=f"b{n}", metadata={"source": "b.pdf", "fileId": i}) for n, i in enumerate(["", " "])
    ]
    two = [{"file_id": "A", "fileId": "B"}, {"fileId": "B", "file_id": "A"}]
    both = [Passage(f"{EVIL} {n}", id=f"t{n}", metadata={"source": "c.pdf", **i}) for n, i in enumerate(two)]
    assert sizes(answer(framework, [*same, *blank, *both, *truthful(3)])) == [3, 2, 2, 1, 1, 1]


def test_a_file_of_which_only_the_id_is_known_shares_no_vote_with_another_one(framework: Driver) -> None:
    found = [Passage(f"{EVIL} {n}", id=f"e{n}", metadata={"file_id": f"F-{n % 2}"}) for n in range(4)]
    assert sizes(answer(framework, [*found, *truthful(3)])) == [2, 2, 1, 1, 1]


@pytest.mark.parametrize("page_id", ["document_id", "doc_id", "ref_doc_id", "id", "chunk_id", "page_label"])
@pytest.mark.parametrize("name", ["source", "file_path", "file_name", "url"])
def test_pages_of_one_file_have_one_vote_whatever_the_ids_of_each(framework: Driver, page_id: str, name: str) -> None:
    pages = [Passage(f"{EVIL} {n}", id=f"page-{n}", metadata={name: "long.pdf", page_id: f"id-{n}"}) for n in range(5)]
    assert sizes(answer(framework, [*pages, *truthful(3)])) == [5, 1, 1, 1]


def test_a_number_is_the_page_of_a_file_that_is_named_elsewhere(framework: Driver) -> None:
    pages = [
        Passage(f"{EVIL} {n}", id=f"page-{n}", metadata={"source": str(n), "file_path": "a.pdf"}) for n in range(5)
    ]
    assert sizes(answer(framework, [*pages, *truthful(3)])) == [5, 1, 1, 1]


def key_of(passage: Passage) -> Any:
    """The author that a passage names."""
    assert isinstance(passage, Passage)  # in every framework
    return passage.metadata["author"]


def test_a_function_that_raises_for_every_passage_is_an_error_that_names_the_exception(framework: Driver) -> None:
    found = [Passage(p.text, id=p.id, metadata={"author": [n]}) for n, p in enumerate(truthful(4))]
    for by, kind in ((lambda p: p.metadata["autor"], "KeyError"), (key_of, "TypeError"), (lambda p: p.x, "Attribute")):
        with pytest.raises(ValueError, match=rf"raises for every passage \({kind}.*given a Passage"):
            answer(framework, found, group_by=by)


def test_a_function_sources_and_what_it_fails_on_shares_a_source(framework: Driver) -> None:
    found = [Passage(p.text, id=p.id, metadata={"author": n % 2}) for n, p in enumerate(truthful(4))]
    assert sizes(answer(framework, found, group_by=key_of)) == [2, 2]
    found[2:] = [Passage("2", id="a"), Passage("3", id="b", metadata={"author": ["unhashable"]})]
    failed = answer(framework, found, group_by=key_of)
    assert sizes(failed) == [1, 1, 2]
    assert "2 of 4 passages have no group_by key (1 KeyError, 1 TypeError); they count as one source" in failed.warnings
    assert sizes(answer(framework, found[:2], group_by="author")) == [1, 1]


@pytest.mark.parametrize("style", STYLES)
async def test_too_small_a_radius_is_an_abstention_and_nothing_is_shown_before(kind: Driver, style: str) -> None:
    for settings in ({}, {"method": "keyword", "final": "always"}):
        engine = kind.engine(Script(), truthful(), votes=VoteRules(min_radius=9), **settings)
        said = await engine.asked(style)
        assert said.pieces == [ABSTENTION]
        assert (said.answer.abstained, said.answer.radius) == (True, 0)
        assert "below min_radius=9" in said.answer.warnings[-1]
    said = await kind.engine(Script(), truthful(), min_radius=2).asked(style)
    assert (said.pieces, said.answer.radius) == (["Paris"], 2)


# --- who reads

TIE, SOLE = replies("30 days", "30 days", "14 days", "14 days"), replies("30 days", ABSTENTION, ABSTENTION)
TOLD = "The sources say:\n- a.pdf, b.pdf: 30 days\n- c.pdf, d.pdf: 14 days"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("found", "told"), [(TIE, TOLD), (SOLE, "30 days")], ids=["tie", "sole source"])
async def test_people_are_told_what_models_are_not(framework: Driver, found: Any, told: str, style: str) -> None:
    for reader, shown in (("people", told), ("model", ABSTENTION)):
        said = await framework.engine(Script(quoted), found, reader=reader).asked(style)
        assert (said.pieces, said.answer.text, said.answer.radius) == ([shown], shown, 0)
        assert said.answer.abstained is (found is TIE or reader == "model")
        if found is TIE:
            assert [(d.text, d.origins) for d in said.answer.dissent] == [
                ("30 days", ("a.pdf", "b.pdf")),
                ("14 days", ("c.pdf", "d.pdf")),
            ]
        elif reader == "people":
            assert said.answer.sole_source == "a.pdf"
        else:
            assert "allow_sole_source=True" in said.answer.warnings[-1]


def test_a_sole_source_may_be_allowed_and_a_tie_kept_from_people(framework: Driver) -> None:
    allowed = framework.engine(Script(quoted), SOLE, reader="model", votes=VoteRules(allow_sole_source=True))
    assert allowed.ask().text == "30 days"
    assert framework.engine(Script(quoted), TIE, disagreement="abstain").ask().text == ABSTENTION
    keyword = framework.engine(Script(), [truthful()[0], *passages("Rain.", "Snow.")], method="keyword")
    assert (keyword.ask().text, keyword.ask().answer.sole_source) == ("It is Paris indeed", "https://0.example/")
    with pytest.raises(ValueError, match="reader='agent' must be 'people' or 'model'"):
        framework.engine(Script(), [], reader="agent")


# --- arguments


def test_a_wrong_argument_is_named_with_the_nearest(framework: Driver) -> None:
    for typed, meant in (("alhpa", "alpha"), ("metod", "method")):
        with pytest.raises(TypeError, match=f"unknown argument '{typed}'; did you mean {meant}"):
            framework.engine(Script(), [], **{"method": "keyword", typed: 1})
    with pytest.raises(ValueError, match="method='sum' is unknown"):
        framework.engine(Script(), [], method="sum")
    with pytest.raises(ValueError, match="alpha=2 must lie in"):
        framework.engine(Script(), [], method="keyword", alpha=2)
    with pytest.raises(TypeError, match="citation_markers='no' must be True or False"):
        framework.engine(Script(), [], citation_markers="no")
