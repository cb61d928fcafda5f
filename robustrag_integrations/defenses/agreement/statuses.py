"""The status of each group towards the answer, read off its own reply and the deciding keys alone.

    supports   its whole answer is the answer, or one of the answers that are listed
    mentions   all agreed words stand in something longer, or it says a part of one and nothing else
    differs    it answers something else

Nothing has to understand a denial: "not Tarsk" and "Brezar, formerly known as Tarsk" hold a word beyond "Tarsk", and
mention it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from robustrag_integrations.answers.answer import GroupReport
from robustrag_integrations.defenses.agreement.agreed import Worded
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.keywords.runs import ReplyKeys, is_part
from robustrag_integrations.plans.asking import Reading, report

_MOST_KEYWORDS = 50  # in a report; a hostile reply may hold tens of thousands


def group_reports(
    groups: Sequence[PassageGroup],
    readings: Sequence[Reading[ReplyKeys]],
    answer: Sequence[Worded],
    counts: Mapping[str, int],
) -> tuple[GroupReport, ...]:
    """One report per group.

    Args:
        groups: the groups.
        readings: the reply of each.
        answer: the deciding keys; none for an abstention, towards which no group stands in any way.
        counts: the votes of each key.
    """
    most = max((counts.get(worded.key, 0) for worded in answer), default=0)
    return tuple(_report(group, reading, answer, most, counts) for group, reading in zip(groups, readings, strict=True))


def _report(
    group: PassageGroup,
    reading: Reading[ReplyKeys],
    answer: Sequence[Worded],
    most: int,
    counts: Mapping[str, int],
) -> GroupReport:
    said = reading.found
    if said is None:
        return report(group, reading.response, copy_of=reading.copy_of)
    own = (said.whole,) if said.whole is not None else tuple(sorted(said.keys)[:_MOST_KEYWORDS])
    status, words = standing(said, [worded.key for worded in answer])
    margin = float(most - max((counts.get(key, 0) for key in own), default=0)) if status == "differs" else None
    return report(group, reading.response, status=status, keywords=own, words=words, margin=margin)


def standing(said: ReplyKeys, answer: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return a reply's status, and the words of the answer that it says, as it writes them."""
    agreed = [key for key in answer if key in said.keys]
    more = said.rest.difference(*(key.split(" ") for key in answer))
    more |= frozenset() if said.whole is not None else said.keys.difference(answer)
    if agreed and (not more or len(agreed) == len(answer)):
        return ("mentions" if more else "supports"), tuple(said.forms[key] for key in agreed)
    if said.whole is not None and any(is_part(said.whole, key) for key in answer):
        return "mentions", (said.forms.get(said.whole, said.whole),)
    return "differs", ()
