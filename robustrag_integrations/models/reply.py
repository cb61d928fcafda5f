"""The ending, usage and confidence of a reply, the same for every model and framework.

They are read from what clients give, by name and type, never by place. Servers are not trusted: what has another type
counts as not known. OpenAI's chats and Responses, Anthropic's messages, Bedrock, Gemini and LangChain share most words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.answers.usage import UNTOLD, Usage

FinishReason = Literal["stop", "length", "content_filter", "tool_calls", "other", "unknown"]

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
    "tool_calls": ("tool_calls", "tool_call", "tool_use", "function_call", "tool-calls", "pause_turn",
                   "malformed_function_call", "unexpected_tool_call"),
}  # fmt: skip
_MEANING: dict[str, FinishReason] = {word: reason for reason, words in _WORDS.items() for word in words}
_TYPES: tuple[tuple[str, Any, str], ...] = (
    ("refusal", (str, NoneType), "a str or None"),
    ("reasoning_chars", int, "a number of characters"),
    ("usage", Usage, "a Usage"),
)

LEVELS = 16
"""The highest level of `confidence`."""

LONGEST = 1 << 17  # tokens of a reply
LOWEST = -1e4  # log-probability; lower ones are 0 in effect
_ROUNDING = 1e-3  # by which a log-probability may exceed 0, as servers round

_TEXT = ("text", "output_text", "text_delta", "input_text")
_REASONING = (
    "reasoning", "thinking", "redacted_thinking", "reasoning_content", "thinking_delta", "reasoning_summary",
    "summary_text", "reasoning_text", "reasoning.text", "reasoning.summary", "reasoning.encrypted",
)  # fmt: skip
_TOOLS = ("tool_use", "tool_call", "function_call", "custom_tool_call", "server_tool_use")
_HOLDS = (
    "text", "thinking", "reasoning", "reasoning_content", "reasoningContent", "reasoningText", "summary", "content",
)  # fmt: skip
_DEEPEST = 8  # blocks within blocks


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A reply's metadata: everything known of it besides its text. A stream yields it last, if any of it is known.

    Replies that differ in `usage` and `logprobs` alone are equal.

    Attributes:
        finish: why the reply ended. `length`: it was cut at its limit of tokens; `content_filter`: by a filter;
            `tool_calls`: the model called a tool in place of answering; `unknown`: not said.
        refusal: the words of a refusal that the server marked as one; None where it marked none. "": no words.
        reasoning_chars: characters of reasoning that came apart from the text. The reasoning itself is dropped.
        usage: tokens.
        logprobs: the natural logarithms of the probabilities of the text's tokens, that of the token that ends it among
            them where the model gives it, those of reasoning not; None: not known.
    """

    finish: FinishReason = "unknown"
    refusal: str | None = None
    reasoning_chars: int = 0
    usage: Usage = field(default=UNTOLD, compare=False)
    logprobs: tuple[float, ...] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.finish not in _FINISHES:
            raise ValueError(f"finish={self.finish!r:.60} must be one of {', '.join(map(repr, _FINISHES))}")
        for name, kinds, what in _TYPES:
            if not isinstance(value := getattr(self, name), kinds):
                raise TypeError(f"{name}={value!r:.60} must be {what}")
        given = self.logprobs
        if given is not None and not (isinstance(given, tuple) and all(isinstance(v, float) and v <= 0 for v in given)):
            raise ValueError(f"logprobs={given!r:.60} must be a tuple of floats of at most 0, or None")


Piece: TypeAlias = str | Ending
"""What a streamed reply is made of: pieces of its text, and last, where it is known, how it ended."""


def finish_reason(said: Any) -> FinishReason:
    """Normalise a `finish_reason`, `stop_reason`, `done_reason` or `status`: `unknown` for nothing, else `other`."""
    word = said.name if isinstance(said, Enum) else said
    if word is None or word == "" or isinstance(word, bool) or not isinstance(word, (str, int)):
        return "unknown"
    last = str(word)[:_LONGEST_WORD].rpartition(".")[2].strip().casefold()
    return _MEANING.get(last.removeprefix("finish_reason_"), "other")


def calling(finish: FinishReason, calls_tools: bool) -> FinishReason:
    """Return the finish reason of a reply that may call tools, whatever it says beside: some servers call that a stop.

    One that was cut or filtered stays so.
    """
    return "tool_calls" if calls_tools and finish in ("stop", "other", "unknown") else finish


def finish_of(known: FinishReason, later: FinishReason) -> FinishReason:
    """Return the finish reason of a stream by that of its pieces so far and that of a later piece."""
    return known if later == "unknown" else calling(later, known == "tool_calls")


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


