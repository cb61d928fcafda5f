"""The ending and usage of a reply, and its parts that are no answer: the same for every model and framework."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import Literal, TypeAlias, get_args

from robustrag_integrations.answers.usage import UNTOLD, Usage

__all__ = ["Ending", "FinishReason", "Piece", "Usage"]

FinishReason = Literal["stop", "length", "content_filter", "tool_calls", "other", "unknown"]

_FINISHES = get_args(FinishReason)
_KINDS = (("refusal", (str, NoneType)), ("reasoning_chars", int), ("usage", Usage))
_NAMES = {"refusal": "a str or None", "reasoning_chars": "a number of characters", "usage": "a Usage"}


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
        for name, kinds in _KINDS:
            if not isinstance(value := getattr(self, name), kinds):
                raise TypeError(f"{name}={value!r:.60} must be {_NAMES[name]}")
        if self.logprobs is not None and not _are_logprobs(self.logprobs):
            raise ValueError(f"logprobs={self.logprobs!r:.60} must be a tuple of floats of at most 0, or None")


def _are_logprobs(given: object) -> bool:
    return isinstance(given, tuple) and all(isinstance(value, float) and value <= 0 for value in given)


Piece: TypeAlias = str | Ending
"""What a streamed reply is made of: pieces of its text, and last, where it is known, how it ended."""
