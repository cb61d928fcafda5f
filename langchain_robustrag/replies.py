"""LangChain's messages as replies: by the type of each block, never by its place.

Text is what blocks of text hold. Reasoning is counted and dropped, whatever a provider calls it; calls of tools, search
results and blocks of unknown types are no answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from pydantic import BaseModel

from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.finish import finish_reason
from robustrag_integrations.replies.reply import Ending, FinishReason, Piece, Usage

_TEXT = ("text", "output_text", "text_delta")
_REASONING = ("reasoning", "thinking", "redacted_thinking", "reasoning_content", "thinking_delta", "reasoning_summary")
_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "native_finish_reason")
_DEEPEST = 8  # blocks within blocks


@dataclass
class _Parts:
    """What is found in a message's content."""

    text: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    reasoning: int = 0

    def read(self, content: Any, depth: int = 0) -> None:
        """Sort a content's blocks by their types."""
        if isinstance(content, str):
            self.text.append(content)
        elif isinstance(content, list) and depth < _DEEPEST:
            for block in content:
                self.read(block, depth + 1)
        elif isinstance(content, Mapping):
            self._read_block(content, depth)

    def _read_block(self, block: Mapping[str, Any], depth: int) -> None:
        kind, text = block.get("type"), block.get("text")
        if kind in _REASONING or block.get("thought") is True or "reasoningContent" in block:
            self.reasoning += _length(block)
        elif kind == "refusal":
            self.refusals.append(str(block.get("refusal") or ""))
        elif kind == "message":
            self.read(block.get("content"), depth + 1)
        elif kind == "non_standard":
            self.read(block.get("value"), depth + 1)
        elif (kind in _TEXT or kind is None) and isinstance(text, str):
            if block.get("phase") == "commentary":  # what a model says on its way to the answer
                self.reasoning += len(text)
            else:
                self.text.append(text)


class Seen(BaseCallbackHandler):
    """Remembers what the model itself replied, for what a parser behind it leaves out: how the reply ended."""

    run_inline = True  # in the event loop, not in its threads

    def __init__(self) -> None:
        self.ending = Ending()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """The model has replied."""
        last = response.generations[-1][-1] if response.generations and response.generations[-1] else None
        message, info = getattr(last, "message", None), getattr(last, "generation_info", None) or {}
        found = ending_of(message) if isinstance(message, BaseMessage) else Ending()
        usage = found.usage if found.usage != Usage() else _usage((response.llm_output or {}).get("token_usage"))
        finish = found.finish if found.finish != "unknown" else _finish(info)
        self.ending = Ending(finish=finish, refusal=found.refusal, reasoning_chars=found.reasoning_chars, usage=usage)


def response_of(said: Any, seen: Ending) -> Response:
    """What a model, or a parser behind it, gave.

    Args:
        said: a message, a text, or what a parser made of it.
        seen: how the model's own reply ended.
    """
    return Response.of(text_of(said), _completed(ending_of(said), seen) if isinstance(said, BaseMessage) else seen)


def text_of(said: Any) -> str:
    """The answer in it: the text of a message's blocks of text; an object as JSON; nothing for None."""
    if isinstance(said, BaseMessage):
        return "".join(_parts(said).text)
    if said is None or isinstance(said, str):
        return said or ""
    if isinstance(said, BaseModel):
        return said.model_dump_json()
    if isinstance(said, (Mapping, list)):
        return json.dumps(said, ensure_ascii=False, default=str)
    return str(said)


def ending_of(message: BaseMessage) -> Ending:
    """How a message, or a piece of one, ended."""
    parts, extra = _parts(message), message.additional_kwargs
    if isinstance(refusal := extra.get("refusal"), str):
        parts.refusals.append(refusal)
    for name in ("reasoning_content", "reasoning", "thinking"):
        parts.reasoning += _length(extra.get(name))
    return Ending(
        finish=_finish(message.response_metadata),
        refusal="".join(parts.refusals) if parts.refusals else None,
        reasoning_chars=parts.reasoning,
        usage=_usage(getattr(message, "usage_metadata", None)),
    )


