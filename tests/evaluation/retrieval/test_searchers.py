"""Retrievers of every kind find the passages again that the attacker planted."""

from __future__ import annotations

import pytest

from robustrag_integrations.evaluation.retrieval.corpora import told_apart
from robustrag_integrations.evaluation.retrieval.searchers import searcher_of
from robustrag_integrations.grouping.passages import Passage
from tests.evaluation.retrieval import plugin

HERE = "tests.evaluation.retrieval.plugin"
QUERY = "Who runs the mill?"
TEXTS = ["Who runs the mill? Mallory runs it", "The weather was fine", "Anna runs the mill", "Zyx"]
CORPUS = told_apart([Passage(text, source=f"{i}.txt") for i, text in enumerate([*TEXTS, TEXTS[0]])], "p")


@pytest.mark.parametrize("name", ["bm25", f"{HERE}:embedding", f"{HERE}:make_embedding"])
def test_the_nearest_passages_come_first_and_copies_are_told_apart(name: str) -> None:
    found = searcher_of(name)(CORPUS)(QUERY, 3)
    assert [p.id for p in found] == ["p0", "p4", "p2"]


def test_a_vector_store_of_langchain_is_a_retriever() -> None:
    pytest.importorskip("langchain_core")
    search = searcher_of(f"{HERE}:langchain")(CORPUS)
    assert {p.id for p in search(QUERY, 3)} == {"p0", "p4", "p2"}
    assert len(search(QUERY, 5)) == 4  # what the retriever was made to give


def test_an_index_of_llamaindex_is_a_retriever() -> None:
    pytest.importorskip("llama_index.core")
    assert {p.id for p in searcher_of(f"{HERE}:llamaindex")(CORPUS)(QUERY, 3)} == {"p0", "p4", "p2"}


def test_bare_texts_are_found_again_each_copy_once() -> None:
    found = searcher_of(f"{HERE}:texts")(CORPUS)(QUERY, 2)
    assert [p.id for p in found] == ["p0", "p4"]


def test_a_text_is_embedded_once() -> None:
    searcher = searcher_of(f"{HERE}:embedding")
    plugin.embedded.clear()
    for corpus in (CORPUS, [*CORPUS, Passage("new", id="x")], CORPUS):
        searcher(corpus)(QUERY, 2)
    assert plugin.embedded == [*TEXTS, "new"]


def test_what_is_in_no_corpus_is_an_error_and_no_benign_passage() -> None:
    with pytest.raises(ValueError, match="not in the corpus"):
        searcher_of(f"{HERE}:strange")(CORPUS)(QUERY, 2)


@pytest.mark.parametrize(
    ("name", "said"),
    [("no.such:thing", "cannot import"), (f"{HERE}:absent", "absent"), (f"{HERE}:embedded", "gave a list")],
)
def test_what_is_no_retriever_is_refused(name: str, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        searcher_of(name)
    with pytest.raises(TypeError, match="gave a int"):
        searcher_of(f"{HERE}:nothing")(CORPUS)
