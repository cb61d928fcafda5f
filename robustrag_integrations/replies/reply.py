"""The ending and usage of a reply, the same for every model and framework, from the words that these have for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import NoneType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from robustrag_integrations._util.redaction import redacted, secrets_of
from robustrag_integrations.answers.usage import UNTOLD, Usage

FinishReason = Literal["stop", "length", "content_filter", "tool_calls", "other", "unknown"]

AnyEnding = TypeVar("AnyEnding", bound="Ending")

_FINISHES = get_args(FinishReason)
_FINISH_FIELDS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "native_finish_reason")
_LONGEST_WORD = 60  # characters of such a word
_WORDS: dict[FinishReason, tuple[str, ...]] = {
    "stop": ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "end", "complete", "completed", "success", "1"),
    "length": ("length", "max_tokens", "max_output_tokens", "max_length", "model_length", "token_limit", "2",
               "model_context_window_exceeded", "max_new_tokens", "context_length", "max_completion_tokens"),
    "content_filter": ("content_filter", "content_filtered", "safety", "recitation", "guardrail_intervened",
                       "blocklist", "prohibited_content", "spii", "image_safety", "language", "refusal",
                       "error_toxic", "guardrails", "blocked", "content-filter"),
    "tool_calls": ("tool_calls", "tool_call", "tool_use", "function_call", "tool-calls"),
}  # fmt: skip
_MEANING: dict[str, FinishReason] = {word: reason for reason, words in _WORDS.items() for word in words}
_TYPES = (("refusal", (str, NoneType)), ("reasoning_chars", int), ("usage", Usage))
_TYPE_NAMES = {"refusal": "a str or None", "reasoning_chars": "a number of characters", "usage": "a Usage"}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A reply's metadata: everything known of it besides its text. A stream yields it last, if any of it is known.

    Attributes:
        finish: why the reply ended. `length`: it was cut at its limit of tokens; `content_filter`: by a filter;
            `tool_calls`: the model called a tool in place of answering; `unknown`: not said.
        refusal: the words of a refusal that the server marked as one; None where it marked none. "": no words.
        reasoning_chars: characters of reasoning that came apart from the text. The reasoning itself is dropped.
        usage: tokens.
        logprobs: the natural logarithms of the probabilities of the text's tokens, that of the token that ends it among
            them where the model gives it, those of reasoning not; None: not known.

    Replies that differ in `usage` and `logprobs` alone are equal.

    Raises:
        ValueError, TypeError: a field is something else; a reply that may have been cut must not pass for a whole one.
    """

    finish: FinishReason = "unknown"
    refusal: str | None = None
    reasoning_chars: int = 0
    usage: Usage = field(default=UNTOLD, compare=False)
    logprobs: tuple[float, ...] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.finish not in _FINISHES:
            raise ValueError(f"finish={self.finish!r:.60} must be one of {', '.join(map(repr, _FINISHES))}")
        for name, kinds in _TYPES:
            if not isinstance(value := getattr(self, name), kinds):
                raise TypeError(f"{name}={value!r:.60} must be {_TYPE_NAMES[name]}")
        if self.logprobs is not None and not _are_logprobs(self.logprobs):
            raise ValueError(f"logprobs={self.logprobs!r:.60} must be a tuple of floats of at most 0, or None")


def _are_logprobs(given: object) -> bool:
    return isinstance(given, tuple) and all(isinstance(value, float) and value <= 0 for value in given)


Piece: TypeAlias = str | Ending
"""What a streamed reply is made of: pieces of its text, and last, where it is known, how it ended."""


def finish_reason(said: Any) -> FinishReason:
    """Normalise a `finish_reason`, `stop_reason`, `done_reason` or `status`: `unknown` for nothing, else `other`."""
    word = said.name if isinstance(said, Enum) else said
    if word is None or word == "" or isinstance(word, bool) or not isinstance(word, (str, int)):
        return "unknown"
    last = str(word)[:_LONGEST_WORD].rpartition(".")[2].strip().casefold()
    return _MEANING.get(last.removeprefix("finish_reason_"), "other")


def entry(holder: Any, name: str) -> Any:
    """Return an entry of a mapping, or an attribute of anything else; None if there is none."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def reason_in(raw: Any, *others: Any) -> FinishReason:
    """Return the finish reason that a response, or one of the others, names; else that of its details or status."""
    for holder in (raw, *others):
        for name in _FINISH_FIELDS:
            if (found := finish_reason(entry(holder, name))) != "unknown":
                return found
    if reason := entry(entry(raw, "incomplete_details"), "reason"):
        return finish_reason(reason)
    status = entry(raw, "status")
    return finish_reason("length" if status == "incomplete" else status)


def without_secrets(reply: AnyEnding, *clients: object) -> AnyEnding:
    """Return the reply without the clients' keys in its refusal: servers echo what they were sent."""
    if reply.refusal is None:
        return reply
    return replace(reply, refusal=redacted(reply.refusal, secrets_of(*clients)))