@dataclass
class Streamed:
    """A reply in chunks: the pieces of its text, then how it ended.

    Attributes:
        seen: what the model itself replied.
    """

    seen: Seen
    _finish: FinishReason = "unknown"
    _refusal: str | None = None
    _reasoning: int = 0
    _usage: Usage = field(default_factory=Usage)
    _whole: Any = None

    def pieces_of(self, chunk: Any) -> Iterator[Piece]:
        """The text of a chunk. Of objects, which parsers give more and more complete, the last one counts."""
        if isinstance(chunk, BaseMessage):
            found = ending_of(chunk)
            self._finish = found.finish if found.finish != "unknown" else self._finish
            if found.refusal is not None:
                self._refusal = (self._refusal or "") + found.refusal
            self._reasoning += found.reasoning_chars
            self._usage = _sum(self._usage, found.usage)
        elif not isinstance(chunk, str):
            self._whole = chunk
            return
        if text := text_of(chunk):
            yield text

    def end(self) -> Iterator[Piece]:
        """What comes after the last chunk."""
        if self._whole is not None:
            yield text_of(self._whole)
        own = Ending(finish=self._finish, refusal=self._refusal, reasoning_chars=self._reasoning, usage=self._usage)
        yield _completed(own, self.seen.ending)


def _completed(own: Ending, seen: Ending) -> Ending:
    """What a message says of its end, and what it leaves out as the model's own reply has it."""
    return Ending(
        finish=own.finish if own.finish != "unknown" else seen.finish,
        refusal=own.refusal if own.refusal is not None else seen.refusal,
        reasoning_chars=own.reasoning_chars or seen.reasoning_chars,
        usage=own.usage if own.usage != Usage() else seen.usage,
    )


def _parts(message: BaseMessage) -> _Parts:
    parts = _Parts()
    parts.read(message.content)
    return parts


def _length(reasoning: Any, depth: int = 0) -> int:
    """Characters of a trace, in whatever form; signatures and encrypted ones have none."""
    if isinstance(reasoning, str):
        return len(reasoning)
    if isinstance(reasoning, list) and depth < _DEEPEST:
        return sum(_length(part, depth + 1) for part in reasoning)
    if isinstance(reasoning, Mapping) and depth < _DEEPEST:
        names = ("text", "thinking", "reasoning", "reasoning_content", "reasoningContent", "reasoningText", "summary",
                 "content")  # fmt: skip
        return sum(_length(reasoning.get(name), depth + 1) for name in names)
    return 0


def _finish(metadata: Mapping[str, Any]) -> FinishReason:
    for name in _REASONS:
        if (found := finish_reason(metadata.get(name))) != "unknown":
            return found
    details = metadata.get("incomplete_details")
    if isinstance(details, Mapping) and details.get("reason"):
        return finish_reason(details["reason"])
    status = metadata.get("status")
    return finish_reason("length" if status == "incomplete" else status)


def _usage(found: Any) -> Usage:
    """Tokens from `usage_metadata`, or from the `token_usage` of completions."""
    if not isinstance(found, Mapping):
        return Usage()
    read, made = found.get("input_token_details"), found.get("output_token_details")
    return Usage(
        prompt=_count(found, "input_tokens", "prompt_tokens"),
        cached=_count(read, "cache_read"),
        completion=_count(found, "output_tokens", "completion_tokens"),
        reasoning=_count(made, "reasoning"),
    )


def _count(found: Any, *names: str) -> int | None:
    values = [found.get(name) for name in names] if isinstance(found, Mapping) else []
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0), None)


def _sum(one: Usage, other: Usage) -> Usage:
    def added(a: int | None, b: int | None) -> int | None:
        return b if a is None else a if b is None else a + b

    return Usage(
        added(one.prompt, other.prompt),
        added(one.cached, other.cached),
        added(one.completion, other.completion),
        added(one.reasoning, other.reasoning),
    )
