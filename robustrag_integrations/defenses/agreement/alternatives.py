"""Other answers that enough groups share, beside the one that is given: questions may have several right answers.

Nothing is proved of them: they have no radius, and every group that an attacker holds may add one or take one away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from robustrag_integrations.answer import Alternative
from robustrag_integrations.defenses.agreement.support import Support

MOST = 10
LONGEST = 300  # characters of one


def alternatives(
    in_answer: Collection[str],
    keyword_sets: Sequence[frozenset[str] | None],
    standings: Sequence[Support | None],
    replies: Sequence[str | None],
    votes: Sequence[int],
    least: int,
) -> tuple[Alternative, ...]:
    """What groups share that the answer does not say, the strongest first.

    The keyword that most of the groups say makes the first one, with these groups; the groups that are left make the
    next. A group counts for one alternative alone, so that no reply joins two of them.

    Args:
        in_answer: the answer's keywords.
        keyword_sets: per group the keywords of its response; None for one that abstained or failed.
        standings: where each group stands towards the answer.
        replies: per group the text of its response.
        votes: per group how many votes it has.
        least: how many votes an alternative needs; below, it is not listed.
    """
    left: dict[int, frozenset[str]] = {}
    for i, (said, standing) in enumerate(zip(keyword_sets, standings, strict=True)):
        if said and standing is not None and standing.status != "supports" and (rest := said - frozenset(in_answer)):
            left[i] = rest
    found: list[Alternative] = []
    while left and len(found) < MOST:
        counts: Counter[str] = Counter()
        for i, said in left.items():
            counts.update(dict.fromkeys(said, votes[i]))
        core = min(counts, key=lambda w: (-counts[w], -len(w.split()), -len(w), w))
        if counts[core] < max(least, 1):
            break
        members = tuple(i for i, said in left.items() if core in said)
        text = min(((replies[i] or core).strip() for i in members), key=len)
        found.append(Alternative(text[:LONGEST], counts[core], members))
        left = {i: said for i, said in left.items() if i not in members}
    return tuple(found)
