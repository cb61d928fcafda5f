"""Structured replies: `{"answer": str, "found": bool}`, from models that are constrained to this schema.

1. At its first use a model is asked a fixed prompt (`PROBE`) with the schema. It holds no passage and asks
   for something else, so that only what enforces the schema replies with such an object. This fixes the model's mode
   (`ReplyMode`); no later reply changes it.
2. Groups are then asked for the two fields (`prompts.structured_prompts`), and the requests carry the schema.
3. `answer_in` reads each reply for itself: `found: false` is an abstention, the answer's text goes down the path of
   every reply, and what is no such object is the failure of its own group.

The answer comes before the flag: small models asked for the flag first say that nothing was found, whatever the text.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, Literal

from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations._util.steps import adriven, driven
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Probed, Response
from robustrag_integrations.models.client_errors import status_of
from robustrag_integrations.models.event_loops import PerLoop
from robustrag_integrations.reply_text.reasoning import parts_of

Replies = Literal["auto", "text", "structured"]

SCHEMA: dict[str, Any] = {
    "title": "Reply",
    "description": "What the text says in reply to the question.",
    "type": "object",
    "properties": {
        "answer": {"type": "string", "description": "The answer alone, in a few words."},
        "found": {"type": "boolean", "description": "Whether the text contains the answer."},
    },
    "required": ["answer", "found"],
    "additionalProperties": False,
}

PROBE = "Reply with the word OK."

_LONGEST = 20_000  # characters of an object
_CUT = ("length", "content_filter", "tool_calls")
_MAY_PASS = (408, 409, 425, 429, 502, 503, 504)  # statuses that say nothing about a server's capabilities
_OF_THE_MODEL = (ModelError, ValueError, TypeError, LookupError, AttributeError, NotImplementedError)


def answer_in(response: Response) -> Response:
    """Return a structured reply as a reply in text: an answer, an abstention, or a failure if it is no such object.

    A reply that was cut before its object was complete keeps its `finish`, and no text.
    """
    if response.text is None or response.refusal is not None or response.abstains:
        return response
    parts = parts_of(response.text)
    if parts.unfinished:
        return response
    chars = response.reasoning_chars + parts.reasoning_chars
    read = replace(response, reasoning_chars=chars, aloud=response.aloud or parts.reasoning_chars > 0)
    try:
        answer, found = _fields(parts.answer)
    except (ValueError, RecursionError) as error:
        if response.finish in _CUT or not parts.answer.strip():
            return replace(read, text="")
        return replace(read, text=None, error=f"its reply is not the object that was asked for: {error}")
    finish = response.finish if response.finish == "content_filter" else "stop"
    return replace(read, text=answer, abstains=not found, finish=finish)


def _fields(text: str) -> tuple[str, bool]:
    """Return an object's answer and flag; no answer where the flag is false.

    Raises:
        ValueError, RecursionError: it is something else, too long, or says a thing twice.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST:,} characters")
    try:
        said = json.loads(text, object_pairs_hook=_each_once)
    except json.JSONDecodeError:
        raise ValueError("it is not JSON") from None
    if not isinstance(said, dict) or not isinstance(found := said.get("found"), bool):
        raise ValueError("it lacks the boolean 'found'")
    answer = said.get("answer") if found else ""
    if not isinstance(answer, str):
        raise ValueError("its 'answer' is not a string")
    return valid_text(answer), found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) < len(pairs):
        raise ValueError("it has two fields of one name")
    return said


class ReplyMode:
    """The way in which one model is asked for objects: found at its first use, and then kept.

    A probe that does not get through fixes nothing: the answer at hand is made of text, and the next one probes again.
    """

    def __init__(self) -> None:
        self.fixed: Probed | None = None
        self._turn = threading.Lock()
        self._turns = PerLoop(asyncio.Lock)

    def __reduce__(self) -> tuple[type[ReplyMode], tuple[()]]:
        """Pickle and copy as unknown: a copy probes anew."""
        return ReplyMode, ()

    @property
    def way(self) -> str:
        """The way in which the model is asked for objects; empty as long as it is not known."""
        return self.fixed.way if self.fixed else ""

    def settled(self, ways: Sequence[str], ask: Callable[[str], Response]) -> Probed:
        """Return the result of the first probe, which is made now if it was not.

        Args:
            ways: the ways in which the model may be asked for objects, the best first.
            ask: asks the probe in one of these ways; raises what the call raises.
        """
        with self._turn:
            return driven(self._steps(ways), ask, keeps=_every)

    async def asettled(self, ways: Sequence[str], ask: Callable[[str], Awaitable[Response]]) -> Probed:
        """`settled` in an event loop."""
        async with self._turns.here():
            return await adriven(self._steps(ways), ask, keeps=_every)

    def _steps(self, ways: Sequence[str]) -> Generator[str, Any, Probed]:
        if self.fixed:
            return self.fixed
        found = Probed()
        for way in ways:
            reply = yield way
            if isinstance(reply, Exception):
                found = Probed(why=f"asked by {way}: {type(reply).__name__} {status_of(reply) or ''}".rstrip())
                if not _is_of_the_model(reply):
                    return found
                continue
            try:
                _fields(parts_of(reply.text or "").answer)
                found = Probed(way, "")
                break
            except (ValueError, RecursionError) as error:
                found = Probed(why=f"asked by {way}: {error}")
        self.fixed = self.fixed or found
        return self.fixed


def _every(error: Exception) -> bool:
    return True


def _is_of_the_model(error: Exception) -> bool:
    """True if an error tells what the model or its server can do, and not that it was not reached."""
    status = status_of(error)
    if status is not None:
        return status not in _MAY_PASS
    return isinstance(error, _OF_THE_MODEL) and not getattr(error, "unreached", False)
