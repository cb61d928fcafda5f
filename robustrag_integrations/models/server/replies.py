"""Parsing of untrusted replies from servers: chat and text completions, whole or as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.blocks import Blocks, chars_of, usage_of
from robustrag_integrations.replies.confidence import logprobs_in
from robustrag_integrations.replies.reply import Ending, finish_reason

_USUAL_END = "which ends in /v1 on most servers"


def said_by_server(error: Any) -> str:
    """Word a client's error: the status and the server's message if there is one; else the client's, with its cause."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and 300 <= status < 400:
        return _redirect(status, error)
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    if isinstance(message, str):
        words = f"HTTP {'?' if status is None else status}: {message}"
    else:
        words = str(error) or type(error).__name__
    return f"{words} ({error.__cause__})" if error.__cause__ is not None else words


def _redirect(status: int, error: Any) -> str:
    place = str(getattr(getattr(error, "response", None), "headers", {}).get("Location", ""))
    try:
        host = urlsplit(place).netloc.rpartition("@")[2]
    except ValueError:  # an invalid address
        host = ""
    where = f" to {host[:100]}" if host else ""
    return (
        f"the server redirects (HTTP {status}{where}), and redirects are not followed, as the passages would go there: "
        "give the address that answers as base_url"
    )


def parsed(body: bytes) -> Mapping[str, Any]:
    """Parse a reply, or an event of one, as JSON.

    Raises:
        ModelError: it is not a JSON object, or reports an error.
    """
    value: Any = None
    try:
        value = json.loads(body)
        wrong = None if isinstance(value, dict) else f"{type(value).__name__} in place of a completion"
    except (ValueError, RecursionError) as error:  # which hold the body: nothing may be chained to them
        reason = error.reason if isinstance(error, UnicodeDecodeError) else getattr(error, "msg", type(error).__name__)
        wrong = f"something that is not JSON ({reason})"
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
    """Extracts the `data` of events from a stream of bytes; comments and other fields are ignored.

    Args:
        largest: the most bytes of one event.

    Attributes:
        ended: True once the stream's final event has come.
    """

    def __init__(self, largest: int) -> None:
        self.ended = False
        self._largest = largest
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0  # of the data so far

    def read(self, piece: bytes) -> Iterator[bytes]:
        """Yield the events that this piece completes.

        Raises:
            ModelError: an event is too large.
        """
        for line in piece.splitlines(keepends=True):
            self._line += line
            if self._size + len(self._line) > self._largest:
                raise ModelError(f"an event of the server's stream is larger than {self._largest:,} bytes")
            if line.endswith((b"\n", b"\r")):
                yield from self._take()

    def rest(self) -> Iterator[bytes]:
        """Yield the event that the end of the stream completes, if there is one."""
        yield from self._take()
        yield from self._take()

    def _take(self) -> Iterator[bytes]:
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        if line.startswith(b"data:"):
            self._size += len(line)
            self._data.append(line[5:].strip())
        elif not line:
            data, self._data, self._size = b"\n".join(self._data), [], 0
            if data.startswith(b"[DONE]"):
                self.ended = True
            elif data and not self.ended:
                yield data


def choice_of(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of a completion; only one is asked for.

    Raises:
        ModelError: there is none, or the server's content filter cut it.
    """
    choice = _first_choice(reply)
    if choice is None:
        raise ModelError("the server sent no choices")
    if choice.get("finish_reason") == "content_filter":
        raise ModelError("the server's content filter stopped the response")
    return choice


def response_of(reply: Mapping[str, Any]) -> Response:
    """Convert a chat or text completion into a `Response`.

    Raises:
        ModelError: it holds neither text nor a reason for its absence.
    """
    choice = _first_choice(reply)
    if choice is None:
        raise ModelError("the server sent no choices")
    said = Said()
    said.read_choice(choice, choice.get("message"))
    ending = said.ending(reply.get("usage"))
    if not said.has_content and ending.finish in ("stop", "other", "unknown"):
        raise ModelError("the server sent no text")
    logprobs = None if ending.reasoning_chars else logprobs_in(choice.get("logprobs"))  # those of reasoning, too
    return Response.of("".join(said.blocks.text), replace(ending, logprobs=logprobs))


@dataclass
class Said:
    """The content of a choice, whole or in streamed pieces.

    Attributes:
        blocks: text, reasoning and refusals.
        reason: why it ended, in the server's word; None as long as it said none.
        has_content: True if there was text (an empty one, too), reasoning, a refusal or a call of a tool.
    """

    blocks: Blocks = field(default_factory=Blocks)
    reason: Any = None
    has_content: bool = False

    def read_choice(self, choice: Mapping[str, Any], message: Any) -> None:
        """Read a choice, whose message or delta this is.

        Raises:
            ModelError: its content is neither text nor a list of blocks.
        """
        self.reason = choice.get("finish_reason") or self.reason
        message = message if isinstance(message, dict) else {"content": choice.get("text")}
        content = message.get("content")
        if content is not None and not isinstance(content, (str, list)):
            raise ModelError(f"the server sent {type(content).__name__} in place of text")
        self.blocks.read(content)
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            self.blocks.refusals.append(refusal)
        traces = (chars_of(message.get(name)) for name in ("reasoning_content", "reasoning", "thinking"))
        self.blocks.reasoning_chars += next((chars for chars in traces if chars), 0)
        self.blocks.calls_tools |= bool(message.get("tool_calls") or message.get("function_call"))
        blocks = self.blocks
        self.has_content |= bool(
            isinstance(content, str) or blocks.text or blocks.reasoning_chars or blocks.calls_tools
        )
        self.has_content |= blocks.refusal is not None

    def ending(self, usage: Any) -> Ending:
        """Return how it ended."""
        finish = finish_reason(self.reason)
        if self.blocks.calls_tools and finish in ("stop", "other", "unknown") and not "".join(self.blocks.text).strip():
            finish = "tool_calls"
        return Ending(
            finish=finish,
            refusal=self.blocks.refusal,
            reasoning_chars=self.blocks.reasoning_chars,
            usage=usage_of(usage),
        )


def _first_choice(reply: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return None
    choice: Mapping[str, Any] = choices[0]
    return choice


class StreamEnd:
    """Follows a stream of chunks to its end."""

    def __init__(self) -> None:
        self._said = Said()
        self._begun = False
        self._given = 0  # texts
        self._usage: Any = None

    def piece_of(self, chunk: Mapping[str, Any]) -> str:
        """Return the text of one chunk; empty where it has none.

        Raises:
            ModelError: the chunk holds something other than text and blocks.
        """
        self._begun = True
        self._usage = chunk.get("usage") or self._usage
        choice = _first_choice(chunk)
        if choice is None:
            return ""
        self._said.read_choice(choice, choice.get("delta"))
        texts = self._said.blocks.text
        piece, self._given = "".join(texts[self._given :]), len(texts)
        return piece

    def ending(self) -> Ending:
        """Return how the stream ended.

        Raises:
            ModelError: it broke off without saying why.
        """
        if self._said.reason is None:
            if not self._begun:
                raise ModelError(f"the server's stream held nothing: base_url may lead elsewhere, {_USUAL_END}")
            raise ModelError("the server's stream broke off before the answer was complete")
        return self._said.ending(self._usage)