def usage_of(found: Any) -> Usage:
    """Return the tokens from a `usage`, `token_usage` or `usage_metadata`, be it a mapping or an object."""
    if found is None:
        return UNTOLD
    read = _first(found, "prompt_tokens_details", "input_tokens_details", "input_token_details")
    made = _first(found, "completion_tokens_details", "output_tokens_details", "output_token_details")
    cached, reasoning = _count(read, "cached_tokens", "cache_read"), _count(made, "reasoning_tokens", "reasoning")
    cached_names = ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_content_token_count")
    return Usage(
        prompt=_count(found, "prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count"),
        cached=cached if cached is not None else _count(found, *cached_names),
        completion=_count(found, "completion_tokens", "output_tokens", "candidates_token_count", "eval_count"),
        reasoning=reasoning if reasoning is not None else _count(found, "thoughts_token_count"),
    )


def _first(holder: Any, *names: str) -> Any:
    return next((found for name in names if (found := entry(holder, name)) is not None), None)


def _count(holder: Any, *names: str) -> int | None:
    return next((value for name in names if is_whole_number(value := entry(holder, name), 0)), None)


@dataclass
class Blocks:
    """The parts of a message's content, by the type of each block.

    Text is what blocks of text hold. Reasoning is counted and dropped. Search results and blocks of unknown types are
    no answer.
    """

    text: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    reasoning_chars: int = 0
    calls_tools: bool = False

    @property
    def refusal(self) -> str | None:
        """All refusals as one text; None without any."""
        return "".join(self.refusals) if self.refusals else None

    def read(self, content: Any, depth: int = 0) -> Blocks:
        """Sort the blocks of a content by type, and return them."""
        if isinstance(content, str):
            self.text.append(content)
        elif isinstance(content, list) and depth < _DEEPEST:
            for block in content:
                self.read(block, depth + 1)
        elif isinstance(content, Mapping):
            self._read_block(content, depth)
        return self

    def _read_block(self, block: Mapping[str, Any], depth: int) -> None:
        kind, text = block.get("type"), block.get("text")
        if kind in _REASONING or block.get("thought") is True or "reasoningContent" in block:
            self.reasoning_chars += chars_of(block)
        elif kind == "refusal":
            self.refusals.append(str(block.get("refusal") or ""))
        elif kind in ("message", "non_standard"):
            self.read(block.get("content" if kind == "message" else "value"), depth + 1)
        elif kind in _TOOLS:
            self.calls_tools = True
        elif (kind in _TEXT or kind is None) and isinstance(text, str):
            if block.get("phase") == "commentary":  # a model's remarks on the way to the answer
                self.reasoning_chars += len(text)
            else:
                self.text.append(text)


def chars_of(reasoning: Any, depth: int = 0) -> int:
    """Count the characters of a reasoning trace in any form; signatures and encrypted traces count as none."""
    if isinstance(reasoning, str):
        return len(reasoning)
    if isinstance(reasoning, list) and depth < _DEEPEST:
        return sum(chars_of(part, depth + 1) for part in reasoning)
    if isinstance(reasoning, Mapping) and depth < _DEEPEST:
        return sum(chars_of(reasoning.get(name), depth + 1) for name in _HOLDS)
    return 0


def confidence(logprobs: Sequence[float] | None) -> int | None:
    """Return how sure a model was of a reply, as a whole number from 0 to `LEVELS`; None where that is not known.

    It is floor(LEVELS * exp(s / sqrt(n))), where s is the sum of the n tokens' log-probabilities (natural logarithms),
    that of the end token among them: between the probability of the whole reply, which falls with its length, and the
    mean over its tokens, which does not.
    """
    if not logprobs or math.isnan(total := sum(logprobs)):
        return None
    return int(LEVELS * math.exp(min(0.0, total / math.sqrt(len(logprobs)))))


def logprobs_in(found: Any) -> tuple[float, ...] | None:
    """Return the log-probabilities of a reply's tokens, as OpenAI-compatible servers and their clients list them.

    `found` is the `logprobs` of a chat (`content`, a list of tokens with their `logprob`) or of a text completion
    (`token_logprobs`, a list of numbers), or one of these lists. None where something is no log-probability.
    """
    listed = found
    if found is not None and not isinstance(found, (list, tuple)):
        listed = next((v for n in ("content", "token_logprobs") if isinstance(v := entry(found, n), (list, tuple))), ())
    values: list[float] = []
    for each in islice(listed or (), LONGEST + 1):
        value = entry(each, "logprob") if isinstance(each, Mapping) or hasattr(each, "logprob") else each
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and value <= _ROUNDING):  # NaN is not, either
            return None
        values.append(float(min(max(value, LOWEST), 0.0)))
    return tuple(values) if 0 < len(values) <= LONGEST else None
