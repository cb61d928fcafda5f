"""Retrieval, answer and report in one chain."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableLambda

from langchain_robustrag import create_robust_retrieval_chain
from robustrag_integrations import RobustAnswer
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, Recorder

INPUT = {"input": QUESTION, "session": 7}


def check(result: Any, poisoned: ListRetriever) -> None:
    assert set(result) == {"input", "session", "context", "answer", "robustness"}
    assert result["context"] == poisoned.documents
    assert result["answer"] == result["robustness"].text == "It is Paris indeed"
    assert isinstance(result["robustness"], RobustAnswer)
    assert result["robustness"].groups[1].status == "outvoted"


async def test_every_call_style_gives_answer_and_report(poisoned: ListRetriever) -> None:
    chain = create_robust_retrieval_chain(poisoned, Reader(), PROMPT)
    check(chain.invoke(INPUT), poisoned)
    check(await chain.ainvoke(INPUT), poisoned)
    check(chain.batch([INPUT, INPUT])[1], poisoned)
    check((await chain.abatch([INPUT, INPUT]))[1], poisoned)


async def test_streaming_gives_the_answer_in_pieces_and_the_report_last(poisoned: ListRetriever) -> None:
    chain = create_robust_retrieval_chain(poisoned, Reader(), PROMPT)
    chunks = list(chain.stream(INPUT))
    assert [next(iter(chunk)) for chunk in chunks] == ["input", "context", *["answer"] * 4, "robustness"]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    check(whole, poisoned)
    assert [list(c) for c in chunks] == [list(c) async for c in chain.astream(INPUT)]


def test_any_runnable_can_retrieve(poisoned: ListRetriever) -> None:
    chain = create_robust_retrieval_chain(RunnableLambda(lambda x: poisoned.invoke(x["input"])), Reader(), PROMPT)
    check(chain.invoke(INPUT), poisoned)


def test_it_is_one_tree(poisoned: ListRetriever) -> None:
    recorder = Recorder()
    create_robust_retrieval_chain(poisoned, Reader(), PROMPT).invoke(INPUT, {"callbacks": [recorder]})
    assert [run["name"] for run in recorder.roots()] == ["robust_retrieval_chain"]
    assert len(recorder.named("group:")) == 6
    assert len(recorder.named("retriever")) == 1
