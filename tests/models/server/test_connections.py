"""The connections of `OpenAIModel`: kept and used again, one for each request under way, and closed in the end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("openai")

from robustrag_integrations import KeywordAggregation
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server import connection
from robustrag_integrations.models.server.connection import Client, ConnectionStack
from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.prompts import Prompt
from tests.helpers.openai_server import LoopbackServer, Reply

PROMPTS = [Prompt(f"question {i}") for i in range(10)]


def test_requests_one_after_another_share_one_connection() -> None:
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url)
        for prompt in PROMPTS:
            assert model.generate([prompt], "final")[0].text == "yes"
        model.close()
    assert len(server.connections) == 1


def test_no_more_connections_are_opened_than_requests_are_under_way() -> None:
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url, max_concurrency=4)
        for _ in range(3):
            assert [reply.text for reply in model.generate(PROMPTS, "isolated")] == ["yes"] * 10
        model.close()
    assert 1 <= len(server.connections) <= 4


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    replies = iter([Reply("yes", headers={"Connection": "close"}), Reply("yes")])
    with LoopbackServer(lambda prompt: next(replies)) as server:
        model = OpenAIModel("loopback", server.url, attempts=1)
        assert [model.generate([prompt], "final")[0].text for prompt in PROMPTS[:2]] == ["yes"] * 2
        model.close()


def test_a_connection_that_was_not_used_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_LONGEST_KEPT", 0.05)
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url)
        model.generate(PROMPTS, "isolated")
        time.sleep(0.1)
        model.generate(PROMPTS[:1], "isolated")
        stack = _stack_of(model)
        assert len(stack._kept) == 1
        model.close()
        assert not stack._kept


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
    """A server that answers a request twice would otherwise answer another group's prompt in its place."""

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


def test_connections_of_an_event_loop_that_is_over_are_let_go() -> None:
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url)
        for _ in range(3):
            assert asyncio.run(model.agenerate(PROMPTS[:2], "isolated"))[0].text == "yes"
        assert len(model._connection._clients._made) == 1


def test_calls_that_are_under_way_when_the_model_is_closed_say_so() -> None:
    never = threading.Event()
    with LoopbackServer(lambda prompt: Reply("late", wait=never)) as server, ThreadPoolExecutor(3) as threads:
        model = OpenAIModel("loopback", server.url)
        asked = [
            threads.submit(model.generate, PROMPTS[:2], "isolated"),
            threads.submit(list, model.stream(PROMPTS[2])),
        ]
        asked.append(threads.submit(KeywordAggregation(model).answer, "Who?", ["It is Ann.", "It is Ann."]))
        while len(server.requests) < 5:
            time.sleep(0.01)
        model.close()
        for call in asked:
            with pytest.raises(ModelError, match="the model was closed while it was asked"):
                call.result(30)
        assert not model._loop.running
        never.set()
        assert model.generate(PROMPTS[:1], "final")[0].text == "late"  # as another call starts it anew
        model.close()


def test_a_stream_that_goes_on_after_the_model_was_closed_does_not_look_complete() -> None:
    with LoopbackServer(lambda prompt: "one two three") as server:
        model = OpenAIModel("loopback", server.url)
        pieces = model.stream(PROMPTS[0])
        assert next(pieces) == "one"
        model.close()
        with pytest.raises(ModelError, match="the model was closed"):
            list(pieces)
        assert not model._loop.running


@pytest.mark.filterwarnings("ignore:coroutine .connect_tcp.:RuntimeWarning")  # of anyio, cancelled while it connects
def test_no_call_hangs_that_begins_while_the_model_is_closed() -> None:
    with LoopbackServer(lambda prompt: "yes") as server, ThreadPoolExecutor(4) as threads:
        model = OpenAIModel("loopback", server.url)
        over = threading.Event()

        def said() -> str:
            try:
                return str(model.generate(PROMPTS[:1], "final")[0].text)
            except ModelError as error:
                return str(error)[:20]

        def ask() -> set[str]:
            found = set[str]()
            while not over.is_set():
                found.add(said())
            return found

        asked = [threads.submit(ask) for _ in range(4)]
        for _ in range(30):
            time.sleep(0.01)
            model.close()
        over.set()
        found = set[str]().union(*(call.result(30) for call in asked))
        model.close()
    assert found <= {"yes", "None", "the model was closed"}


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_behind_a_proxy_the_client_connects_as_its_http_library_does(
    name: str, monkeypatch: pytest.MonkeyPatch, clean_environment: None
) -> None:
    assert isinstance(Client()._transport, ConnectionStack)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert not isinstance(Client()._transport, ConnectionStack)


def test_an_administrators_key_in_the_environment_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-secret")
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url, "sk-mine")
        model.generate(PROMPTS[:1], "final")
        model.close()
    assert server.headers[0]["authorization"] == "Bearer sk-mine"
    assert "sk-admin-secret" not in str(server.headers)


@pytest.mark.parametrize("options", [{"extra_headers": {"x-team": "a"}}, {"extra_body": {"top_k": 1}}, {"top_k": 1}])
def test_further_fields_reach_the_server(options: dict[str, object]) -> None:
    with LoopbackServer(lambda prompt: "yes") as server:
        model = OpenAIModel("loopback", server.url, options=options, temperature=None)
        model.generate(PROMPTS[:1], "final")
        model.close()
    [request], [headers] = server.requests, server.headers
    assert (headers.get("x-team") == "a") is ("extra_headers" in options)
    assert (request.get("top_k") == 1) is ("extra_headers" not in options)
    assert not {"extra_headers", "extra_body", "temperature", "seed"} & set(request)


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def _stack_of(model: OpenAIModel) -> ConnectionStack:
    make: Callable[[], object] = model._connection._clients.here
    found = model._loop.run(_call(make))
    stack: ConnectionStack = found._client._transport  # type: ignore[attr-defined]
    return stack


async def _call(make: Callable[[], object]) -> object:
    return make()
