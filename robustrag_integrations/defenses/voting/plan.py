"""The plan of majority voting (paper, section III-B on short answers with predefined options).

ask every group alone for an option                   `settings.isolated_prompts`
read the option of each reply                         `options.parse_option`
count; the most votes win, the first among equals     `counting.py`
"""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.defenses.agreement.tiers import proven_budgets
from robustrag_integrations.defenses.voting.counting import VoteTally, tally_votes, vote_holding, vote_radius
from robustrag_integrations.defenses.voting.options import is_unclear
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import grouping_warnings
from robustrag_integrations.plans.asking import (
    Early,
    Reading,
    ask_groups,
    calls_made,
    early_evidence,
    early_warnings,
    report,
    truncation_warnings,
    votes_counted,
)
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import reply_warnings


def voting_plan(
    query: str,
    groups: Sequence[PassageGroup],
    choices: Sequence[str],
    settings: VotingSettings,
    *,
    rules: VoteRules,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask each group alone which option it chooses; the option with most votes wins, the first among equals."""

    def radius_of(readings: Sequence[Reading[int]]) -> int:
        votes, (weights, pending) = [r.found for r in readings], votes_counted(groups, readings)
        proved = vote_radius(tally_votes(votes, len(choices), weights), votes, weights, pending)
        return min(proved, settings.quorum.radius([r.response for r in readings], [g.weight for g in groups]))

    prompts, early = settings.isolated_prompts(query, groups, choices), Early.of(rules, radius_of)
    readings = yield from ask_groups(groups, prompts, settings.quorum, lambda r: settings.vote_of(r, choices), early)
    responses, votes = [r.response for r in readings], [r.found for r in readings]
    weights, pending = votes_counted(groups, readings)
    counted = [vote for vote, weight in zip(votes, weights, strict=True) if weight]
    tally = tally_votes(votes, len(choices), [g.weight for g in groups])
    text = ABSTENTION if tally.winner is None else choices[tally.winner]
    yield Emit(text)
    return RobustAnswer(
        text=text,
        radius=max(0, radius_of(readings)),
        tier_budgets=proven_budgets(
            groups, weights, responses, settings.quorum, lambda by_tier: vote_holding(tally, counted, by_tier, pending)
        ),
        abstained=tally.winner is None,
        query=query,
        defense="voting",
        groups=tuple(_report(g, r, tally, choices) for g, r in zip(groups, readings, strict=True)),
        choice=tally.winner,
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, rules.by),
            *_tie_warnings(tally, choices),
            *_unclear_warnings(readings, choices),
            *early_warnings(readings),
            *truncation_warnings([r.truncated for r in responses]),
            *reply_warnings(responses),
        ),
        settings=settings.as_dict(),
        evidence={
            "counts": {c: tally.counts[i] for i, c in enumerate(choices)},
            **early_evidence(readings, early),
        },
        margin_unit="votes",
        model_calls=calls_made(readings),
        reasoning_chars=sum(r.reasoning_chars for r in responses),
    )


def _tie_warnings(tally: VoteTally, choices: Sequence[str]) -> tuple[str, ...]:
    """Warn if the order of the options decided."""
    if tally.winner is None or tally.counts.count(most := max(tally.counts)) == 1:
        return ()
    tied = [printable(choice, 40) for choice, votes in zip(choices, tally.counts, strict=True) if votes == most]
    return (f"a tie of {most} votes: {', '.join(map(repr, tied))}; the option that comes first in the question wins",)


def _unclear_warnings(readings: Sequence[Reading[int]], choices: Sequence[str]) -> tuple[str, ...]:
    """Warn of replies that were read and fit no option: options and model may not go together."""
    none = [r.response for r in readings if r.found is None and r.copy_of is None]
    unclear = [r.text for r in none if r.text and not (r.abstains or r.note) and is_unclear(r.text, choices)]
    if not unclear:
        return ()
    return (
        f"{len(unclear)} of {len(readings)} responses name none of the options, or several, and count for nothing; the "
        f"first: {printable(unclear[0], 60)!r}",
    )


def _report(group: PassageGroup, reading: Reading[int], tally: VoteTally, choices: Sequence[str]) -> GroupReport:
    response, vote = reading.response, reading.found
    if vote is None or tally.winner is None:
        return report(group, response, copy_of=reading.copy_of)
    if vote == tally.winner:
        return report(group, response, status="supports", choice=vote, words=(choices[vote],))
    margin = float(tally.counts[tally.winner] - tally.counts[vote])
    return report(group, response, status="differs", choice=vote, words=(choices[vote],), margin=margin)
