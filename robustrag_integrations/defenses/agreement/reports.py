"""What an answer made of keywords reports of its groups."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.answer import GroupReport
from robustrag_integrations.defenses.agreement.support import Support
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.plans.asking import Reading, report, report_alike


def keyword_reports(
    groups: Sequence[PassageGroup],
    readings: Sequence[Reading[frozenset[str]]],
    standings: Sequence[Support | None],
) -> tuple[GroupReport, ...]:
    """One report per group: its keywords, and where it stands. What several groups share is written out once."""
    made: dict[tuple[int, int], GroupReport] = {}
    reports = []
    for group, reading, standing in zip(groups, readings, standings, strict=True):
        found = made.get((id(reading), id(standing)))
        if found is None:
            found = made[id(reading), id(standing)] = _report(group, reading, standing)
            reports.append(found)
        else:
            reports.append(report_alike(found, group))
    return tuple(reports)


def _report(group: PassageGroup, reading: Reading[frozenset[str]], standing: Support | None) -> GroupReport:
    if reading.found is None or standing is None:
        return report(group, reading.response, copy_of=reading.copy_of)
    return report(
        group,
        reading.response,
        keywords=tuple(sorted(reading.found)),
        status=standing.status,
        words=standing.words,
        margin=standing.margin,
    )
