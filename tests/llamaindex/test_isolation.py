"""What one prompt holds: one document, whatever splits or packs nodes; where nodes come from, and which are shown."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_robustrag import RobustRAGSynthesizer, robust_answer
from tests.llamaindex.fakes import EVIL, QUESTION, TRUE, AsyncFactReader, FactReader, WordEmbedding, nodes_of, truthful


def test_trap_accumulate_gives_one_long_document_many_votes_and_we_give_it_one(llm: FactReader) -> None:
    nodes = nodes_of([*truthful(), f"{EVIL} " * 2000])
    stock = FactReader()
    get_response_synthesizer(llm=stock, response_mode="accumulate").synthesize(QUESTION, nodes)
    assert sum(EVIL in prompt for prompt in stock.seen) > 1
    response = RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes)
    assert sum(EVIL in prompt for prompt in llm.seen) == 1
    assert str(response) == "Paris"
    report = response.metadata["robustrag"]
    assert [g["status"] for g in report["sources"]] == ["supports"] * 6 + ["differs"]
    assert report["radius"] == 2


@pytest.mark.parametrize("style", ["synthesize", "asynthesize"])
async def test_as_much_of_a_source_is_read_as_fits_the_window_and_the_rest_is_told(style: str) -> None:
    llm = AsyncFactReader(window=1000)
    nodes = nodes_of([TRUE, TRUE + " Yes.", f"{TRUE} {'The harvest went on as planned. ' * 400}"])
    given: Any = getattr(RobustRAGSynthesizer(llm), style)(QUESTION, nodes)
    answer = robust_answer(await given if style == "asynthesize" else given)
    assert (answer.text, [s.status for s in answer.sources]) == ("Paris", ["supports"] * 3)
    assert [s.truncated for s in answer.sources] == [False, False, True]
    assert any(
        "1 of 3 sources was cut" in warning or "1 of 3 sources were cut" in warning for warning in answer.warnings
    )
    assert answer.model_calls == answer.spending.calls == len(llm.seen) == 3
    assert 2_000 < max(map(len, llm.seen)) < 6_000


def test_trap_citation_engine_splits_a_document_which_still_has_one_vote(llm: FactReader) -> None:
    texts = [*truthful(4), f"{EVIL} " * 60]
    documents = [Document(text=text, doc_id=f"doc-{i}") for i, text in enumerate(texts)]
    index = VectorStoreIndex.from_documents(documents, embed_model=WordEmbedding())
    engine = CitationQueryEngine.from_args(
        index,
        llm=llm,
        response_synthesizer=RobustRAGSynthesizer(llm=llm),
        text_splitter=TokenTextSplitter(chunk_size=64, chunk_overlap=0),
        similarity_top_k=5,
    )
    response = engine.query(QUESTION)
    assert len(response.source_nodes) > 5
    assert len(response.metadata["robustrag"]["sources"]) == 5
    assert str(response) == "Paris"


@pytest.mark.parametrize("own", [None, "{content}\n(of {metadata_str})"])
def test_metadata_is_read_where_a_template_of_the_users_names_it(own: str | None) -> None:
    llm, more = FactReader(), {} if own is None else {"text_template": own}
    node = TextNode(
        text=TRUE, metadata={"file_path": "wiki/a.md", "team": "red"}, excluded_llm_metadata_keys=["team"], **more
    )
    shelf = [NodeWithScore(node=TextNode(text="Rain.", metadata={"file_path": "manual/b.md"}, **more))]
    RobustRAGSynthesizer(llm).synthesize(QUESTION, [NodeWithScore(node=node)], trusted_nodes=shelf)
    trusted, isolated = llm.seen
    assert "file_path: manual/b.md" in trusted  # as stock shows it
    assert (f"{TRUE}\n(of file_path: wiki/a.md)" in isolated) == (own is not None)
    assert ("wiki" in isolated, "red" in isolated) == (own is not None, False)
