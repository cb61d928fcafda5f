"""`min_radius` in LangChain: below it, an abstention; nothing is shown before the radius is known."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_robustrag import (
    VoteRules,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
)
from langchain_robustrag.calls import NOSTREAM
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, Recorder, truthful

INPUT = {"input": QUESTION, "context": truthful(5)}


def radius() -> int:
    chain = create_robust_documents_chain(Reader(), PROMPT, return_robustness=True)
    found: int = chain.invoke(INPUT)["robustness"].radius
    assert found > 0
    return found


async def in_every_way(chain: Any) -> list[list[dict[str, Any]]]:
    return [
        [chain.invoke(INPUT)],
        [await chain.ainvoke(INPUT)],
        list(chain.stream(INPUT)),
        [piece async for piece in chain.astream(INPUT)],
    ]


async def test_too_small_a_radius_gives_an_abstention_in_every_way_of_calling() -> None:
    least = radius() + 1
    chain = create_robust_documents_chain(
        Reader(),
        PROMPT,
        votes=VoteRules(min_radius=least),
        return_robustness=True,
    )
    for pieces in await in_every_way(chain):
        answer = next(piece["robustness"] for piece in pieces if "robustness" in piece)
        assert [piece["answer"] for piece in pieces if "answer" in piece] == ["I don't know"]
        assert (answer.abstained, answer.radius, answer.evidence["radius"]) == (True, 0, least - 1)
        assert f"below min_radius={least}" in answer.warnings[-1]


async def test_enough_radius_gives_the_answer_in_one_piece() -> None:
    chain = create_robust_documents_chain(
        Reader(),
        PROMPT,
        votes=VoteRules(min_radius=radius()),
        return_robustness=True,
    )
    for pieces in await in_every_way(chain):
        [said] = [piece["answer"] for piece in pieces if "answer" in piece]
        assert "Paris" in said


def test_a_final_call_that_may_be_withheld_carries_the_tag_that_hides_it() -> None:
    recorder = Recorder()
    create_robust_documents_chain(
        Reader(), PROMPT, votes=VoteRules(min_radius=1), aggregation="keyword", final="always"
    ).invoke(INPUT, {"callbacks": [recorder]})
    [final] = recorder.named("final")
    assert NOSTREAM in final["tags"]
    create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always").invoke(
        INPUT, {"callbacks": [shown := Recorder()]}
    )
    [final] = shown.named("final")
    assert NOSTREAM not in final["tags"]


def test_every_factory_takes_it() -> None:
    least = radius() + 1
    rag = create_robust_retrieval_chain(
        ListRetriever(documents=truthful(5)),
        Reader(),
        PROMPT,
        votes=VoteRules(min_radius=least),
    )
    assert rag.invoke({"input": QUESTION})["answer"] == "I don't know"
    assert (
        create_robust_node(Reader(), PROMPT, votes=VoteRules(min_radius=least)).invoke(INPUT)["answer"]
        == "I don't know"
    )


@pytest.mark.parametrize("least", [-1, 0.5, True, "2"])
def test_it_is_checked_when_the_chain_is_made(least: Any) -> None:
    with pytest.raises(ValueError, match=r"min_radius=.* must be a whole number of at least 0"):
        create_robust_documents_chain(
            Reader(), PROMPT, votes=VoteRules(min_radius=least), aggregation="keyword", final="always"
        )
