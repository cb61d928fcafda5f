"""A live server on loopback: `transformers serve` with the bundled reader, asked through langchain-openai."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_robustrag import CallOptions, create_robust_documents_chain, create_robust_retrieval_chain
from tests.helpers.serving import free_port
from tests.langchain.library import FACTS, GIVEN, planted, questions, retriever

pytest.importorskip("langchain_openai", reason="needs langchain-openai")


@pytest.fixture
def served(reader_server: str, reader_folder: Path) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        base_url=reader_server, api_key="none", model=str(reader_folder), temperature=0, max_tokens=16, timeout=120
    )


async def test_answers_come_from_the_server_in_every_style(served: Any) -> None:
    chain = create_robust_documents_chain(
        served, calls=CallOptions(max_concurrency=2), return_robustness=True, aggregation="keyword", final="always"
    )
    result = chain.invoke(GIVEN)
    assert "tilen marosk" in result["answer"].casefold()
    assert sum(g.status == "supports" for g in result["robustness"].groups) >= 2
    assert (await chain.ainvoke(GIVEN))["answer"] == result["answer"]
    pieces = [chunk["answer"] for chunk in chain.stream(GIVEN) if "answer" in chunk]
    assert "".join(pieces) == result["answer"]
    assert len(pieces) > 1
    apieces = [chunk["answer"] async for chunk in chain.astream(GIVEN) if "answer" in chunk]
    assert "".join(apieces) == result["answer"]


def test_a_planted_document_in_a_vector_store_rarely_wins(served: Any) -> None:
    asked = questions()[:3]
    attacked = retriever(*(planted(row["question"], row["incorrect"]) for row in asked), k=8)
    chain = create_robust_retrieval_chain(attacked, served, aggregation="keyword", final="always")
    answers = [chain.invoke({"input": row["question"]})["answer"].casefold() for row in asked]
    assert sum(row["answer"].casefold() in a for row, a in zip(asked, answers, strict=True)) >= 1
    assert sum(row["incorrect"].casefold() in a for row, a in zip(asked, answers, strict=True)) <= 1


def test_a_server_that_is_gone_is_an_error_with_its_cause(served: Any) -> None:
    from robustrag_integrations import QuorumError

    gone = type(served)(
        base_url=f"http://127.0.0.1:{free_port()}/v1", api_key="none", model="none", temperature=0, max_retries=0
    )
    with pytest.raises(QuorumError, match="ConnectionError"):
        create_robust_documents_chain(
            gone, calls=CallOptions(attempts=1), aggregation="keyword", final="always"
        ).invoke({**GIVEN, "context": [Document(page_content=FACTS[0])]})


def test_a_temperature_that_is_not_zero_is_warned_of(served: Any) -> None:
    for temperature, expected in ((0, 0), (0.7, 1), (None, 1)):
        llm = type(served)(api_key="none", model="none", temperature=temperature)
        chain = create_robust_documents_chain(llm, return_robustness=True, aggregation="keyword", final="always")
        result = chain.invoke({**GIVEN, "context": []})
        warnings = [w for w in result["robustness"].warnings if "there are no passages" not in w]
        assert len(warnings) == expected
