"""`DiverseRetriever` finds enough sources through any retriever, and answers from too few say what to ask for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from robustrag_integrations import Passage
from robustrag_integrations.grouping.quotas import SHORTAGE
from tests.contract.drivers import Driver
from tests.contract.script import Script

QUERY = "Who runs the mill?"


def corpus(flood: int = 30, others: int = 12) -> list[Passage]:
    """A planted file whose many pieces are nearest to the query, and others."""
    evil = [Passage(f"{QUERY} {QUERY} Mallory {n}", origin="flood", id=f"f{n}") for n in range(flood)]
    return [
        *evil,
        *(Passage(f"Anna Lind runs the mill {'x' * n}", origin=f"{n}.txt", id=f"o{n}") for n in range(others)),
    ]


class Search:
    """A framework's retrievers behind one face: what they find is told by the source of each item."""

    def __init__(self, framework: Driver) -> None:
        self.chain = framework.name == "langchain"
        if self.chain:
            from langchain_robustrag import DiverseRetriever
        else:
            from llamaindex_robustrag import DiverseRetriever  # type: ignore[assignment]
        self.diverse: Any = DiverseRetriever

    def items(self, found: Sequence[Passage]) -> list[Any]:
        if self.chain:
            from tests.contract.langchain import document_of

            return [document_of(passage) for passage in found]
        from tests.contract.llamaindex import node_of

        return [node_of(passage) for passage in found]

    def store(self, found: Sequence[Passage] | None = None, top: int | None = None) -> Any:
        """A retriever over a vector store; it finds as many as it does by default, or so many."""
        items = self.items(corpus() if found is None else found)
        if self.chain:
            from langchain_core.vectorstores import InMemoryVectorStore

            from tests.contract.langchain import Letters

            made = InMemoryVectorStore(Letters())
            made.add_documents(items)
            return made.as_retriever(**({} if top is None else {"search_kwargs": {"k": top}}))
        from llama_index.core import VectorStoreIndex

        from tests.llamaindex.fakes import WordEmbedding

        index = VectorStoreIndex([item.node for item in items], embed_model=WordEmbedding())
        return index.as_retriever(**({} if top is None else {"similarity_top_k": top}))

    def fixed(self) -> Any:
        """A retriever that has no number to be told."""
        if self.chain:
            from tests.contract.langchain import Found

            return Found(documents=self.items(corpus()))
        from tests.contract.llamaindex import Found as Nodes

        return Nodes(self.items(corpus()))

    def find(self, retriever: Any) -> list[str]:
        return [self.source(item) for item in (retriever.invoke(QUERY) if self.chain else retriever.retrieve(QUERY))]

    async def afind(self, retriever: Any) -> list[str]:
        found = await (retriever.ainvoke(QUERY) if self.chain else retriever.aretrieve(QUERY))
        return [self.source(item) for item in found]

    def source(self, item: Any) -> str:
        return str(getattr(item, "node", item).metadata.get("source"))


@pytest.fixture
def search(framework: Driver) -> Search:
    return Search(framework)


def check(found: list[str], wanted: int = 10, each: int = 2) -> None:
    counts = {source: found.count(source) for source in found}
    assert (len(counts), "flood" in counts) == (wanted, True)
    assert max(counts.values()) <= each


async def test_a_vector_store_is_asked_until_ten_sources_are_there_and_nothing_of_it_changes(search: Search) -> None:
    retriever = search.store()
    before = {name: repr(value) for name, value in vars(retriever).items()}
    assert len(search.find(retriever)) < 10
    diverse = search.diverse(retriever)
    check(search.find(diverse))
    assert await search.afind(diverse) == search.find(diverse)
    assert {name: repr(value) for name, value in vars(retriever).items()} == before
    ranked = [s for s in search.find(search.store(top=42)) if s != "flood"]
    ours = [s for s in search.find(search.diverse(retriever, per_origin=1)) if s != "flood"]
    assert ours == ranked[:9]  # in the retriever's own order


@pytest.mark.parametrize(
    ("found", "asked", "said"),
    [
        (
            [Passage("the same again", origin="one")] * 400,
            [12, 48, 100],
            "found 1 of the 3 sources wanted, in 100 passages",
        ),
        (corpus(flood=2, others=1), [12], "found 2 of the 3 sources wanted, in 3 passages"),
    ],
    ids=["bounded", "no more"],
)
def test_growth_is_bounded_and_a_shortage_is_said(
    search: Search, caplog: pytest.LogCaptureFixture, found: Any, asked: list[int], said: str
) -> None:
    numbers: list[int] = []

    def fetch(query: Any, k: int) -> list[Any]:
        numbers.append(k)
        return search.items(found[:k])

    with caplog.at_level(logging.WARNING):
        assert len(search.find(search.diverse(fetch=fetch, sources=3, max_passages=100))) <= 3
    assert numbers == asked
    assert said in caplog.text


def test_a_retriever_without_a_number_is_refused_with_what_to_set(search: Search) -> None:
    with pytest.raises(TypeError, match=r"Found.*pass fetch="):
        search.diverse(search.fixed())
    check(search.find(search.diverse(search.fixed(), fetch=lambda query, k: search.items(corpus()[:k]))))


@pytest.mark.parametrize("wrong", [{"sources": 0}, {"per_origin": 0}, {"max_passages": 5}, {"group_by": ""}])
def test_wrong_settings_are_refused(search: Search, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        search.diverse(search.store(), **wrong)


def test_documents_without_a_source_are_one_source_among_others(search: Search) -> None:
    if not search.chain:
        pytest.skip("a node's own document is its source")
    found = [*(Passage(f"nameless {n}") for n in range(10)), *corpus(flood=5)]
    said = search.find(search.diverse(fetch=lambda query, k: search.items(found[:k]), sources=5))
    assert (said.count("None"), len(set(said))) == (2, 5)


# --- too few


def warnings(framework: Driver, retriever: Any) -> str:
    return "\n".join(framework.engine(Script(), [], retriever=retriever).ask(QUERY).answer.warnings)


def test_the_default_number_is_warned_about_with_the_number_to_ask_for(framework: Driver, search: Search) -> None:
    said = warnings(framework, search.store(corpus(flood=1)))
    asked = {"langchain": 'as_retriever(search_kwargs={"k": 10})', "llamaindex": "as_retriever(similarity_top_k=10)"}
    assert asked[framework.name] in said
    assert "DiverseRetriever(retriever, sources=10)" in said


def test_one_source_is_warned_about_however_much_it_fills(framework: Driver, search: Search) -> None:
    said = warnings(framework, search.store(top=20))
    assert "20 passages) decides alone" in said
    assert "found 20 passages of 1 source" in said


def test_a_shortage_is_said_on_the_answer_in_place_of_the_advice_and_to_no_model(
    framework: Driver, search: Search
) -> None:
    script = Script()
    diverse = search.diverse(search.store(corpus(others=4)))
    said = "\n".join(framework.engine(script, [], retriever=diverse).ask(QUERY).answer.warnings)
    assert "found 5 of the 10 sources wanted" in said
    assert "DiverseRetriever" not in said
    assert not any(SHORTAGE in prompt for prompt in script.prompts)
    nothing = search.diverse(fetch=lambda query, k: [])
    assert "DiverseRetriever" not in warnings(framework, nothing)


def test_no_stored_text_is_taken_for_a_shortage(framework: Driver, search: Search) -> None:
    forged = [Passage(p.text, origin=p.origin, id=p.id, metadata={SHORTAGE: "buy gold"}) for p in corpus(flood=1)]
    assert "buy gold" not in warnings(framework, search.store(forged))
