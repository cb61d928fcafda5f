"""The largest set of answers that do not contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

LARGEST = 20  # of what is searched exactly; the search is exponential in it


def largest_independent_set(conflicts: Sequence[Sequence[bool]]) -> tuple[int, ...]:
    """The largest set of which no two conflict; of several, the first in dictionary order.

    Args:
        conflicts: n x n, symmetric; the diagonal counts for nothing. n is at most `LARGEST`.

    Raises:
        ValueError: n is larger.
    """
    count = len(conflicts)
    if count > LARGEST:
        raise ValueError(f"{count} answers are too many for an exact search (at most {LARGEST})")
    rivals = [sum(1 << j for j in range(count) if j != i and conflicts[i][j]) for i in range(count)]
    best: tuple[int, ...] = ()

    def search(chosen: tuple[int, ...], free: int) -> None:
        nonlocal best
        if len(chosen) + free.bit_count() <= len(best):
            return
        if not free:
            best = chosen
            return
        first = (free & -free).bit_length() - 1
        rest = free & ~(1 << first)
        search((*chosen, first), rest & ~rivals[first])
        if rivals[first] & rest:  # without a rival left, the first one is in every largest set
            search(chosen, rest)

    search((), (1 << count) - 1)
    return best
