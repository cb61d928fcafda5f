"""A live server on loopback: `transformers serve` with the bundled reader, asked through OpenAILike."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.chat_engine.types import BaseChatEngine

from llamaindex_robustrag import (
    CallOptions,
    RobustCondensePlusContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
)
from tests.helpers.serving import free_port
from tests.llamaindex.fakes import index_of
from tests.llamaindex.library import ASKED, FACTS, PLANTED

pytest.importorskip("llama_index.llms.openai_like", reason="needs llama-index-llms-openai-like")


@pytest.fixture
def served(reader_server: str, reader_folder: Path) -> Any:
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model=str(reader_folder),
        api_base=reader_server,
        api_key="none",
        is_chat_model=True,
        context_window=1024,
        max_tokens=16,
        temperature=0.0,
        timeout=120,
    )


@pytest.fixture(scope="module")
def poisoned() -> VectorStoreIndex:
    return index_of([*FACTS, PLANTED])


@pytest.mark.parametrize("style", ["query", "aquery", "stream", "astream"])
async def test_answers_come_from_the_server_in_every_style(poisoned: VectorStoreIndex, served: Any, style: str) -> None:
    retriever = poisoned.as_retriever(similarity_top_k=6)
    engine = RobustRAGQueryEngine.from_args(
        retriever, llm=served, calls=CallOptions(num_workers=2), streaming="stream" in style
    )
    response = await engine.aquery(ASKED) if style.startswith("a") else engine.query(ASKED)
    if style == "astream":
        pieces = [piece async for piece in response.async_response_gen()]
    else:
        pieces = list(response.response_gen) if style == "stream" else [str(response)]
    assert "tarsk" in "".join(pieces).casefold()
    report = response.metadata["robustrag"]
    assert [g["error"] for g in report["groups"]] == [None] * 6
    assert [g["status"] for g in report["groups"]].count("supports") >= 5
    about_documents = ("hold the same text", "told apart by document ids")
    assert [w for w in report["warnings"] if not any(part in w for part in about_documents)] == []


async def test_a_chat_engine_talks_to_the_server(poisoned: VectorStoreIndex, served: Any) -> None:
    retriever = poisoned.as_retriever(similarity_top_k=6)
    engine: BaseChatEngine = RobustCondensePlusContextChatEngine.from_defaults(
        retriever, llm=served, calls=CallOptions(num_workers=2)
    )
    reply = await engine.astream_chat(ASKED)
    assert "tarsk" in "".join([piece async for piece in reply.async_response_gen()]).casefold()


def test_the_default_temperature_is_warned_of(served: Any, caplog: pytest.LogCaptureFixture) -> None:
    """OpenAILike samples with 0.1 unless it is told not to."""
    warm = served.model_copy(update={"temperature": 0.1})
    with caplog.at_level(logging.WARNING, logger="llamaindex_robustrag"):
        RobustRAGSynthesizer(llm=warm)
    assert "the model samples (temperature 0.1; set temperature=0)" in caplog.text


def test_a_server_that_is_gone_fails_groups_and_not_the_process(poisoned: VectorStoreIndex, served: Any) -> None:
    from robustrag_integrations import QuorumError

    gone = served.model_copy(update={"api_base": f"http://127.0.0.1:{free_port()}/v1", "max_retries": 0})
    engine = RobustRAGQueryEngine.from_args(
        poisoned.as_retriever(similarity_top_k=2), llm=gone, calls=CallOptions(attempts=1)
    )
    with pytest.raises(QuorumError, match="only 0 of 2 groups could be asked"):
        engine.query(ASKED)
