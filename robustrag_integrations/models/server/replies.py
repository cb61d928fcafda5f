"""Parsing of untrusted replies from servers: chat and text completions, whole or as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.reply import Blocks, Ending, chars_of, finish_reason, logprobs_in, usage_of

_USUAL_END = "which ends in /v1 on most servers"


def parsed(body: bytes) -> Mapping[str, Any]:
    """Parse a reply, or an event of one, as a JSON object that reports no error; a ModelError does not hold it."""
    value: Any = None
    try:
        value = json.loads(body)
        wrong = None if isinstance(value, dict) else f"{type(value).__name__} in place of a completion"
    except (ValueError, RecursionError) as error:  # which hold the body: nothing may be chained to them
        wrong = f"something that is not JSON ({getattr(error, 'msg', type(error).__name__)})"
        if body.lstrip()[:1] == b"<":
            wrong = f"a web page in place of JSON: base_url leads to something else than the model, {_USUAL_END}"
    if wrong is not None:
        raise ModelError(f"the server sent {wrong}")
    if problem := value.get("error"):
        message = problem.get("message") if isinstance(problem, dict) else problem
        raise ModelError(f"the server sent an error: {message}")
    reply: Mapping[str, Any] = value
    return reply


class Events:
    """Extracts the `data` of events, one line each, from a stream of bytes, until it has `ended`."""

    def __init__(self, largest: int) -> None:
        self.ended = False
        self._largest = largest
        self._line = bytearray()

    def read(self, piece: bytes) -> Iterator[bytes]:
        """Yield the events that this piece completes; raises ModelError where one is too large."""
        for part in piece.splitlines(keepends=True):
            self._line += part
            if len(self._line) > self._largest:
                raise ModelError(f"an event of the server's stream is larger than {self._largest:,} bytes")
            if not part.endswith((b"\n", b"\r")):
                return
            line, self._line = bytes(self._line), bytearray()
            data = line[5:].strip() if line.startswith(b"data:") else b""
            self.ended |= data.startswith(b"[DONE]")
            if data and not self.ended:
                yield data


def choice_of(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of a completion; only one is asked for."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelError("the server sent no choices")
    choice: Mapping[str, Any] = choices[0]
    return choice


def response_of(reply: Mapping[str, Any]) -> Response:
    """Convert a chat or text completion into a `Response`; raises ModelError without text or a reason for that."""
    said, choice = Said(), choice_of(reply)
    text = said.piece_of(reply, "message")
    ending = said.ending()
    if not said.has_content and ending.finish in ("stop", "other", "unknown"):
        raise ModelError("the server sent no text")
    logprobs = None if ending.reasoning_chars else logprobs_in(choice.get("logprobs"))  # those of reasoning, too
    return Response.of(text, replace(ending, logprobs=logprobs))


class Said:
    """What a server says, whole or in a stream of chunks, to its end."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._begun = False
        self._usage: Any = None
        self._reason: Any = None
        self.has_content = False  # an empty text is one, as are reasoning, a refusal and the call of a tool

    def piece_of(self, chunk: Mapping[str, Any], part: str = "delta") -> str:
        """Return the text of one chunk; empty where it has none."""
        blocks, before, self._begun = self._blocks, len(self._blocks.text), True
        self._usage = chunk.get("usage") or self._usage
        choice = choice_of(chunk) if chunk.get("choices") else {}  # the last chunk has the usage alone
        self._reason = choice.get("finish_reason") or self._reason
        message = choice.get(part)
        message = message if isinstance(message, dict) else {"content": choice.get("text")}
        content = message.get("content")
        if content is not None and not isinstance(content, (str, list)):
            raise ModelError(f"the server sent {type(content).__name__} in place of text")
        blocks.read(content)
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            blocks.refusals.append(refusal)
        traces = (chars_of(message.get(name)) for name in ("reasoning_content", "reasoning", "thinking"))
        blocks.reasoning_chars += next((chars for chars in traces if chars), 0)
        blocks.calls_tools |= bool(message.get("tool_calls") or message.get("function_call"))
        self.has_content |= isinstance(content, str) or blocks != Blocks()
        return "".join(blocks.text[before:])

    def ending(self) -> Ending:
        """Return how it ended."""
        blocks, finish = self._blocks, finish_reason(self._reason)
        if blocks.calls_tools and finish in ("stop", "other", "unknown") and not "".join(blocks.text).strip():
            finish = "tool_calls"
        usage, chars = usage_of(self._usage), blocks.reasoning_chars
        return Ending(finish=finish, refusal=blocks.refusal, reasoning_chars=chars, usage=usage)

    def end_of_stream(self) -> Ending:
        """Return how the stream ended; raises ModelError where it broke off without saying why."""
        if self._reason is None and not self._begun:
            raise ModelError(f"the server's stream held nothing: base_url may lead elsewhere, {_USUAL_END}")
        if self._reason is None:
            raise ModelError("the server's stream broke off before the answer was complete")
        return self.ending()
