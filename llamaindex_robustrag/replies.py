"""Reads LlamaIndex's responses as replies: by the type of each block, never by its place.

Text is what `TextBlock`s hold; thinking is counted and dropped, and calls of tools, citations and media are no answer.
How a reply ended stands in `raw`, which is whatever the provider's client gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, TextBlock

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.reply import (
    Ending,
    FinishReason,
    calling,
    entry,
    finish_of,
    logprobs_in,
    reason_in,
    usage_of,
)

_TRACES = ("reasoning_content", "reasoning", "thinking", "thinking_delta")


def response_of(said: ChatResponse | CompletionResponse, *, truncated: bool = False) -> Response:
    """Return a whole response, of chat or completion."""
    return Response.of(text_of(said), ending_of(said), truncated=truncated)


def text_of(said: ChatResponse | CompletionResponse) -> str:
    """Return the text so far, from text blocks alone."""
    if isinstance(said, CompletionResponse):
        return said.text or ""
    return "\n".join(block.text for block in said.message.blocks if isinstance(block, TextBlock))


def ending_of(said: ChatResponse | CompletionResponse) -> Ending:
    """Return the ending of a response, or of the last part of a stream."""
    if isinstance(said.raw, Ending):
        return said.raw
    extra, kinds = dict(said.additional_kwargs), dict[str, list[Any]]()
    if isinstance(said, ChatResponse):
        extra |= said.message.additional_kwargs
        for block in said.message.blocks:
            kinds.setdefault(getattr(block, "block_type", ""), []).append(block)
    traces = (len(trace) for name in _TRACES if isinstance(trace := extra.get(name), str))
    reasoning_chars = sum(len(getattr(b, "content", None) or "") for b in kinds.get("thinking", ())) or next(traces, 0)
    return Ending(
        finish=calling(_finish(said.raw, extra), bool(kinds.get("tool_call") or extra.get("tool_calls"))),
        refusal=_refusal(said.raw, extra),
        reasoning_chars=reasoning_chars,
        usage=_usage(said.raw, extra),
        logprobs=None if reasoning_chars else _logprobs(said),  # those of reasoning, too
    )


@dataclass
class Streamed:
    """A streamed response whose parts each hold all text so far. Gives the new text of each part, and the ending."""

    _text: str = ""
    _ending: Ending = field(default_factory=Ending)
    _thought: int = 0

    def piece_of(self, part: ChatResponse | CompletionResponse) -> str:
        """Return the text that this part adds.

        Its `delta` alone would not do: some integrations put thinking there too.
        """
        found, known = ending_of(part), self._ending
        self._thought += len(part.additional_kwargs.get("thinking_delta") or "")
        self._ending = Ending(
            finish=finish_of(known.finish, found.finish),
            refusal=known.refusal if found.refusal is None else (known.refusal or "") + found.refusal,
            reasoning_chars=max(known.reasoning_chars, found.reasoning_chars),
            usage=found.usage if found.usage != Usage() else known.usage,
        )
        whole = text_of(part)
        if whole.startswith(self._text):
            piece, self._text = whole[len(self._text) :], whole
        else:  # an integration whose parts hold only the new text
            piece = part.delta if part.delta is not None and part.delta in whole else whole
            self._text += piece
        return piece

    @property
    def ending(self) -> Ending:
        """The ending of the response, known once the last part is there."""
        return replace(self._ending, reasoning_chars=max(self._ending.reasoning_chars, self._thought))


def _finish(raw: Any, extra: Mapping[str, Any]) -> FinishReason:
    others = (_first(raw, "choices"), _first(raw, "candidates"), extra, entry(raw, "message"))
    inner = entry(raw, "response")  # of the last event of a stream of the Responses API
    found = reason_in(raw, *others)
    return reason_in(inner) if found == "unknown" and inner is not None else found


def _refusal(raw: Any, extra: Mapping[str, Any]) -> str | None:
    choice = _first(raw, "choices")
    of_responses_api = [block for item in _list(entry(raw, "output")) for block in _list(entry(item, "content"))]
    for holder in (extra, entry(choice, "message"), entry(choice, "delta"), *of_responses_api):
        if isinstance(found := entry(holder, "refusal"), str):
            return found
    return None


def _logprobs(said: ChatResponse | CompletionResponse) -> tuple[float, ...] | None:
    """Return the log-probabilities of a reply's tokens, as the provider gives them, else as LlamaIndex noted them.

    LlamaIndex notes the likeliest tokens of each place, and not which one was taken, so that one alone says something.
    """
    found = logprobs_in(entry(_first(said.raw, "choices"), "logprobs"))
    if found is not None or not said.logprobs or any(len(place) != 1 for place in said.logprobs):
        return found
    return logprobs_in([place[0] for place in said.logprobs])


def _usage(raw: Any, extra: Mapping[str, Any]) -> Usage:
    """Return the tokens as the provider reports them, else as LlamaIndex noted them."""
    places = (entry(raw, "usage"), entry(raw, "usage_metadata"), entry(entry(raw, "response"), "usage"), raw, extra)
    told = (found for found in map(usage_of, places) if (found.prompt, found.completion) != (None, None))
    return next(told, Usage())


def _first(holder: Any, name: str) -> Any:
    return next(iter(_list(entry(holder, name))), None)


def _list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else []
