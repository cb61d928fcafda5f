"""Subset sums of weighted groups, as the bits of a whole number: bit s is set if some subset has the total s."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def subset_sums(weights: Iterable[int]) -> int:
    """Return the totals of all subsets of these weights, the empty one included."""
    found = 1
    for weight in weights:
        found |= found << weight
    return found


def smallest_from(sums: int, least: int) -> int | None:
    """Return the smallest total of at least `least`; None if there is none."""
    least = max(least, 0)
    rest = sums >> least
    return least + (rest & -rest).bit_length() - 1 if rest else None


def bits(sums: int) -> Iterator[int]:
    """Yield the totals, ascending."""
    while sums:
        lowest = sums & -sums
        yield lowest.bit_length() - 1
        sums ^= lowest
