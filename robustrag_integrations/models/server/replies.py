"""What servers reply, read with suspicion: the text of chat and text completions, whole or in pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from robustrag_integrations.errors import ModelError

_MOST_FINGERPRINTS = 16


def said_by_server(error: Any) -> str:
    """A client's error in words: the status and the server's own, where there are any; else the client's, and why."""
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
    except ValueError:  # an address that is none
        host = ""
    where = f" to {host[:100]}" if host else ""
    return (
        f"the server redirects (HTTP {status}{where}), and redirects are not followed, as the passages would go there: "
        "give the address that answers as base_url"
    )


def parsed(body: bytes) -> Mapping[str, Any]:
    """A reply, or an event of one, as JSON.

    Raises:
        ModelError: it is not a JSON object, or says that something went wrong.
    """
    found: Any = None
    try:
        found = json.loads(body)
        wrong = None if isinstance(found, dict) else f"{type(found).__name__} in place of a completion"
    except (ValueError, RecursionError) as error:  # which hold the body: nothing may be chained to them
        reason = error.reason if isinstance(error, UnicodeDecodeError) else getattr(error, "msg", type(error).__name__)
        wrong = f"something that is not JSON ({reason})"
    if wrong is not None:
        raise ModelError(f"the server sent {wrong}")
    if problem := found.get("error"):
        message = problem.get("message") if isinstance(problem, dict) else problem
        raise ModelError(f"the server sent an error: {message}")
    reply: Mapping[str, Any] = found
    return reply


def choice_of(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice of a completion; there is no other, as one is asked for.

    Raises:
        ModelError: there is none, or the server's content filter cut it.
    """
    choice = _first_choice(reply)
    if choice is None:
        raise ModelError("the server sent no choices")
    _check_reason(choice.get("finish_reason"))
    return choice


def text_of(reply: Mapping[str, Any]) -> str:
    """The text of a chat or text completion.

    Raises:
        ModelError: there is none, or the server's content filter cut it.
    """
    choice = choice_of(reply)
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    if not isinstance(text, str):
        refusal = message.get("refusal") if isinstance(message, dict) else None
        raise ModelError(f"the server sent no text{f': {refusal}' if refusal else ''}")
    return text


def _first_choice(reply: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return None
    choice: Mapping[str, Any] = choices[0]
    return choice


def _check_reason(reason: Any) -> None:
    if reason == "content_filter":
        raise ModelError("the server's content filter stopped the response")


class StreamEnd:
    """Watches whether a stream of chunks came to its proper end."""

    def __init__(self) -> None:
        self._reason: Any = None

    def piece_of(self, chunk: Mapping[str, Any]) -> str:
        """The text of one chunk; empty where it has none.

        Raises:
            ModelError: the server's content filter cut the stream, or a chunk holds something else than text.
        """
        choice = _first_choice(chunk)
        if choice is None:
            return ""
        self._reason = choice.get("finish_reason") or self._reason
        _check_reason(self._reason)
        delta = choice.get("delta")
        text = delta.get("content") if isinstance(delta, dict) else choice.get("text")
        if not isinstance(text, (str, type(None))):
            raise ModelError(f"the server's stream holds {type(text).__name__} in place of text")
        return text or ""

    def check(self) -> None:
        """Raise ModelError if the stream broke off without saying why it ended."""
        if self._reason is None:
            raise ModelError("the server's stream broke off before the answer was complete")


class Fingerprints:
    """The `system_fingerprint`s that a server's replies carried: one per configuration of the server."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def note(self, reply: Mapping[str, Any]) -> None:
        """Remember a reply's fingerprint, if it has one."""
        mark = reply.get("system_fingerprint")
        if isinstance(mark, str) and mark and len(self._seen) < _MOST_FINGERPRINTS:
            self._seen[mark[:80]] = None

    @property
    def seen(self) -> tuple[str, ...]:
        """In the order of their first appearance."""
        return tuple(self._seen)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Says so when there was more than one."""
        if len(self._seen) < 2:
            return ()
        return (
            f"the server changed between calls (system_fingerprint {', '.join(self._seen)}): the same prompt may have "
            "been answered by different configurations",
        )
