"""What an answer made of keywords reports of its groups."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.answer import GroupReport
from robustrag_integrations.defenses.agreement.support import Support
from robustrag_integrations.passages import PassageGroup
from robustrag_integrations.plans.asking import Reading, report


def keyword_reports(
    groups: Sequence[PassageGroup],
    readings: Sequence[Reading[frozenset[str]]],
    standings: Sequence[Support | None],
) -> tuple[GroupReport, ...]:
    """One report per group: its keywords, and where it stands."""
    listed = {keywords: tuple(sorted(keywords)) for keywords in {r.found for r in readings} if keywords is not None}
    reports = []
    for group, reading, standing in zip(groups, readings, standings, strict=True):
        response, keywords = reading.response, reading.found
        if keywords is None or standing is None:
            reports.append(report(group, response, copy_of=reading.copy_of))
            continue
        reports.append(
            report(
                group,
                response,
                keywords=listed[keywords],
                status=standing.status,
                words=standing.words,
                margin=standing.margin,
            )
        )
    return tuple(reports)
