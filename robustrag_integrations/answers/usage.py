"""Tokens and money: the usage of calls, their sums, and their cost. Unknown numbers stay unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, or of several together, as the server counted them; None where that is not known.

    Attributes:
        prompt: tokens of the prompt, those of `cached` among them.
        cached: tokens of the prompt that were read from the server's cache.
        completion: tokens of the reply, those of `reasoning` among them.
        reasoning: tokens of the reply that were reasoning.
    """

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None


UNTOLD = Usage()
"""The usage of a call that reported nothing: one object, which a comparison by identity finds."""


def together(usages: Sequence[Usage]) -> Usage:
    """Return the sum; a kind of tokens that one call did not tell is unknown in the sum. Of no calls at all, 0."""
    if len(usages) == 1:
        return usages[0]
    if any(usage is UNTOLD for usage in usages):
        return UNTOLD
    return Usage(*(None if None in kind else sum(kind) for kind in _by_kind(usages)))


def told(usages: Iterable[Usage]) -> Usage:
    """Return the sum over the calls that told, at least a part of the whole; unknown if none did."""
    telling = [usage for usage in usages if usage is not UNTOLD]
    known = ([number for number in kind if number is not None] for kind in _by_kind(telling))
    return Usage(*(sum(kind) if kind else None for kind in known)) if telling else UNTOLD


def _by_kind(usages: Sequence[Usage]) -> list[tuple[Any, ...]]:
    """The tokens of each call, kind by kind, in the order of the fields."""
    return list(zip(*map(_NUMBERS, usages), strict=True)) or [()] * 4


_NUMBERS = attrgetter("prompt", "cached", "completion", "reasoning")


@dataclass(frozen=True)
class Spending:
    """The calls and tokens that an answer took.

    Where a tie is settled by scores (`TextModel.score`), these are a round and no calls: no reply is written, and no
    model tells their tokens, so that as calls they would leave every total unknown. A server reads each group's prompt
    again for each tied answer, and may charge for that.

    Attributes:
        calls: prompts that were sent for a reply; of decoding aggregation one per row and step, and what its
            abstentions took.
        rounds: number of times it waited for replies: calls of one round do not wait for each other. A wave is a round.
        silent: of the calls, how many did not tell the tokens of their prompt or of their reply. Failed calls are
            among them, though a server may have charged for them.
        total: tokens of all calls; a kind that some call did not tell is None.
        told: tokens of the calls that told.
        shared: tokens of the calls that belong to no group: the final call, the question alone.
    """

    calls: int = 0
    rounds: int = 0
    silent: int = 0
    total: Usage = Usage()
    told: Usage = Usage()
    shared: Usage = Usage()


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, in a currency of your own.

    Attributes:
        input: of prompts.
        output: of replies, reasoning included.
        cached_input: of the part of prompts that was read from a cache; None: as much as `input`.

    Raises:
        ValueError: a price is not a finite number of at least 0.
    """

    input: float
    output: float
    cached_input: float | None = None

    def __post_init__(self) -> None:
        for name, price in (("input", self.input), ("output", self.output), ("cached_input", self.cached_input)):
            if price is None and name == "cached_input":
                continue
            if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < math.inf:
                raise ValueError(f"{name}={price!r} must be a price per million tokens, a number of at least 0")

    def of(self, usage: Usage) -> float | None:
        """Return the cost of these tokens; None where prompt or reply is unknown.

        Where it is not known how much came from a cache, all of the prompt is charged in full: the cost is then an
        upper bound.
        """
        if usage.prompt is None or usage.completion is None:
            return None
        cached = min(usage.cached or 0, usage.prompt)
        rate = self.input if self.cached_input is None else self.cached_input
        return ((usage.prompt - cached) * self.input + cached * rate + usage.completion * self.output) / 1e6


def prices_of(given: Any) -> Prices:
    """Prices from a mapping, as configurations have them.

    Raises:
        ValueError: a name is missing or unknown, or a price makes no sense.
    """
    names = tuple(f.name for f in fields(Prices))
    if not isinstance(given, Mapping) or not {"input", "output"} <= set(given) <= set(names):
        raise ValueError(f"prices must hold input and output, and may hold cached_input; got {given!r:.100}")
    return Prices(**given)


def tokens_in_words(spending: Spending) -> str:
    """Describe the tokens of an answer, and for how many calls they are not known."""
    known = spending.told
    if known.prompt is None and known.completion is None:
        return "not known: no call told its tokens" if spending.calls else "none"
    parts = [("in", known.prompt), ("of them cached", known.cached), ("out", known.completion)]
    parts.append(("of them reasoning", known.reasoning))
    said = ", ".join(f"{number:,} {name}" for name, number in parts if number is not None)
    if spending.silent:
        said += f"; at least, as {spending.silent} of {spending.calls} calls did not tell"
    return said
