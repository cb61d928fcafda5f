"""Majority voting over options, and its radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class VoteTally:
    """Votes per option; `winner` is None when no group voted. A tie goes to the option that comes first."""

    counts: tuple[int, ...]
    winner: int | None


def tally_votes(votes: Sequence[int | None], options: int) -> VoteTally:
    """Count votes.

    Args:
        votes: per group the index of its option, None for an abstention.
        options: how many options there are.
    """
    counts = [0] * options
    for vote in votes:
        if vote is not None:
            counts[vote] += 1
    winner = max(range(options), key=lambda i: (counts[i], -i)) if any(counts) else None
    return VoteTally(tuple(counts), winner)


def vote_radius(tally: VoteTally) -> int:
    """The largest r such that no replacement of any r groups changes the winner.

    The worst r replaced groups all voted for the winner and now vote for its rival u: c(x) - r against c(u) + r, a tie
    being won only when x comes before u. Options without a vote count 0.
    """
    if tally.winner is None:
        return 0
    winner, rivals = tally.winner, range(len(tally.counts))
    return min((tally.counts[winner] - tally.counts[u] - (winner > u)) // 2 for u in rivals if u != winner)
