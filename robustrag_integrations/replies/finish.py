"""Finish reasons, from the words that servers and clients have for them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from robustrag_integrations.replies.reply import FinishReason

_NAMES = ("finish_reason", "stop_reason", "stopReason", "done_reason", "native_finish_reason")
_LONGEST = 60  # characters of such a word
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


def finish_reason(said: Any) -> FinishReason:
    """Normalise a `finish_reason`, `stop_reason`, `done_reason` or `status`: `unknown` for nothing, else `other`."""
    word = said.name if isinstance(said, Enum) else said
    if word is None or word == "" or isinstance(word, bool) or not isinstance(word, (str, int)):
        return "unknown"
    last = str(word)[:_LONGEST].rpartition(".")[2].strip().casefold()
    return _MEANING.get(last.removeprefix("finish_reason_"), "other")


def entry(holder: Any, name: str) -> Any:
    """Return an entry of a mapping, or an attribute of anything else; None if there is none."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def reason_in(raw: Any, *others: Any) -> FinishReason:
    """Return the finish reason that a response, or one of the others, names; else that of its details or status."""
    for holder in (raw, *others):
        for name in _NAMES:
            if (found := finish_reason(entry(holder, name))) != "unknown":
                return found
    if reason := entry(entry(raw, "incomplete_details"), "reason"):
        return finish_reason(reason)
    status = entry(raw, "status")
    return finish_reason("length" if status == "incomplete" else status)
