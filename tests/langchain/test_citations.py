"""The documents behind an answer: cited, marked, and shown alone where that is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_robustrag import create_robust_retrieval_chain, create_robust_retriever_tool, supporting_documents
from robustrag_integrations import RobustAnswer
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


@pytest.mark.parametrize("supporting_only", [False, True])
async def test_positions_are_places_in_the_documents_that_are_given(
    poisoned: ListRetriever, supporting_only: bool
) -> None:
    chain = create_robust_retrieval_chain(
        poisoned, Reader(), PROMPT, aggregation="keyword", final="always", supporting_only=supporting_only
    )
    sources = [d.metadata["source"] for i, d in enumerate(poisoned.documents) if i != 1]
    for whole in await every_way(chain):
        cited = whole["robustness"].citations
        assert [whole["context"][at].metadata["source"] for c in cited for at in c.positions] == sources
        assert [c.origins for c in cited] == [(source,) for source in sources]
        assert supporting_documents(whole["robustness"], whole["context"]) == [
            d for d in poisoned.documents if d.metadata["source"] in sources
        ]
    tool = create_robust_retriever_tool(
        poisoned, Reader(), "search", "S.", prompt=PROMPT, supporting_only=supporting_only
    )
    call = {"name": "search", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"}
    artifact = tool.invoke(call).artifact
    for citation in RobustAnswer.from_dict(artifact["robustness"]).citations:
        assert [artifact["documents"][at].metadata["source"] for at in citation.positions] == list(citation.origins)


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
