"""What LlamaIndex's LLMs reply: text by the type of its block, and how it ended, in every style."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CitationBlock,
    CompletionResponse,
    TextBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback

from llamaindex_robustrag import RobustRAGSynthesizer
from llamaindex_robustrag.replies import Streamed, ending_of, response_of
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.replies.reply import Ending
from tests.llamaindex.fakes import FactReader
from tests.llamaindex.test_busy_servers import STYLES, report
from tests.llamaindex.test_cut_replies import TEXTS, TRACE, winner

if not hasattr(types, "ToolCallBlock"):
    pytest.skip("this version of llama-index-core has no blocks of thinking", allow_module_level=True)
ThinkingBlock, ToolCallBlock = types.ThinkingBlock, types.ToolCallBlock

THINKING = ThinkingBlock(content=TRACE)
CITED = CitationBlock(cited_content="Hans Wolf", source="s", title="t", additional_location_info={})
CALL = ToolCallBlock(tool_name="vote", tool_kwargs={"for": "Hans Wolf"})


def chat(*blocks: Any, raw: Any = None, delta: str | None = None, **extra: Any) -> ChatResponse:
    message = ChatMessage(role="assistant", blocks=list(blocks))
    return ChatResponse(message=message, raw=raw, delta=delta, additional_kwargs=extra)


@pytest.mark.parametrize(
    ("blocks", "reasoning"),
    [
        ([TextBlock(text="Karl Gross")], 0),
        ([THINKING, TextBlock(text="Karl Gross")], len(TRACE)),
        ([TextBlock(text="Karl Gross"), THINKING], len(TRACE)),
        ([ThinkingBlock(), CALL, TextBlock(text="Karl Gross"), CITED], 0),
    ],
    ids=["text", "thinking first", "thinking last", "tools and citations"],
)
def test_blocks_count_by_their_type(blocks: list[Any], reasoning: int) -> None:
    found = response_of(chat(*blocks))
    assert (found.text, found.reasoning_chars) == ("Karl Gross", reasoning)


def test_a_trace_beside_the_blocks_is_counted_by_length_alone() -> None:
    assert response_of(chat(TextBlock(text="a"), reasoning_content=TRACE)).reasoning_chars == len(TRACE)
    said = ChatResponse(message=ChatMessage("a", role="assistant", additional_kwargs={"reasoning_content": TRACE}))
    assert response_of(said).reasoning_chars == len(TRACE)


def choice(reason: str | None, **message: Any) -> Any:
    return SimpleNamespace(choices=[SimpleNamespace(finish_reason=reason, message=SimpleNamespace(**message))])


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        (choice("stop"), "stop"),
        (choice("length"), "length"),
        (choice("content_filter"), "content_filter"),
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        (SimpleNamespace(stop_reason="max_tokens"), "length"),
        (SimpleNamespace(stop_reason="refusal"), "content_filter"),
        ({"stopReason": "end_turn"}, "stop"),
        ({"done": True, "done_reason": "length"}, "length"),
        ({"candidates": [{"finish_reason": "SAFETY"}]}, "content_filter"),
        (
            SimpleNamespace(status="incomplete", incomplete_details=SimpleNamespace(reason="max_output_tokens")),
            "length",
        ),
        (SimpleNamespace(status="completed", incomplete_details=None), "stop"),
        (SimpleNamespace(type="response.completed", response=SimpleNamespace(status="completed")), "stop"),
        (Ending(finish="length"), "length"),
        (None, "unknown"),
        ("text", "unknown"),
    ],
)
def test_why_a_reply_ended_is_read_from_what_the_client_gave(raw: Any, finish: str) -> None:
    assert ending_of(chat(TextBlock(text="a"), raw=raw)).finish == finish
    assert ending_of(CompletionResponse(text="a", raw=raw)).finish == finish


def test_a_marked_refusal_is_passed_on() -> None:
    assert ending_of(chat(raw=choice("stop", refusal="I cannot."))).refusal == "I cannot."
    output = [SimpleNamespace(content=[SimpleNamespace(type="refusal", refusal="No.")])]
    assert ending_of(chat(raw=SimpleNamespace(output=output))).refusal == "No."


@pytest.mark.parametrize(
    ("raw", "extra", "usage"),
    [
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4},
                    "completion_tokens_details": {"reasoning_tokens": 3}}}, {}, Usage(9, 4, 5, 3)),
        (SimpleNamespace(usage=SimpleNamespace(input_tokens=9, output_tokens=5, cache_read_input_tokens=4)), {},
         Usage(9, 4, 5, None)),
        ({"prompt_eval_count": 9, "eval_count": 5}, {}, Usage(9, None, 5, None)),
        (None, {"prompt_tokens": 9, "completion_tokens": 5}, Usage(9, None, 5, None)),
        (None, {}, Usage()),
    ],
)  # fmt: skip
def test_tokens_are_passed_on(raw: Any, extra: dict[str, Any], usage: Usage) -> None:
    assert ending_of(chat(TextBlock(text="a"), raw=raw, **extra)).usage == usage


def test_a_stream_is_read_by_its_blocks_and_not_by_its_deltas() -> None:
    parts = [
        chat(ThinkingBlock(content="If absent"), delta="If absent", thinking_delta="If absent"),
        chat(ThinkingBlock(content=TRACE), delta=TRACE[9:], thinking_delta=TRACE[9:]),
        chat(THINKING, TextBlock(text="Karl"), delta="Karl"),
        chat(THINKING, TextBlock(text="Karl Gross"), delta=" Gross", raw=choice("length")),
    ]
    streamed = Streamed()
    assert [streamed.piece_of(part) for part in parts] == ["", "", "Karl", " Gross"]
    assert (streamed.ending.finish, streamed.ending.reasoning_chars) == ("length", len(TRACE))


def test_a_stream_whose_parts_hold_only_what_is_new_is_read_too() -> None:
    parts = [chat(TextBlock(text=text), delta=text) for text in ("Karl", " Gross", " won")]
    streamed = Streamed()
    assert "".join(streamed.piece_of(part) for part in parts) == "Karl Gross won"


class Blocks(FactReader):
    """Replies with a thinking block and a text block, as integrations of reasoning models do."""

    chat_model: bool = True
    trace: str = TRACE
    said_by: Callable[[str], str]
    finish: str = "stop"

    def _blocks(self, messages: Sequence[ChatMessage]) -> tuple[str, str]:
        prompt = "\n".join(message.content or "" for message in messages)
        self.answer(prompt, {})
        return self.trace, self.said_by(prompt)

    def _said(self, prompt: str) -> str:
        return ""

    def _whole(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        trace, text = self._blocks(messages)
        return chat(ThinkingBlock(content=trace), TextBlock(text=text), raw=choice(self.finish))

    def _in_parts(self, messages: Sequence[ChatMessage]) -> ChatResponseGen:
        trace, text = self._blocks(messages)
        for end in range(5, len(trace) + 5, 5):
            yield chat(ThinkingBlock(content=trace[:end]), delta=trace[end - 5 : end])
        for end in range(4, len(text) + 4, 4):
            yield chat(ThinkingBlock(content=trace), TextBlock(text=text[:end]), delta=text[end - 4 : end])
        yield chat(ThinkingBlock(content=trace), TextBlock(text=text), delta="", raw=choice(self.finish))

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._whole(messages)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        return self._in_parts(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return self._whole(messages)

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        async def parts() -> ChatResponseAsyncGen:
            for part in self._in_parts(messages):
                await asyncio.sleep(0)
                yield part

        return parts()


@pytest.mark.parametrize("style", STYLES)
async def test_nine_that_think_outvote_one_liar(style: str) -> None:
    answer = await report(RobustRAGSynthesizer(llm=Blocks(said_by=winner)), style, TEXTS)
    assert answer["text"] == "Karl Gross"
    assert answer["radius"] == 3
    assert [g["status"] for g in answer["groups"]] == ["supports"] * 9 + ["differs"]
    assert "absent" not in json.dumps(answer)


@pytest.mark.parametrize("style", STYLES)
async def test_votes_are_read_from_the_answer_and_not_from_the_thinking(style: str) -> None:
    llm = Blocks(said_by=lambda prompt: "B" if "Hans Wolf won" in prompt else "A", trace="B? Hans Wolf? Answer: B. No.")
    voting = RobustRAGSynthesizer(llm=llm, aggregation="voting", choices=["Karl Gross", "Hans Wolf"])
    answer = await report(voting, style, TEXTS)
    assert (answer["choice"], answer["radius"]) == (0, 3)


def _token(*logprobs: float) -> list[Any]:
    return [types.LogProb(token="a", logprob=logprob) for logprob in logprobs]


CHOSEN = {"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -0.25}]}}]}


@pytest.mark.parametrize(
    ("raw", "noted", "expected"),
    [
        (CHOSEN, None, (-0.5, -0.25)),
        (SimpleNamespace(choices=[SimpleNamespace(logprobs=SimpleNamespace(token_logprobs=[-0.5]))]), None, (-0.5,)),
        (CHOSEN, [_token(-0.1, -3.0), _token(-0.1, -3.0)], (-0.5, -0.25)),
        (None, [_token(-0.5), _token(-0.25)], (-0.5, -0.25)),
        (None, [_token(-0.5, -3.0), _token(-0.25)], None),  # which of the two was taken is not said
        (None, [_token(5.0)], None),
        ({"choices": [{"logprobs": {"content": [{"logprob": "high"}]}}]}, None, None),
        (None, None, None),
    ],
)
def test_logprobs_are_read_where_they_are_given(raw: Any, noted: Any, expected: Any) -> None:
    assert response_of(CompletionResponse(text="a", raw=raw, logprobs=noted)).logprobs == expected
    message = ChatMessage(role="assistant", blocks=[TextBlock(text="a")])
    assert response_of(ChatResponse(message=message, raw=raw, logprobs=noted)).logprobs == expected
    thought = ChatMessage(role="assistant", blocks=[THINKING, TextBlock(text="a")])
    assert response_of(ChatResponse(message=thought, raw=raw, logprobs=noted)).logprobs is None
