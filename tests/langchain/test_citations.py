"""The documents behind an answer: cited, marked, and shown alone where that is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_robustrag import create_robust_retrieval_chain, supporting_documents
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader

INPUT = {"input": QUESTION}


async def every_way(chain: Any) -> list[dict[str, Any]]:
    found = [chain.invoke(INPUT), await chain.ainvoke(INPUT)]
    for chunks in (list(chain.stream(INPUT)), [chunk async for chunk in chain.astream(INPUT)]):
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole = whole + chunk
        found.append(whole)
    return found


async def test_supporting_documents_leave_out_what_was_outvoted(poisoned: ListRetriever) -> None:
    result = create_robust_retrieval_chain(poisoned, Reader(), PROMPT, aggregation="keyword", final="always").invoke(
        INPUT
    )
    honest = [d for i, d in enumerate(poisoned.documents) if result["robustness"].groups[i].status == "supports"]
    assert poisoned.documents[1] not in honest
    assert supporting_documents(result["robustness"], result["context"]) == honest
    assert supporting_documents(result["robustness"].to_dict(), result["context"]) == honest
    shown = create_robust_retrieval_chain(
        poisoned, Reader(), PROMPT, supporting_only=True, aggregation="keyword", final="always"
    )
    for whole in await every_way(shown):
        assert whole["context"] == honest
        assert whole["answer"] == result["answer"]
        assert set(whole) == set(result)


async def test_no_outvoted_document_is_ever_streamed(poisoned: ListRetriever) -> None:
    chain = create_robust_retrieval_chain(
        poisoned, Reader(), PROMPT, supporting_only=True, aggregation="keyword", final="always"
    )
    keys = [next(iter(chunk)) for chunk in chain.stream(INPUT)]
    assert keys.count("context") == 1
    assert keys[-1] == "context"


async def test_markers_are_the_same_in_every_way_of_asking(poisoned: ListRetriever) -> None:
    chain = create_robust_retrieval_chain(
        poisoned, Reader(), PROMPT, citation_markers=True, aggregation="keyword", final="always"
    )
    results = await every_way(chain)
    assert {whole["answer"] for whole in results} == {results[0]["robustness"].marked_text}
    assert results[0]["answer"].startswith("It is Paris [1]")
    assert results[0]["robustness"].text == "It is Paris indeed"


def test_documents_of_another_answer_are_refused(poisoned: ListRetriever) -> None:
    result = create_robust_retrieval_chain(poisoned, Reader(), PROMPT, aggregation="keyword", final="always").invoke(
        INPUT
    )
    with pytest.raises(ValueError, match="give all of them"):
        supporting_documents(result["robustness"], poisoned.documents[:2])
    with pytest.raises(ValueError, match="not a report"):
        supporting_documents({"text": "x"}, poisoned.documents)
