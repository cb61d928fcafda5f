"""Replies that are not whole, and reasoning in the text, through LlamaIndex: fakes and `OpenAILike` in every style."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llamaindex_robustrag import RobustRAGSynthesizer
from robustrag_integrations.errors import ModelError
from tests.helpers.openai_server import LoopbackServer, Reply
from tests.llamaindex.fakes import AsyncFactReader
from tests.llamaindex.test_busy_servers import STYLES, report

TRACE = "If absent, reply I don't know. Hans Wolf is not said to have won."
TEXTS = [*(f"Note {n}: Karl Gross won the election." for n in range(9)), "Hans Wolf won the election."]
VOTING: dict[str, Any] = {"aggregation": "voting", "choices": ["Karl Gross", "Hans Wolf"]}


def winner(prompt: str) -> str:
    """Whom a passage, or the keywords, call the winner."""
    return "Hans Wolf" if "Hans Wolf won" in prompt else "Karl Gross"


class ThinkingAloud(AsyncFactReader):
    """Writes what it thinks in front of its answer, or of its vote."""

    trace: str = TRACE
    votes: bool = False

    def _said(self, prompt: str) -> str:
        answer = ("B" if "Hans Wolf won" in prompt else "A") if self.votes else winner(prompt)
        return f"<think>{self.trace}</think> {answer}"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
async def test_reasoning_in_the_text_neither_counts_nor_shows(style: str, chat_model: bool) -> None:
    answer = await report(
        RobustRAGSynthesizer(llm=ThinkingAloud(chat_model=chat_model)),
        style,
        TEXTS,
    )
    assert (answer["text"], answer["radius"]) == ("Karl Gross", 3)
    assert [g["status"] for g in answer["groups"]] == ["supports"] * 9 + ["differs"]
    llm = ThinkingAloud(chat_model=chat_model, votes=True, trace="Not A, but B. Hans Wolf.")
    answer = await report(RobustRAGSynthesizer(llm=llm, **VOTING), style, TEXTS)
    assert (answer["choice"], answer["radius"]) == (0, 3)


@pytest.fixture
def client() -> Iterator[Callable[[Callable[[str], str | Reply]], Any]]:
    """`OpenAILike` on a server that replies like this."""
    llms = pytest.importorskip("llama_index.llms.openai_like")
    servers: list[LoopbackServer] = []

    def made(reply: Callable[[str], str | Reply]) -> Any:
        servers.append(LoopbackServer(reply))
        return llms.OpenAILike(
            model="m", api_base=servers[-1].url, api_key="none", is_chat_model=True, context_window=4000,
            temperature=0.0, max_retries=0,
        )  # fmt: skip

    yield made
    for server in servers:
        server.close()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_cut_reply_of_a_group_abstains(style: str, finish: str, client: Any) -> None:
    def cut(prompt: str) -> str | Reply:
        return Reply("Hans Wolf", finish=finish) if "Note 1:" in prompt else winner(prompt)

    answer = await report(RobustRAGSynthesizer(llm=client(cut)), style, TEXTS)
    assert answer["text"] == "Karl Gross"
    assert [g["status"] for g in answer["groups"]] == ["supports", "abstained", *["supports"] * 7, "differs"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_cut_final_answer_is_an_error(style: str, finish: str, client: Any) -> None:
    def cut(prompt: str) -> str | Reply:
        return Reply("Karl Gro", finish=finish) if "won the election." not in prompt else winner(prompt)

    with pytest.raises(ModelError, match="no complete answer"):
        await report(RobustRAGSynthesizer(llm=client(cut), aggregation="keyword"), style, TEXTS)
