"""How many groups of each tier can be replaced together, for answers that are decided by sums over groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Quorum

if TYPE_CHECKING:
    from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes


def proven_budgets(
    groups: Sequence[PassageGroup],
    weights: Sequence[int],
    responses: Sequence[Response],
    quorum: Quorum,
    holding: Callable[[TierVotes], Holding],
) -> tuple[dict[str, int], ...] | None:
    """Return the largest numbers of groups of each tier that can be replaced together; None without tiers.

    Args:
        groups: all groups.
        weights: per group how many votes it has; none for one that may still say anything.
        responses: per group its response.
        quorum: the number that must have been asked with success, which a replaced group may not be.
        holding: tells for each budget of these votes, of the groups that have some, whether the answer stays.
    """
    tiers = [group.tier for group in groups if group.tier is not None]
    if not tiers or len(tiers) < len(groups):
        return None
    from robustrag_integrations.defenses.agreement.linear_forms import TierVotes, largest_budgets

    counted = [(weight, tier) for weight, tier in zip(weights, tiers, strict=True) if weight]
    succeeded, votes = [response.text is not None for response in responses], [group.weight for group in groups]

    def stays(budgets: Sequence[dict[str, int]]) -> Holding:
        enough = TierVotes(votes, tiers, budgets).some_left(succeeded, quorum.needed(sum(votes)))
        return enough & holding(TierVotes([weight for weight, _ in counted], [tier for _, tier in counted], budgets))

    return largest_budgets(tiers, stays)
