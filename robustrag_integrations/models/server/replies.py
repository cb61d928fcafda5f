"""What servers reply, read with suspicion: the text of chat and text completions, whole or in pieces."""

from __future__ import annotations

from typing import Any

from robustrag_integrations.errors import ModelError

_MOST_FINGERPRINTS = 16


def said_by_server(error: Any) -> str:
    """A client's error in words: the status and the server's own, where there are any; else the client's, and why."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    if isinstance(message, str):
        words = f"HTTP {getattr(error, 'status_code', '?')}: {message}"
    else:
        words = str(error) or type(error).__name__
    return f"{words} ({error.__cause__})" if error.__cause__ is not None else words


def choice_of(reply: Any) -> Any:
    """The first choice of a completion.

    Raises:
        ModelError: there is none, or the server's content filter cut it.
    """
    choices = getattr(reply, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise ModelError("the server sent no choices")
    _check_reason(getattr(choices[0], "finish_reason", None))
    return choices[0]


def text_of(reply: Any) -> str:
    """The text of a chat or text completion.

    Raises:
        ModelError: there is none, or the server's content filter cut it.
    """
    choice = choice_of(reply)
    message = getattr(choice, "message", None)
    text = getattr(choice, "text", None) if message is None else getattr(message, "content", None)
    if not isinstance(text, str):
        refusal = getattr(message, "refusal", None)
        raise ModelError(f"the server sent no text{f': {refusal}' if refusal else ''}")
    return text


def _check_reason(reason: Any) -> None:
    if reason == "content_filter":
        raise ModelError("the server's content filter stopped the response")


class StreamEnd:
    """Watches whether a stream of chunks came to its proper end."""

    def __init__(self) -> None:
        self._reason: Any = None

    def piece_of(self, chunk: Any) -> str:
        """The text of one chunk; empty where it has none.

        Raises:
            ModelError: the server's content filter cut the stream, or a chunk holds something else than text.
        """
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list) or not choices:
            return ""
        self._reason = getattr(choices[0], "finish_reason", None) or self._reason
        _check_reason(self._reason)
        delta = getattr(choices[0], "delta", None)
        text = getattr(choices[0], "text", None) if delta is None else getattr(delta, "content", None)
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

    def note(self, reply: Any) -> None:
        """Remember a reply's fingerprint, if it has one."""
        mark = getattr(reply, "system_fingerprint", None)
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
