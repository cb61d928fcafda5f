"""LlamaIndex's responses as replies: by the type of each block, never by its place.

Text is what `TextBlock`s hold; thinking is counted and dropped, and calls of tools, citations and media are no answer.
How a reply ended stands in `raw`, which is whatever the provider's client gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, TextBlock

from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.finish import finish_reason
from robustrag_integrations.replies.reply import Ending, FinishReason, Usage

_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "native_finish_reason")
_TRACES = ("reasoning_content", "reasoning", "thinking", "thinking_delta")


def response_of(said: ChatResponse | CompletionResponse) -> Response:
    """A whole response, of chat or of text."""
    return Response.of(text_of(said), ending_of(said))


def text_of(said: ChatResponse | CompletionResponse) -> str:
    """The text so far, of blocks of text alone."""
    if isinstance(said, CompletionResponse):
        return said.text or ""
    return "\n".join(block.text for block in said.message.blocks if isinstance(block, TextBlock))


def ending_of(said: ChatResponse | CompletionResponse) -> Ending:
    """How a response, or the last part of a stream, ended."""
    if isinstance(said.raw, Ending):
        return said.raw
    message = said.message if isinstance(said, ChatResponse) else None
    extra = {**said.additional_kwargs, **(message.additional_kwargs if message is not None else {})}
    return Ending(
        finish=_finish(said.raw, extra),
        refusal=_refusal(said.raw, extra),
        reasoning_chars=_thinking(message) or _length_of(extra),
        usage=_usage(said.raw, extra),
    )


@dataclass
class Streamed:
    """A response in parts, each of which holds all text so far: the new text of each part, and how it ended."""

    _text: str = ""
    _ending: Ending = field(default_factory=Ending)
    _deltas: int = 0

    def piece_of(self, part: ChatResponse | CompletionResponse) -> str:
        """The text that this part adds.

        Its `delta` alone would not do: some integrations put thinking there too.
        """
        self._note(ending_of(part), part)
        whole = text_of(part)
        if whole.startswith(self._text):
            piece = whole[len(self._text) :]
        else:  # an integration whose parts hold no more than what is new
            piece = part.delta if part.delta is not None and part.delta in whole else whole
        self._text = whole if whole.startswith(self._text) else self._text + piece
        return piece

    @property
    def ending(self) -> Ending:
        """How the response ended, once the last part is there."""
        return replace(self._ending, reasoning_chars=max(self._ending.reasoning_chars, self._deltas))

    def _note(self, found: Ending, part: ChatResponse | CompletionResponse) -> None:
        known = self._ending
        delta = part.additional_kwargs.get("thinking_delta")
        self._deltas += len(delta) if isinstance(delta, str) else 0
        self._ending = Ending(
            finish=found.finish if found.finish != "unknown" else known.finish,
            refusal=_added(known.refusal, found.refusal),
            reasoning_chars=max(known.reasoning_chars, found.reasoning_chars),
            usage=found.usage if found.usage != Usage() else known.usage,
        )


def _added(known: str | None, more: str | None) -> str | None:
    return known if more is None else (known or "") + more


def _thinking(message: ChatMessage | None) -> int:
    """Characters in the thinking blocks of a message."""
    blocks = message.blocks if message is not None else []
    return sum(len(getattr(b, "content", None) or "") for b in blocks if getattr(b, "block_type", "") == "thinking")


def _length_of(extra: Mapping[str, Any]) -> int:
    return next((len(v) for name in _TRACES if isinstance(v := extra.get(name), str)), 0)


def _finish(raw: Any, extra: Mapping[str, Any]) -> FinishReason:
    for holder in (raw, _first(raw, "choices"), _first(raw, "candidates"), extra, _get(raw, "message")):
        for name in _REASONS:
            if (found := finish_reason(_get(holder, name))) != "unknown":
                return found
    if reason := _get(_get(raw, "incomplete_details"), "reason"):
        return finish_reason(reason)
    if (inner := _get(raw, "response")) is not None:  # the last event of a stream of the Responses API
        return _finish(inner, {})
    status = _get(raw, "status")
    return finish_reason("length" if status == "incomplete" else status)


def _refusal(raw: Any, extra: Mapping[str, Any]) -> str | None:
    choice = _first(raw, "choices")
    for holder in (extra, _get(choice, "message"), _get(choice, "delta")):
        if isinstance(found := _get(holder, "refusal"), str):
            return found
    for item in _list(_get(raw, "output")):
        for block in _list(_get(item, "content")):
            if isinstance(found := _get(block, "refusal"), str):
                return found
    return None


def _usage(raw: Any, extra: Mapping[str, Any]) -> Usage:
    """Tokens as providers report them: OpenAI's two APIs, Anthropic, Gemini, Ollama; else what LlamaIndex noted."""
    for found in (_get(raw, "usage"), _get(raw, "usage_metadata"), _get(_get(raw, "response"), "usage"), raw, extra):
        prompt = _count(found, "prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
        completion = _count(found, "completion_tokens", "output_tokens", "candidates_token_count", "eval_count")
        if prompt is not None or completion is not None:
            read = _get(found, "prompt_tokens_details") or _get(found, "input_tokens_details")
            made = _get(found, "completion_tokens_details") or _get(found, "output_tokens_details")
            cached = _count(read, "cached_tokens")
            return Usage(
                prompt,
                cached
                if cached is not None
                else _count(found, "cache_read_input_tokens", "cached_content_token_count"),
                completion,
                _count(made, "reasoning_tokens") if made is not None else _count(found, "thoughts_token_count"),
            )
    return Usage()


def _get(holder: Any, name: str) -> Any:
    """An entry of a mapping, or an attribute of anything else; None if it has none."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _first(holder: Any, name: str) -> Any:
    return next(iter(_list(_get(holder, name))), None)


def _list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else []


def _count(holder: Any, *names: str) -> int | None:
    values = (_get(holder, name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0), None)
