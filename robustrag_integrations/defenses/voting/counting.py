"""Majority vote over options, and its radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robustrag_integrations._util.subset_sums import bits, smallest_from, subset_sums

if TYPE_CHECKING:
    from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes


@dataclass(frozen=True)
class VoteTally:
    """Votes per option; `winner` is None when no group voted. A tie goes to the option that comes first."""

    counts: tuple[int, ...]
    winner: int | None


def tally_votes(votes: Sequence[int | None], options: int, weights: Sequence[int] | None = None) -> VoteTally:
    """Count votes.

    Args:
        votes: per group the index of its option, None for an abstention.
        options: number of options.
        weights: per group how many votes it has, at least 1; None for one each.
    """
    counts = [0] * options
    for vote, weight in zip(votes, weights or [1] * len(votes), strict=True):
        if vote is not None:
            counts[vote] += weight
    winner = max(range(options), key=lambda i: (counts[i], -i)) if any(counts) else None
    return VoteTally(tuple(counts), winner)


def vote_radius(
    tally: VoteTally,
    votes: Sequence[int | None] | None = None,
    weights: Sequence[int] | None = None,
    pending: int = 0,
) -> int:
    """Return the largest r such that no replacement of groups with r votes together changes the winner.

    With one vote per group, the worst r replaced groups all voted for the winner and now vote for its rival u:
    c(x) - r against c(u) + r, a tie being won only when x comes before u. Options without a vote count 0.

    With weights, an attacker who replaces a votes that went to the winner and b votes that went to neither takes 2a + b
    of its lead over u. Which a and b there are depends on the groups' weights: all sums are looked at.

    Args:
        tally: the votes, counted.
        votes: per group its option; None where every group has one vote.
        weights: per group its votes; 0 for one that does not count.
        pending: number of further votes, not counted yet, which may go anywhere; below 0 if they may decide.
    """
    if tally.winner is None:
        return -1 if pending else 0
    winner, rivals = tally.winner, range(len(tally.counts))
    if votes is None or weights is None:
        leads = [tally.counts[winner] - tally.counts[u] - pending - (winner > u) for u in rivals if u != winner]
        return min(leads) // 2
    return min(_cheapest(tally, votes, weights, u, pending) for u in rivals if u != winner) - 1


def vote_holding(tally: VoteTally, votes: Sequence[int | None], by_tier: TierVotes, pending: int = 0) -> Holding:
    """Tell for each budget whether the winner stays when it replaces groups.

    Args:
        tally: the votes, counted.
        votes: per group its option.
        by_tier: the groups' votes and the budgets.
        pending: as of `vote_radius`.
    """
    import numpy as np

    holds = np.ones(by_tier.last + 1, bool)
    for rival in range(len(tally.counts)):
        if tally.winner is not None and rival != tally.winner:
            lead = np.array([(vote == tally.winner) - (vote == rival) for vote in votes], np.int64)
            holds &= by_tier.leasts(lead, -1, by_tier.last, pending) + (tally.winner < rival) > 0
    if tally.winner is None:
        holds[:] = False
    holds[0] |= pending == 0
    return holds


def _cheapest(tally: VoteTally, votes: Sequence[int | None], weights: Sequence[int], rival: int, pending: int) -> int:
    """Return the fewest votes whose replacement makes the rival win."""
    winner = tally.winner
    assert winner is not None  # noqa: S101 - the caller looked
    lead = tally.counts[winner] - tally.counts[rival] + (winner < rival) - pending  # what has to be taken
    of_winner = subset_sums(w for w, vote in zip(weights, votes, strict=True) if vote == winner)
    of_others = subset_sums(w for w, vote in zip(weights, votes, strict=True) if vote not in (winner, rival))
    found = (a + b for a in bits(of_winner) if (b := smallest_from(of_others, lead - 2 * a)) is not None)
    return min(found)
