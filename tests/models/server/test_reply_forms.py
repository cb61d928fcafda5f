"""The forms in which servers reply: reasoning and refusals in fields and blocks, endings, token counts."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("httpx")

from robustrag_integrations import Ending, KeywordAggregation, Usage
from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.openai_server import LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("no_server_settings")

USAGE = {
    "prompt_tokens": 90,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 20},
}
BLOCKS = [
    {"type": "thinking", "thinking": "zsecret", "signature": "x" * 99},
    {"type": "redacted_thinking", "data": "y" * 99},
    {"type": "text", "text": "Karl "},
    {"type": "tool_use", "name": "f", "input": {"text": "zsecret"}},
    {"type": "output_text", "text": "Gross", "annotations": [{"type": "url_citation", "title": "zsecret"}]},
]


def said(reply: Reply, *, streamed: bool) -> tuple[str | None, Ending]:
    with LoopbackServer(lambda prompt: reply) as server:
        model = OpenAIModel("m", server.url, attempts=1)
        try:
            if not streamed:
                [response] = model.generate([Prompt("x")], "final")
                return response.text, response
            *pieces, ending = model.stream(Prompt("x"))
            assert isinstance(ending, Ending)
            return "".join(p for p in pieces if isinstance(p, str)), ending
        finally:
            model.close()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("reply", "text", "ending"),
    [
        (Reply("Karl Gross", message={"reasoning_content": "zsecret"}), "Karl Gross", Ending(reasoning_chars=7)),
        (Reply("Karl Gross", message={"reasoning": "zsecret"}), "Karl Gross", Ending(reasoning_chars=7)),
        (Reply("", message={"content": BLOCKS}), "Karl Gross", Ending(finish="tool_calls", reasoning_chars=7)),
        (Reply("I don't know", message={"tool_calls": [{"id": "1"}]}), "I don't know", Ending(finish="tool_calls")),
        (Reply("Karl Gr", finish="length"), "Karl Gr", Ending(finish="length")),
        (Reply("Karl", finish="content_filter"), "Karl", Ending(finish="content_filter")),
        (Reply(None, finish="content_filter"), "", Ending(finish="content_filter")),
        (Reply(None, message={"refusal": "No."}), "", Ending(refusal="No.")),
        (Reply("", message={"content": [{"type": "refusal", "refusal": "No."}]}), "", Ending(refusal="No.")),
        (Reply(None, message={"tool_calls": [{"id": "1"}]}, finish="tool_calls"), "", Ending(finish="tool_calls")),
        (Reply(None, message={"tool_calls": [{"id": "1"}]}), "", Ending(finish="tool_calls")),
        (Reply(None, message={"reasoning": "z"}, finish="length"), "", Ending(finish="length", reasoning_chars=1)),
    ],
)  # fmt: skip
def test_a_reply_is_read_by_the_kind_of_its_parts(reply: Reply, text: str, ending: Ending, streamed: bool) -> None:
    found, how = said(reply, streamed=streamed)
    assert found == text
    wanted = ending if ending.finish != "unknown" else Ending(
        finish="stop", refusal=ending.refusal, reasoning_chars=ending.reasoning_chars
    )  # fmt: skip
    assert Ending(finish=how.finish, refusal=how.refusal, reasoning_chars=how.reasoning_chars) == wanted


# --- counts of tokens

PASSAGES = ["Anna Lind runs the mill."] * 3


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
    with LoopbackServer(lambda prompt: Reply("Anna Lind", usage=USAGE)) as server:
        answer = answered(server, streamed=streamed)
    assert answer.spending.total == Usage(360, 256, 120, 80)
    assert [g.usage for g in answer.sources] == [Usage(90, 64, 30, 20)] * 3
    asked = [r for r in server.requests if r.get("stream")]
    assert [r["stream_options"] for r in asked] == [{"include_usage": True}] * streamed
    assert not any("stream_options" in r for r in server.requests if not r.get("stream"))
