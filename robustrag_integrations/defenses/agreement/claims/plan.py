"""The plan of long answers and lists: one round of isolated calls, and the claims that enough groups make.

ask every group alone for its claims                  `settings.py`, the prompt `claims`
read each reply as claims                             `reader.py`
count, and keep what at least s groups claim          `rule.py`, with the theorem about the radius
show the kept claims in the groups' own words         `answer.py`

No final call rewords them: that would tear a rule from its exception, and nobody could tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from robustrag_integrations._util.json_values import plain
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.defenses.agreement.asking import ask_for_keys
from robustrag_integrations.defenses.agreement.claims.answer import ClaimAnswer
from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings
from robustrag_integrations.defenses.agreement.tiers import proven_budgets
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import grouping_warnings
from robustrag_integrations.keywords.runs import ReplyKeys
from robustrag_integrations.plans.asking import (
    Early,
    Reading,
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

_MOST_WORDS = 50  # claims of one group in a report


def claims_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: ClaimSettings,
    *,
    defense: str,
    rules: VoteRules,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask every group alone; the answer is the claims that enough of them make.

    Args:
        defense: the method that is asked for them.
    """
    reader = settings.reader.for_question(query)

    def counted(readings: Sequence[Reading[ReplyKeys]]) -> tuple[ClaimAnswer, int, int, int]:
        """Return the answer and three radii: of the set of claims, of the text's letters, and of having an answer."""
        weights, pending = votes_counted(groups, readings)
        texts = [reading.response.text for reading in readings]
        made = ClaimAnswer.of(
            [r.found for r in readings], texts, weights, settings.rule, settings.task, all_heard=not pending
        )
        quorum = settings.quorum.radius([r.response for r in readings], [g.weight for g in groups])
        radius, verbatim = (made.radius(pending, verbatim=letters) for letters in (False, True))
        return made, min(radius, quorum), min(verbatim, quorum), quorum

    def decided(readings: Sequence[Reading[ReplyKeys]]) -> int:
        _, radius, verbatim, _ = counted(readings)
        return radius if verbatim >= 0 else -1

    early = Early.of(rules, decided)
    readings = yield from ask_for_keys(groups, settings, reader, query, early)
    responses = [reading.response for reading in readings]
    made, radius, verbatim, quorum = counted(readings)
    weights, pending = votes_counted(groups, readings)
    text = made.text or ABSTENTION
    yield Emit(text)
    names = partial(_names, groups)
    claims = made.claims(names, quorum)
    answer = RobustAnswer(
        text=text,
        radius=max(0, radius),
        radius_verbatim=max(0, verbatim),
        tier_budgets=proven_budgets(
            groups, weights, responses, settings.quorum, lambda votes: made.holding_by_tier(votes, pending)
        ),
        abstained=not made.kept,
        query=query,
        defense=defense,
        groups=tuple(_report(g, r, made) for g, r in zip(groups, readings, strict=True)),
        claims=claims,
        settings=settings.as_dict(),
        evidence={
            **made.evidence,
            **({"support": min(len(claim.groups) for claim in claims)} if claims else {}),
            "left_out": plain(made.left_out(names)),
            **early_evidence(readings, early),
        },
        model_calls=calls_made(readings),
        reasoning_chars=sum(r.reasoning_chars for r in responses),
    )
    warnings = (
        *model_warnings,
        *grouping_warnings(groups, rules.by),
        *early_warnings(readings),
        *_warnings(made),
        *truncation_warnings([r.truncated for r in responses]),
        *reply_warnings(responses),
    )
    return answer.changed(warnings=warnings)


def _names(groups: Sequence[PassageGroup], place: int) -> Sequence[str]:
    group = groups[place]
    return group.origins or tuple(passage.id or f"group {group.index + 1}" for passage in group.passages)


def _report(group: PassageGroup, reading: Reading[ReplyKeys], made: ClaimAnswer) -> GroupReport:
    """One group's report: it supports the claims of the answer that it makes, whatever others it makes."""
    said = reading.found
    if said is None:
        return report(group, reading.response, copy_of=reading.copy_of)
    words = tuple(said.forms[worded.key] for worded in made.kept if worded.key in said.keys)
    return report(
        group,
        reading.response,
        status="supports" if words else "differs",
        keywords=tuple(said.forms)[:_MOST_WORDS],
        words=words[:_MOST_WORDS],
    )


def _warnings(made: ClaimAnswer) -> list[str]:
    """Say why there is no answer, or that one source alone can add to it."""
    answering, needed = sum(reply is not None for reply in made.replies), made.rule.min_support
    if answering and not made.kept:
        each = ", with other claims each" if answering > 1 else ""
        return [
            f"no claim is made by {count_of(needed, 'group')} (min_support): {count_of(answering, 'group')} "
            f"answered{each}; min_support=1 shows all claims with their sources"
        ]
    if made.kept and needed == 1:
        return ["min_support=1: any source alone can add a claim; see where each is from"]
    return []
