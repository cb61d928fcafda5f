"""Who owns what was retrieved: the groups that hold a planted passage, by what one vote is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from robustrag_integrations.evaluation.retrieval.searchers import Search
from robustrag_integrations.grouping.passages import Passage, isolate, passage_keys
from robustrag_integrations.grouping.quotas import SourceQuota, gather, gathered

MOST_FETCHED = 1000  # passages, in search of enough sources


@dataclass(frozen=True)
class Owned:
    """What an attacker owns of one retrieval.

    Attributes:
        groups: the votes there are.
        owned: rho, how many of them hold a passage that the attacker wrote. One is enough: a group is what its
            passages make a model say.
    """

    groups: int
    owned: int


def owned(passages: Sequence[Passage], planted: Collection[str | None], rule: str) -> Owned:
    """Count the groups of retrieved passages.

    Args:
        passages: what was retrieved.
        planted: the ids of the attacker's passages.
        rule: what one vote is.
    """
    groups = isolate(passages, by=rule)
    return Owned(len(groups), sum(any(p.id in planted for p in group.passages) for group in groups))


def displaced(clean: Sequence[Passage], attacked: Sequence[Passage], top_k: int) -> int:
    """The smallest k' such that a certificate of the clean retrieval against injection(k') covers the attacked one.

    An injection keeps the best clean passages in their order and puts k' of the attacker's anywhere among them. What
    ranks differently from that is counted as the attacker's, whoever wrote it.
    """
    kept, rest = 0, iter(attacked)
    while kept < len(clean) and any(p.id == clean[kept].id for p in rest):
        kept += 1
    added = len(attacked) - kept
    return added if kept == len(clean) or len(attacked) == top_k else top_k - kept


def retrieved(search: Search, query: str, k: int, per_source: int, rule: str) -> list[Passage]:
    """The passages of the k best votes, at most `per_source` of each."""
    quota = SourceQuota(k, per_source, max(MOST_FETCHED, 2 * k * per_source))
    found = gathered(gather(quota, lambda items: passage_keys(items, rule).places), lambda n: search(query, n))
    return list(found.items)
