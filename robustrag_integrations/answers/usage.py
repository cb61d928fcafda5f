"""Tokens: the usage of calls, and their sums. Unknown numbers stay unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, or of several together, as the server counted them; None where that is not known.

    `cached` are those of the prompt that were read from the server's cache, `reasoning` those of the completion.
    """

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None


_NUMBERS = attrgetter("prompt", "cached", "completion", "reasoning")
UNTOLD = Usage()
"""The usage of a call that reported nothing: one object, which a comparison by identity finds."""


def together(usages: Sequence[Usage]) -> Usage:
    """Return the sum; a kind of tokens that one call did not tell is unknown in the sum. Of no calls at all, 0."""
    if len(usages) == 1:
        return usages[0]
    if any(usage is UNTOLD for usage in usages):
        return UNTOLD
    kinds = zip(*map(_NUMBERS, usages), strict=True) if usages else [()] * 4
    return Usage(*(None if None in kind else sum(kind) for kind in kinds))


def told(usages: Iterable[Usage]) -> Usage:
    """Return the sum over the calls that told, at least a part of the whole; unknown if none did."""
    telling = [usage for usage in usages if usage is not UNTOLD]
    if not telling:
        return UNTOLD
    known = ([number for number in kind if number is not None] for kind in zip(*map(_NUMBERS, telling), strict=True))
    return Usage(*(sum(kind) if kind else None for kind in known))


@dataclass(frozen=True)
class Spending:
    """The calls and tokens that an answer took.

    Attributes:
        calls: prompts that were sent for a reply; of decoding aggregation one per row and step.
        rounds: number of times it waited for replies: calls of one round do not wait for each other.
        silent: of the calls, how many did not tell the tokens of their prompt or of their reply; failed ones, too.
        total: tokens of all calls; a kind that some call did not tell is None.
        told: tokens of the calls that told.
        shared: tokens of the calls that belong to no source: the final call, the question alone.
    """

    calls: int = 0
    rounds: int = 0
    silent: int = 0
    total: Usage = Usage()
    told: Usage = Usage()
    shared: Usage = Usage()
