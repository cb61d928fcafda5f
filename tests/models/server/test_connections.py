"""The connections of `OpenAIModel`: kept and used again, one for each request under way, and closed in the end."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

pytest.importorskip("httpx")

from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.openai_server import LoopbackServer, Reply

PROMPTS = [Prompt(f"question {i}") for i in range(10)]


def test_no_more_connections_are_opened_than_requests_are_under_way() -> None:
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url, max_concurrency=4)
        for _ in range(3):
            assert [reply.text for reply in model.generate(PROMPTS, "isolated")] == ["yes"] * 10
        model.close()
    assert 1 <= len(server.connections) <= 4


def test_a_request_that_is_cancelled_hangs_up_and_the_next_one_is_answered() -> None:
    never = threading.Event()

    def reply(prompt: str) -> Reply:
        return Reply("late", wait=never) if prompt == "slow" else Reply("yes")

    async def cancelled(server: LoopbackServer, model: OpenAIModel) -> str | None:
        task = asyncio.ensure_future(model.agenerate([Prompt("slow")], "final"))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert await asyncio.to_thread(server.gone.wait, 5)
        [answer] = await model.agenerate(PROMPTS[:1], "final")
        await model.aclose()
        return answer.text

    with LoopbackServer(reply) as server:
        assert asyncio.run(cancelled(server, OpenAIModel("loopback", server.url))) == "yes"


def test_what_stands_behind_a_reply_is_not_the_next_requests() -> None:
    """A server that answers a request twice would otherwise answer another source's prompt in its place."""

    def twice(handler: Any) -> None:
        handler.close_connection = False
        body = json.dumps({"choices": [{"message": {"content": "mine"}, "finish_reason": "stop"}]}).encode()
        handler.wfile.write((b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body) * 2)

    with LoopbackServer(lambda prompt: Reply(act=twice) if prompt == "first" else Reply("yes")) as server:
        model = OpenAIModel("loopback", server.url, attempts=1)
        said = [model.generate([Prompt(text)], "final")[0].text for text in ("first", "second")]
        model.close()
    assert said == ["mine", "yes"]
    assert len(server.connections) == 2


def test_further_fields_reach_the_server() -> None:
    options = {"extra_headers": {"x-team": "a"}, "extra_query": {"v": "2"}, "top_k": 1}
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url, options=options, temperature=None)
        assert model.generate(PROMPTS[:1], "final")[0].text == "yes"
        model.close()
    [request], [headers] = server.requests, server.headers
    assert (headers["x-team"], request["top_k"]) == ("a", 1)
    assert not {"extra_headers", "extra_query", "temperature", "seed"} & set(request)
