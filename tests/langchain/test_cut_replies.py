"""Replies that are not whole, and reasoning in the text, through LangChain: fakes and `ChatOpenAI` in every style."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from langchain_robustrag import create_robust_documents_chain
from robustrag_integrations.errors import ModelError
from tests.helpers.openai_server import LoopbackServer, Reply
from tests.langchain.fakes import Reader
from tests.langchain.test_configured_models import STYLES, report
from tests.langchain.test_replies import GIVEN, PROMPT, TRACE, winner

VOTING: dict[str, Any] = {"aggregation": "voting", "choices": ["Karl Gross", "Hans Wolf"]}


def choice(prompt: str) -> str:
    return "B" if "Hans Wolf won" in prompt else "A"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("tag", ["think", "reasoning"])
async def test_reasoning_in_the_text_neither_counts_nor_shows(style: str, tag: str) -> None:
    llm = Reader(answer=lambda prompt: f"<{tag}>{TRACE}</{tag}> {winner(prompt)}")
    answer = await report(
        create_robust_documents_chain(llm, PROMPT, return_robustness=True),
        style,
        GIVEN,
    )
    assert (answer.text, answer.radius) == ("Karl Gross", 3)
    assert [g.status for g in answer.groups] == ["supports"] * 9 + ["differs"]
    llm = Reader(answer=lambda prompt: f"<{tag}>Not A, but B. Hans Wolf.</{tag}> {choice(prompt)}")
    answer = await report(
        create_robust_documents_chain(llm, return_robustness=True, **VOTING),
        style,
        GIVEN,
    )
    assert (answer.choice, answer.radius) == (0, 3)


@pytest.fixture
def client() -> Iterator[Callable[[Callable[[str], str | Reply]], Any]]:
    """`ChatOpenAI` on a server that replies like this."""
    openai = pytest.importorskip("langchain_openai")
    servers: list[LoopbackServer] = []

    def made(reply: Callable[[str], str | Reply]) -> Any:
        servers.append(LoopbackServer(reply))
        return openai.ChatOpenAI(model="m", base_url=servers[-1].url, api_key="none", temperature=0, max_retries=0)

    yield made
    for server in servers:
        server.close()


def _is_final(prompt: str) -> bool:
    return "won the election." not in prompt


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_cut_reply_of_a_group_abstains(style: str, finish: str, client: Any) -> None:
    def cut(prompt: str) -> str | Reply:
        return Reply("Hans Wolf", finish=finish) if "Note 1:" in prompt else winner(prompt)

    chain = create_robust_documents_chain(
        client(cut), PROMPT, return_robustness=True, aggregation="keyword", final="always"
    )
    answer = await report(chain, style, GIVEN)
    assert answer.text == "Karl Gross"
    assert [g.status for g in answer.groups] == ["supports", "abstained", *["supports"] * 7, "differs"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_cut_final_answer_is_an_error(style: str, finish: str, client: Any) -> None:
    def cut(prompt: str) -> str | Reply:
        return Reply("Karl Gro", finish=finish) if _is_final(prompt) else winner(prompt)

    chain = create_robust_documents_chain(
        client(cut), PROMPT, return_robustness=True, aggregation="keyword", final="always"
    )
    with pytest.raises(ModelError, match="no complete answer"):
        await report(chain, style, GIVEN)
