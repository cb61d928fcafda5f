"""Real retrievers in front of the bundled reader: a vector index with a small local embedding, and BM25."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the extra local is not installed")

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import TokenTextSplitter

from llamaindex_robustrag import CallOptions, RobustContextChatEngine, RobustRAGQueryEngine, assert_defended
from robustrag_integrations import LocalModel
from tests.llamaindex.fakes import WordEmbedding
from tests.llamaindex.library import ASKED, FACTS, OTHER, PLANTED

DOCUMENTS = [Document(text=text, doc_id=f"doc-{i}") for i, text in enumerate([*FACTS, PLANTED, *OTHER])]


@pytest.fixture(scope="module")
def local(reader_folder: Path) -> LocalModel:
    return LocalModel.from_pretrained(str(reader_folder), max_context_tokens=48, max_new_tokens=16)


def vectors() -> Any:
    return VectorStoreIndex.from_documents(DOCUMENTS, embed_model=WordEmbedding()).as_retriever(similarity_top_k=6)


def bm25() -> Any:
    retrievers = pytest.importorskip(
        "llama_index.retrievers.bm25", reason="llama-index-retrievers-bm25 is not installed"
    )
    nodes = TokenTextSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(DOCUMENTS)
    return retrievers.BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=6)


@pytest.mark.parametrize("aggregation", ["keyword", "decoding"])
@pytest.mark.parametrize("retriever", [vectors, bm25])
async def test_a_planted_document_among_honest_ones_loses(local: LocalModel, retriever: Any, aggregation: str) -> None:
    engine = RobustRAGQueryEngine.from_args(
        retriever(), llm=local, aggregation=aggregation, calls=CallOptions(num_workers=1)
    )
    assert assert_defended(engine, ASKED).planted == (type(engine.retriever).__name__,)
    response = engine.query(ASKED)
    report = response.metadata["robustrag"]
    assert PLANTED in [n.node.text for n in response.source_nodes]
    assert "tarsk" in str(response).casefold()
    assert "ombrel" not in str(response).casefold()
    assert {g["origins"][0] for g in report["groups"]} <= {d.doc_id for d in DOCUMENTS}
    assert str(await engine.aquery(ASKED)) == str(response)


def test_the_robust_chat_engine_holds_a_conversation_with_the_reader(local: LocalModel) -> None:
    engine = RobustContextChatEngine.from_defaults(vectors(), llm=local, calls=CallOptions(num_workers=1))
    assert "tarsk" in str(engine.chat(ASKED)).casefold()
    assert len(engine.chat_history) == 2
