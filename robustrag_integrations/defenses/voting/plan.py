"""The plan of majority voting (paper, section III-B on short answers with predefined options)."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.answer import GroupReport, RobustAnswer
from robustrag_integrations.defenses.voting.counting import VoteTally, tally_votes, vote_radius
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.group_warnings import grouping_warnings
from robustrag_integrations.passages import GroupBy, PassageGroup
from robustrag_integrations.plans.asking import Reading, ask_groups, report, truncation_warnings
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import reply_warnings


def voting_plan(
    query: str,
    groups: Sequence[PassageGroup],
    choices: Sequence[str],
    settings: VotingSettings,
    *,
    group_by: GroupBy | None = None,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask every group alone which option it chooses; the option with most votes wins, the first among equals."""
    prompts = settings.isolated_prompts(query, groups, choices)
    readings = yield from ask_groups(groups, prompts, settings.quorum, lambda r: settings.vote_of(r, choices))
    responses, votes = [r.response for r in readings], [r.found for r in readings]
    weights = [g.weight for g in groups]
    tally = tally_votes(votes, len(choices), weights)
    text = ABSTENTION if tally.winner is None else choices[tally.winner]
    yield Emit(text)
    return RobustAnswer(
        text=text,
        radius=max(0, min(vote_radius(tally, votes, weights), settings.quorum.radius(responses, weights))),
        abstained=tally.winner is None,
        query=query,
        defense="voting",
        groups=tuple(_report(g, r, tally, text) for g, r in zip(groups, readings, strict=True)),
        choice=tally.winner,
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, group_by),
            *truncation_warnings([r.truncated for r in responses]),
            *reply_warnings(responses),
        ),
        settings=settings.as_dict(),
        evidence={"counts": {c: tally.counts[i] for i, c in enumerate(choices)}},
        margin_unit="votes",
        model_calls=len(groups),
        reasoning_chars=sum(r.reasoning_chars for r in responses),
    )


def _report(group: PassageGroup, reading: Reading[int], tally: VoteTally, text: str) -> GroupReport:
    response, vote = reading.response, reading.found
    if vote is None or tally.winner is None:
        return report(group, response, copy_of=reading.copy_of)
    if vote == tally.winner:
        return report(group, response, status="supports", choice=vote, words=(text,))
    margin = float(tally.counts[tally.winner] - tally.counts[vote])
    return report(group, response, status="outvoted", choice=vote, margin=margin)
