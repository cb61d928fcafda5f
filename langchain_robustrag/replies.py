"""Reads LangChain's messages as replies: by the type of each block, never by its place.

Text is what blocks of text hold. Reasoning is counted and dropped, whatever a provider calls it; calls of tools, search
results and blocks of unknown types are no answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from pydantic import BaseModel

from robustrag_integrations.answers.usage import Usage, told
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.reply import (
    Blocks,
    Ending,
    Piece,
    calling,
    chars_of,
    finish_of,
    logprobs_in,
    reason_in,
    usage_of,
)


class Seen(BaseCallbackHandler):
    """Remembers the ending of the model's own reply, which a parser behind it leaves out.

    `by_tool`: a call of a tool is how the model answers.
    """

    ignore_chain = ignore_retriever = ignore_agent = ignore_custom_event = True
    ending = Ending()

    def __init__(self, by_tool: bool = False) -> None:
        self._by_tool = by_tool

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Note the model's reply."""
        last = response.generations[-1][-1] if response.generations and response.generations[-1] else None
        message, info = getattr(last, "message", None), getattr(last, "generation_info", None) or {}
        found = ending_of(message) if isinstance(message, BaseMessage) else Ending()
        usage = usage_of((response.llm_output or {}).get("token_usage"))
        logprobs = logprobs_in(info.get("logprobs") or info.get("logprobs_result"))
        ending = _completed(found, Ending(finish=reason_in(info), usage=usage, logprobs=logprobs))
        called = self._by_tool and ending.finish == "tool_calls"
        self.ending = replace(ending, finish="stop") if called else ending


def response_of(said: Any, seen: Ending) -> Response:
    """Return the response of a model, or of a parser behind it; `seen` is how the model's own reply ended."""
    if isinstance(said, BaseMessage):
        return Response.of(text_of(said), _completed(ending_of(said), seen))
    return Response.of(text_of(said), seen if isinstance(said, str) else replace(seen, logprobs=None))


def text_of(said: Any) -> str:
    """Return the answer in a reply: the text blocks of a message; an object as JSON; nothing for None."""
    if isinstance(said, BaseMessage):
        return "".join(Blocks().read(said.content).text)
    if said is None or isinstance(said, str):
        return said or ""
    if isinstance(said, BaseModel):
        return said.model_dump_json()
    if isinstance(said, (Mapping, list)):
        return json.dumps(said, ensure_ascii=False, default=str)
    return str(said)


def ending_of(message: BaseMessage) -> Ending:
    """Return the ending of a message or of a message chunk."""
    parts, extra = Blocks().read(message.content), message.additional_kwargs
    if isinstance(refusal := extra.get("refusal"), str):
        parts.refusals.append(refusal)
    reasoning = (extra.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    parts.reasoning_chars += sum(map(chars_of, filter(None, reasoning)))
    told = message.response_metadata
    calls = (
        getattr(message, "tool_calls", None),
        getattr(message, "invalid_tool_calls", None),
        extra.get("tool_calls"),
    )
    logprobs = logprobs_in(told.get("logprobs") or told.get("logprobs_result"))
    return Ending(
        finish=calling(reason_in(told), parts.calls_tools or any(calls)),
        refusal=parts.refusal,
        reasoning_chars=parts.reasoning_chars,
        usage=usage_of(getattr(message, "usage_metadata", None)),
        logprobs=None if parts.reasoning_chars else logprobs,  # those of reasoning, too
    )


@dataclass
class Streamed:
    """A reply in chunks: the pieces of its text, then how it ended."""

    seen: Seen
    _own: Ending = field(default_factory=Ending)
    _whole: Any = None

    def pieces_of(self, chunk: Any) -> Iterator[Piece]:
        """Yield the text of a chunk. Parsers send objects that are more and more complete: the last one counts."""
        if isinstance(chunk, BaseMessage):
            found, known = ending_of(chunk), self._own
            refusals = [words for words in (known.refusal, found.refusal) if words is not None]
            self._own = Ending(
                finish=finish_of(known.finish, found.finish),
                refusal="".join(refusals) if refusals else None,
                reasoning_chars=known.reasoning_chars + found.reasoning_chars,
                usage=told((known.usage, found.usage)),
            )
        elif not isinstance(chunk, str):
            self._whole = chunk
            return
        if text := text_of(chunk):
            yield text

    def end(self) -> Iterator[Piece]:
        """Yield the pieces that follow the last chunk."""
        if self._whole is not None:
            yield text_of(self._whole)
        yield _completed(self._own, self.seen.ending)


def _completed(own: Ending, seen: Ending) -> Ending:
    """Return a message's ending, with gaps filled from the model's own reply."""
    return Ending(
        finish=own.finish if own.finish != "unknown" else seen.finish,
        refusal=own.refusal if own.refusal is not None else seen.refusal,
        reasoning_chars=own.reasoning_chars or seen.reasoning_chars,
        usage=own.usage if own.usage != Usage() else seen.usage,
        logprobs=None if own.reasoning_chars or seen.reasoning_chars else own.logprobs or seen.logprobs,
    )
