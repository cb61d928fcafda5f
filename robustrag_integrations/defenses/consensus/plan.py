"""The plan of consensus aggregation: one round of isolated calls.

ask every group alone, and read its whole answer      `reading.py`
count                                                 `agreement/plurality.py`
have the tied answers scored, where a model can       `Score`
show the answer, or tell who says what                `outcome.py`
with a prompt of the user's, have it worded           `answers/wording.py`
with a class of the user's, have it put into an object `replies/objects.py`
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.answers.wording import says_only
from robustrag_integrations.defenses.agreement.plurality import Scores
from robustrag_integrations.defenses.agreement.reports import dissent_warnings, variants_of
from robustrag_integrations.defenses.agreement.tiers import proven_budgets
from robustrag_integrations.defenses.consensus.outcome import Outcome
from robustrag_integrations.defenses.consensus.reading import Said
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.errors import ModelError
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import grouping_warnings
from robustrag_integrations.plans.asking import (
    Early,
    Reading,
    ask_final,
    ask_groups,
    calls_made,
    early_evidence,
    early_warnings,
    report,
    truncation_warnings,
    votes_counted,
)
from robustrag_integrations.plans.requests import Emit, Plan, Reply, Request, Score, scores_of
from robustrag_integrations.prompts import ABSTENTION, Prompt
from robustrag_integrations.replies.keys import scored_text
from robustrag_integrations.replies.objects import object_holds
from robustrag_integrations.replies.reading import reply_warnings


def consensus_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: ConsensusSettings,
    *,
    rules: VoteRules,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask every group alone; the answer is the whole answer that most of them give."""
    prompts, reader = settings.isolated_prompts(query, groups), settings.reader.for_question(query)

    def radii(readings: Sequence[Reading[Said]], outcome: Outcome, pending: int) -> tuple[int, int]:
        """Return the radius of the answer and of its letters."""
        quorum = settings.quorum.radius([r.response for r in readings], [g.weight for g in groups])
        return min(outcome.radius(pending), quorum), min(outcome.radius(pending, verbatim=True), quorum)

    def decided(readings: Sequence[Reading[Said]]) -> int:
        weights, pending = votes_counted(groups, readings)
        radius, verbatim = radii(readings, Outcome.of(readings, settings.rule, weights), pending)
        return radius if verbatim >= 0 else -1

    early = Early.of(rules, decided)
    readings = yield from ask_groups(groups, prompts, settings.quorum, reader.read, early, by_letter=True)
    responses = [reading.response for reading in readings]
    weights, pending = votes_counted(groups, readings)
    outcome = Outcome.of(readings, settings.rule, weights)
    if settings.runoff and not pending:
        outcome = outcome.scored((yield from _scores(outcome, groups, prompts, readings)))
    radius, verbatim = radii(readings, outcome, pending)
    answer = RobustAnswer(
        text=outcome.text or ABSTENTION,
        radius=max(0, radius),
        radius_verbatim=max(0, verbatim),
        tier_budgets=proven_budgets(
            groups, weights, responses, settings.quorum, lambda votes: outcome.holding(votes, votes.last, pending)
        ),
        abstained=not outcome.text,
        query=query,
        defense="consensus",
        groups=_reports(query, groups, readings, outcome),
        settings=settings.as_dict(),
        evidence={**outcome.evidence, **early_evidence(readings, early)},
        model_calls=calls_made(readings),
        reasoning_chars=sum(r.reasoning_chars for r in responses),
    )
    warnings = (
        *model_warnings,
        *grouping_warnings(groups, rules.by),
        *early_warnings(readings),
        *_warnings(outcome, answer),
        *truncation_warnings([r.truncated for r in responses]),
        *reply_warnings(responses),
    )
    answer = answer.changed(warnings=warnings)
    if answer.abstained:
        answer = _told(answer, outcome) if settings.disagreement == "tell" else answer
    elif settings.objects or outcome.count.winner is not None:
        answer = yield from _worded(answer, settings)
    yield Emit(answer.text)
    return answer


