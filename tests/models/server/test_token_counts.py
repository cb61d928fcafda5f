"""Tokens from a server, whole and streamed: into the answer's report, and never 0 where nothing was said."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("openai", reason="needs the extra openai")

from robustrag_integrations import KeywordAggregation
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.server.model import OpenAIModel
from tests.helpers.openai_server import LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("no_server_settings")

PASSAGES = ["Anna Lind runs the mill."] * 3
TOLD = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


def answered(server: LoopbackServer, *, streamed: bool) -> Any:
    model = OpenAIModel("m", server.url, attempts=1)
    defense = KeywordAggregation(model, final="always")
    try:
        if not streamed:
            return defense.answer("Who runs the mill?", PASSAGES)
        stream = defense.stream("Who runs the mill?", PASSAGES)
        assert "".join(stream) == "Anna Lind"
        return stream.answer
    finally:
        model.close()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_all_calls_are_counted(streamed: bool) -> None:
    with LoopbackServer(lambda prompt: Reply("Anna Lind", usage=TOLD)) as server:
        answer = answered(server, streamed=streamed)
    assert answer.spending.total == Usage(400, 256, 28, 12)
    assert [g.usage for g in answer.groups] == [Usage(100, 64, 7, 3)] * 3
    asked = [r for r in server.requests if r.get("stream")]
    assert [r["stream_options"] for r in asked] == [{"include_usage": True}] * streamed
    assert not any("stream_options" in r for r in server.requests if not r.get("stream"))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "7"}, {"prompt_tokens": -1, "completion_tokens": True}])
def test_what_is_not_told_or_makes_no_sense_is_unknown(usage: Any, streamed: bool) -> None:
    with LoopbackServer(lambda prompt: Reply("Anna Lind", usage=usage)) as server:
        answer = answered(server, streamed=streamed)
    assert answer.spending.total == Usage()
    assert answer.spending.silent == 4


def test_a_server_that_refuses_to_tell_is_asked_without() -> None:
    def reply(request: dict[str, Any]) -> Reply:
        if "stream_options" in request:
            return Reply("Unrecognized request argument supplied: stream_options", status=400)
        return Reply("Anna Lind", usage=None if request.get("stream") else TOLD)

    with LoopbackServer(reply, whole_requests=True) as server:
        model = OpenAIModel("m", server.url, attempts=1)
        defense = KeywordAggregation(model, final="always")
        for _ in range(2):
            stream = defense.stream("Who runs the mill?", PASSAGES)
            assert "".join(stream) == "Anna Lind"
            assert stream.answer.spending.silent == 1
            assert stream.answer.spending.told.prompt == 300
        model.close()
    assert sum("stream_options" in r for r in server.requests) == 1
