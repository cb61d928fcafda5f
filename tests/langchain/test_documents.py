"""Grouping by source, and documents whose metadata is anything at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate

from langchain_robustrag import VoteRules, create_robust_documents_chain
from langchain_robustrag.documents import Isolation
from tests.helpers.hostile_keys import HOSTILE_KEYS
from tests.langchain.fakes import PROMPT, QUESTION, Reader, planted, truthful

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
METADATA: Any = st.dictionaries(
    st.sampled_from(["source", "author", "page_content", "score", "id", "{", "query"]) | st.text(max_size=5), VALUES
)
TEXTS: Any = st.text(max_size=40) | st.sampled_from(["{context}", "", " ", "a\n\nb", "\x00\ud800"])


def grouped(documents: list[Document], **settings: Any) -> list[list[str]]:
    groups = Isolation(**settings).groups(documents)
    return [[p.text for p in g.passages] for g in groups]


def test_by_source_reads_the_metadata() -> None:
    texts = [("a1", "a"), ("b1", "b"), ("a2", "a")]
    documents = [Document(page_content=text, metadata={"source": source}) for text, source in texts]
    assert grouped(documents, group_by="source") == [["a1", "a2"], ["b1"]]


def test_chunks_of_one_source_have_one_vote() -> None:
    chunks = [planted() for _ in range(10)]
    chain = create_robust_documents_chain(Reader(), PROMPT, group_by="source", return_robustness=True)
    result = chain.invoke({"input": QUESTION, "context": [*chunks, *truthful(8)]})
    assert "Paris" in result["answer"]
    assert len(result["robustness"].groups) == 9
    assert result["robustness"].groups[0].origins == ("https://evil.example",)
    assert result["robustness"].radius == 3


@pytest.mark.parametrize("nothing", [None, "", [], {}, ["a"], float("nan"), True, b"bytes"])
def test_whoever_leaves_the_source_out_gains_no_votes(nothing: Any) -> None:
    bare = [Document(page_content=str(i), metadata={"source": nothing}) for i in range(3)]
    assert grouped([*bare, Document(page_content="3")], group_by="source") == [["0", "1", "2", "3"]]


def test_sources_that_are_paths_or_numbers_count() -> None:
    documents = [Document(page_content="a", metadata={"source": s}) for s in (Path("x"), 1, "x", "1")]
    assert grouped(documents, group_by="source") == [["a", "a"], ["a", "a"]]


def test_a_function_of_the_metadata_groups() -> None:
    documents = [Document(page_content=str(i), metadata={"author": i % 2}) for i in range(4)]
    assert grouped(documents, group_by=lambda d: d.metadata["author"]) == [["0", "2"], ["1", "3"]]


def test_documents_on_which_the_function_fails_share_one_group_and_are_reported() -> None:
    documents = [
        Document(page_content="0", metadata={"author": "a"}),
        Document(page_content="1"),
        Document(page_content="2", metadata={"author": ["unhashable"]}),
    ]
    chain = create_robust_documents_chain(
        Reader(),
        PROMPT,
        group_by=lambda d: d.metadata["author"],
        return_robustness=True,
        aggregation="keyword",
        final="always",
    )
    answer = chain.invoke({"input": QUESTION, "context": documents})["robustness"]
    assert [len(g.passage_ids) for g in answer.groups] == [1, 2]
    told = "2 of 3 passages have no group_by key (1 KeyError, 1 TypeError); they share one group"
    assert told in answer.warnings


@pytest.mark.parametrize("make", HOSTILE_KEYS.values(), ids=HOSTILE_KEYS)
@pytest.mark.parametrize("by", ["source", lambda passage: passage.metadata["source"]], ids=["source", "function"])
def test_sources_made_to_be_unequal_win_no_votes(make: Any, by: Any) -> None:
    evil = [planted().model_copy(update={"metadata": {"source": make()}}) for _ in range(5)]
    chain = create_robust_documents_chain(Reader(), PROMPT, group_by=by, return_robustness=True)
    answer = chain.invoke({"input": QUESTION, "context": [*truthful(4), *evil]})["robustness"]
    assert "Paris" in answer.text
    assert [len(g.passage_ids) for g in answer.groups] == [1, 1, 1, 1, 5]
    assert any("5 of 9 passages have no" in w for w in answer.warnings)


def test_groups_of_several_documents_carry_a_warning() -> None:
    chain = create_robust_documents_chain(
        Reader(), PROMPT, votes=VoteRules(group_size=2), return_robustness=True, aggregation="keyword", final="always"
    )
    answer = chain.invoke({"input": QUESTION, "context": truthful(6)})["robustness"]
    assert any(w.startswith("groups of 2 adjacent passages") for w in answer.warnings)


def test_ids_and_sources_are_in_the_report() -> None:
    documents = [d.model_copy(update={"id": f"doc-{i}"}) for i, d in enumerate(truthful(3))]
    chain = create_robust_documents_chain(
        Reader(), PROMPT, return_robustness=True, aggregation="keyword", final="always"
    )
    groups = chain.invoke({"input": QUESTION, "context": documents})["robustness"].groups
    assert [g.passage_ids for g in groups] == [("doc-0",), ("doc-1",), ("doc-2",)]
    assert groups[0].origins == ("https://0.example",)


@settings(max_examples=60, deadline=None)
@given(
    hostile=st.lists(st.builds(Document, page_content=TEXTS, metadata=METADATA), max_size=2),
    by=st.sampled_from([None, "source", lambda d: d.metadata["author"]]),
)
def test_no_metadata_and_no_text_breaks_the_call(hostile: list[Document], by: Any) -> None:
    shown = PromptTemplate.from_template("{source} {score:.2f} {page_content}")
    chain = create_robust_documents_chain(
        Reader(),
        PROMPT,
        group_by=by,
        document_prompt=shown,
        extractor=lambda text: set(text.lower().split()),
        aggregation="keyword",
        final="always",
    )
    honest = [
        d.model_copy(update={"metadata": {**d.metadata, "score": 1, "author": i}}) for i, d in enumerate(truthful())
    ]
    before = [d.model_copy(deep=True) for d in hostile]
    assert "Paris" in chain.invoke({"input": QUESTION, "context": [*honest, *hostile]})
    assert repr(hostile) == repr(before)


def test_a_stream_that_is_left_when_its_loop_ends_is_closed_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    chain = create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always")

    async def leave() -> None:
        async for _ in chain.astream({"input": QUESTION, "context": truthful()}):
            break

    for _ in range(20):
        asyncio.run(leave())
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