def _worded(answer: RobustAnswer, settings: ConsensusSettings) -> Generator[Request, Reply, RobustAnswer]:
    """Have the user's prompt word an agreed answer; it stays as it is where the text says anything else.

    An object that does not hold the agreed answer is an abstention: nothing else fits in its place.

    The prompt holds the question and the agreed answer, and nothing else that a passage can reach.
    """
    prompt = settings.wording_prompt(answer.query, answer.text)
    if prompt is None:
        return answer
    agreed = answer.changed(evidence={**answer.evidence, "agreed": answer.text}, model_calls=answer.model_calls + 1)
    try:
        text = (yield from ask_final(prompt, settings.reader.cut_replies, shown=False)).text or ""
    except ModelError as error:
        failed = f"failed ({printable(str(error), 200)})"
        if settings.objects:
            return agreed.withheld(f"abstained: the call that puts the agreed answer into an object {failed}")
        why = f"the answer is shown as a source writes it: the call that words it {failed}"
        return agreed.changed(warnings=(*answer.warnings, why))
    if settings.objects and not object_holds(text, answer.text, answer.query):
        return agreed.withheld(
            f"abstained: no value of the object holds the agreed answer, {printable(answer.text, 200)}; a field of "
            "type str can hold every answer"
        )
    return agreed.changed(text=text) if settings.objects or says_only(text, answer.text, answer.query) else agreed


def _scores(
    outcome: Outcome, groups: Sequence[PassageGroup], prompts: Sequence[Prompt], readings: Sequence[Reading[Said]]
) -> Generator[Request, Reply, Scores[str]]:
    """Have the answers scored that may decide a tie; nothing where no score matters, or the model gives none.

    Groups are asked whose view can count: a group has none of a pair of which it gives one answer, nor has a group with
    nothing to read.
    """
    texts = {key: text for key in outcome.count.worth_scoring() if (text := scored_text(key)) is not None}
    if len(texts) < 2:
        return {}
    places = [
        place
        for place, (group, reading) in enumerate(zip(groups, readings, strict=True))
        if not group.is_empty and reading.response.text is not None and len(texts.keys() - outcome.given(place)) > 1
    ]
    request = Score(tuple(prompts[place] for place in places), tuple(texts.values()))
    found = dict(zip(places, scores_of((yield request), request), strict=True)) if places else {}
    rows = [found.get(place) for place in range(len(prompts))]
    return {key: [None if row is None else row[at] for row in rows] for at, key in enumerate(texts)}


def _told(answer: RobustAnswer, outcome: Outcome) -> RobustAnswer:
    """Tell people who says what where there is no answer."""
    if len(outcome.count.tied) > 1:
        keys = {group.index: group.keywords for group in answer.groups}
        tied = [d for d in answer.dissent if keys[d.groups[0]][0] in outcome.count.tied]
        return answer.telling("Sources disagree", tied)
    if outcome.count.tied:
        return answer.telling("Sources disagree")
    if len(answer.dissent) == 1:
        return answer.telling("One source answers, and the model is unsure of it")
    least = outcome.count.rule.min_support
    return answer.telling(f"No {'two' if least == 2 else least} sources agree")


def _reports(
    query: str, groups: Sequence[PassageGroup], readings: Sequence[Reading[Said]], outcome: Outcome
) -> tuple[GroupReport, ...]:
    """One report per group."""
    variants = variants_of(outcome.key, [own.key for own in outcome.said if own is not None], query)
    most = outcome.count.votes.get(outcome.key, 0) if outcome.key is not None else 0
    found = []
    for group, reading in zip(groups, readings, strict=True):
        own = reading.found
        if own is None:
            found.append(report(group, reading.response, copy_of=reading.copy_of))
            continue
        if own.counts and own.key == outcome.key:
            status = "supports"
        elif own.is_sure and own.counts:
            status = "variant" if own.key in variants else "differs"
        else:
            status = "unsure"
        margin = float(most - outcome.count.votes.get(own.key, 0)) if status == "differs" and most else None
        found.append(
            report(
                group,
                reading.response,
                status=status,
                keywords=(own.key,),
                words=(outcome.text if status == "supports" and outcome.sole else own.text,),
                margin=margin,
                confidence=own.confidence,
            )
        )
    return tuple(found)


def _warnings(outcome: Outcome, answer: RobustAnswer) -> list[str]:
    count, answering = outcome.count, sum(own is not None for own in outcome.said)
    if outcome.text:
        runoff = "a tie, settled by the answer that more of the other sources find likelier"
        return [*([runoff] if count.by_runoff else []), *dissent_warnings(answer.dissent, answering)]
    if not answering:
        return []
    if len(count.tied) == 1:
        share = "half" if count.rule.one_in == 2 else "a quarter"
        return [f"no answer is given by more than {share} of the {count_of(answering, 'source')} that answer"]
    if count.tied:
        return [f"no answer: {len(count.tied)} answers have {count_of(count.votes[count.tied[0]], 'vote')} each"]
    return [
        f"no answer is given by {count_of(count.rule.min_support, 'source')} (min_support): {answering} answered"
        + (", each something else" if answering > 1 else "")
    ]
