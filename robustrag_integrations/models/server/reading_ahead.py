"""Guessing how an answer goes on, and how far a server's numbers drift. Nothing here decides a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from robustrag_integrations.models.server.row import Row, Tokens
from robustrag_integrations.models.server.token_lists import TokenList


@dataclass(frozen=True)
class Draft:
    """How the answer may go on.

    Attributes:
        tokens: the tokens that are likely to come.
        open: whether nothing is known of what comes after them; else the answer is thought to end there.
    """

    tokens: Tokens
    open: bool


def drafted(rows: Iterable[Row], prefix: Tokens, most: int, ends: Callable[[int], bool]) -> Draft:
    """The best token of all these rows together, one after another, as far as any of them goes.

    Args:
        rows: those that are expected to take part.
        prefix: the answer so far.
        most: how many tokens at most.
        ends: whether a token is likely to be the last one.
    """
    ahead = list(rows)
    tokens: Tokens = ()
    while len(tokens) < most:
        lists = [row.guessed((*prefix, *tokens)) for row in ahead]
        sums: Counter[int] = Counter()
        for found in lists:
            sums.update(found.listed if found is not None else {})
        if not sums:
            return Draft(tokens, open=True)
        best = min(sums, key=lambda token: (-sums[token], token))
        if ends(best):
            break
        tokens = (*tokens, best)
    return Draft(tokens, open=False)


def drift_between(one: TokenList, other: TokenList) -> float:
    """How far two lists of the same tokens differ, at least."""
    gaps = [abs(one.listed[token] - other.listed[token]) for token in one.listed.keys() & other.listed.keys()]
    for here, there in ((one, other), (other, one)):
        gaps += [p - there.unlisted for token, p in here.listed.items() if token not in there.listed]
    return max(gaps, default=1.0)
