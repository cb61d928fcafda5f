"""The guide's rows hold: each use before and after, what each mistake says, and the support chat of the examples."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import llama_index.core.agent.workflow as workflows
import llama_index.core.chat_engine as chats
import llama_index.core.query_engine as engines
import pytest
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.prompts import PromptTemplate
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.tools import QueryEngineTool

import llamaindex_robustrag
from robustrag_integrations import CallableModel
from tests.docs.pages import Page
from tests.llamaindex.agents import Obeying
from tests.llamaindex.fakes import EVIL, QUESTION, index_of, truthful

GUIDE = Page.read("docs/guide/llamaindex.md").text
PLANTED = [f"{QUESTION} {EVIL} {number}." for number in range(2)]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table."""
    section = GUIDE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]


def code(cell: str) -> str:
    return cell.partition("`")[2].partition("`")[0]


def names() -> dict[str, Any]:
    """What the rows name."""
    web, handbook, uploads = (
        index_of(texts).as_retriever(similarity_top_k=8)
        for texts in ([*truthful(5), PLANTED[0]], truthful(2), ["Rain falls.", *PLANTED])
    )
    given: dict[str, Any] = {"QueryFusionRetriever": QueryFusionRetriever, "QueryEngineTool": QueryEngineTool}
    for module in (engines, chats, workflows, llamaindex_robustrag):
        given |= vars(module)
    return {**given, "web": web, "handbook": handbook, "uploads": uploads, "llm": Obeying(plan=["facts"])}


def asked(program: Any) -> str:
    async def run() -> str:
        return str(await program.run(QUESTION))

    if hasattr(program, "run"):
        return asyncio.run(run())
    return str(program.chat(QUESTION) if isinstance(program, BaseChatEngine) else program.query(QUESTION))


def test_each_use_is_taken_over_before_and_not_after() -> None:
    given = names()
    uses = rows("Before and after")
    assert len(uses) == 5
    for use, before, after in uses:
        stock, ours = (eval(code(cell), given) for cell in (before, after))
        if "handbook" in use:
            given |= {"stock": stock, "engine": ours}
        assert (asked(stock), asked(ours)) == ("Berlin", "Paris"), use


def streamed(given: dict[str, Any]) -> Any:
    return given["RobustRAGQueryEngine"].from_args(given["uploads"], llm=given["llm"], streaming=True).query(QUESTION)


def test_each_mistake_says_what_to_write() -> None:
    given = names()
    robust, uploads, llm = given["RobustRAGQueryEngine"].from_args, given["uploads"], given["llm"]
    template = {"text_qa_template": PromptTemplate("{context_str} {query_str}")}
    mistakes = [
        lambda: robust(uploads, llm=llm, response_mode="refine"),
        lambda: robust(uploads, llm=llm, similarity_top_k=10),
        lambda: robust(uploads, llm=llm, temperature=0),
        lambda: robust(index_of(["Rain."]), llm=llm),
        lambda: robust(uploads, llm="gpt-4"),
        lambda: robust(uploads, llm=llm, group_by=lambda node: node.node.metadata["team"]).query(QUESTION),
        lambda: robust(uploads, llm=llm).update_prompts(template),
        lambda: robust(uploads, llm=llm, trusted_retriever=uploads),
        lambda: given["RobustQueryEngineTool"].from_defaults(given["RetrieverQueryEngine"].from_args(uploads, llm=llm)),
        lambda: given["robust_answer"](streamed(given)),
    ]
    for (written, said), mistake in zip(rows("Mistakes, and what you read"), mistakes, strict=True):
        with pytest.raises((TypeError, ValueError, RuntimeError), match=re.escape(said)) as raised:
            mistake()
        assert "_robustrag" not in str(raised.value), written


def test_the_support_chat_is_decided_by_the_manual_or_by_two_uploads(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("llama_index.retrievers.bm25", reason="llama-index-retrievers-bm25 is not installed")
    from examples import llamaindex_support_chat as support

    uploads = {**support.UPLOADS, **{f"more-{n}.txt": support.UPLOADS["ticket-30.txt"] for n in range(8)}}
    model = CallableModel(support.stand_in, samples=False)
    chat = support.support_chat(support.pages(support.MANUAL), support.pages(uploads), model)
    said = [support.say(chat, message) for message in support.CONVERSATION[:2]]
    assert said == [
        "To reset the R2, hold its button for ten seconds.",
        "To reset the R5, pull its plug for a minute.",
    ]
    planted = support.support_chat(
        support.pages(support.MANUAL), support.pages({"30": uploads["ticket-30.txt"]}), model
    )
    assert support.say(planted, support.CONVERSATION[2]) == "Neither the manual nor two uploads say that."
    capsys.readouterr()
    support.main([])
    shown = capsys.readouterr().out
    assert re.findall(r"decided by (\w+)", shown) == ["trusted"] * 2 + ["votes", "conversation"]
    assert "votes, radius 0: ticket-17.txt, ticket-21.txt" in shown
    assert "8 messages; 0 prompts" in shown
