"""The plan of majority voting (paper, section III-B on short answers with predefined options).

ask every group alone for an option                   `settings.isolated_prompts`
read the option of each reply                         `options.parse_option`
count; most votes win, and a tie is told              `agreement/plurality.py`
"""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.defenses.agreement.plurality import Count
from robustrag_integrations.defenses.agreement.tiers import proven_budgets
from robustrag_integrations.defenses.voting.options import is_unclear
from robustrag_integrations.defenses.voting.settings import RULE, VotingSettings
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
    """Ask each group alone which option it chooses; the option with most votes wins."""

    def count_of_votes(readings: Sequence[Reading[int]]) -> tuple[Count[int], int]:
        """Return the count of the groups whose vote is known, and the number of the other votes."""
        weights, pending = votes_counted(groups, readings)
        known = [(reading.found, weight) for reading, weight in zip(readings, weights, strict=True) if weight]
        return Count(tuple(vote for vote, _ in known), tuple(weight for _, weight in known), RULE), pending

    def radius_of(readings: Sequence[Reading[int]]) -> int:
        count, pending = count_of_votes(readings)
        if count.winner is None:
            return -1 if pending else 0
        quorum = settings.quorum.radius([r.response for r in readings], [g.weight for g in groups])
        return min(count.radius(pending), quorum)

    prompts, early = settings.isolated_prompts(query, groups, choices), Early.of(rules, radius_of)
    readings = yield from ask_groups(groups, prompts, settings.quorum, lambda r: settings.vote_of(r, choices), early)
    responses = [r.response for r in readings]
    weights, _ = votes_counted(groups, readings)
    count, pending = count_of_votes(readings)
    answer = RobustAnswer(
        text=ABSTENTION if count.winner is None else choices[count.winner],
        radius=max(0, radius_of(readings)),
        tier_budgets=proven_budgets(
            groups, weights, responses, settings.quorum, lambda votes: count.holding(votes, votes.last, pending)
        ),
        abstained=count.winner is None,
        query=query,
        defense="voting",
        groups=tuple(_report(g, r, count, choices) for g, r in zip(groups, readings, strict=True)),
        choice=count.winner,
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, rules.by),
            *_tie_warnings(count),
            *_unclear_warnings(readings, choices),
            *early_warnings(readings),
            *truncation_warnings([r.truncated for r in responses]),
            *reply_warnings(responses),
        ),
        settings=settings.as_dict(),
        evidence={
            "counts": {c: count.votes.get(i, 0) for i, c in enumerate(choices)},
            **early_evidence(readings, early),
        },
        margin_unit="votes",
        model_calls=calls_made(readings),
        reasoning_chars=sum(r.reasoning_chars for r in responses),
    )
    if settings.disagreement == "tell":
        chosen = {group.index: group.choice for group in answer.groups}
        tied = [d for d in answer.dissent if chosen[d.groups[0]] in count.tied]
        answer = answer.telling("Sources disagree", tied)
    yield Emit(answer.text)
    return answer


def _tie_warnings(count: Count[int]) -> tuple[str, ...]:
    """Say that options tie: none of them is the answer."""
    if not count.tied:
        return ()
    return (f"no answer: {len(count.tied)} options have {count_of(count.votes[count.tied[0]], 'vote')} each",)


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


def _report(group: PassageGroup, reading: Reading[int], count: Count[int], choices: Sequence[str]) -> GroupReport:
    response, vote = reading.response, reading.found
    if vote is None:
        return report(group, response, copy_of=reading.copy_of)
    if vote == count.winner:
        return report(group, response, status="supports", choice=vote, words=(choices[vote],))
    margin = None if count.winner is None else float(count.votes[count.winner] - count.votes[vote])
    return report(group, response, status="differs", choice=vote, words=(choices[vote],), margin=margin)
