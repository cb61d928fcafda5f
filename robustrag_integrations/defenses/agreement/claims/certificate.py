"""Certificate of long answers and lists: every *set* of claims possible next to m' corrupted groups.

Next to the untouched groups, in which claim w has c(w) votes, a claim is kept in any case if c(w) >= s, and if the
attacker likes if c(w) + m' >= s. These are independent, since a corrupted group may make any claims: R is the sets that
hold all of the first and any of the second. From m' = s on the attacker alone can have any claim kept, and tau is 0.
Where no claim is kept in any case, one group may be alone in answering (`agreement/sole.py`): an untouched one, whose
claims are another set, or a corrupted one, which can have anything shown.

Each set is scored once, as the text that the untouched groups' order and wording give it. Like the radius, tau is about
sets of claims: a metric that depends on their order, or on which of two wordings of one claim is shown, measures more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from random import Random

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.certification.result import Estimate
from robustrag_integrations.defenses.agreement.claims.answer import ClaimAnswer
from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings
from robustrag_integrations.defenses.agreement.sole import ANY_REPLY
from robustrag_integrations.defenses.agreement.tally import votes_for
from robustrag_integrations.keywords.runs import ReplyKeys
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.prompts import ABSTENTION

_MOST_CONTESTED = 12  # claims that may or may not be kept: 2^12 sets


def claims_certification_plan(
    question: Question, settings: ClaimSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""
    reader = settings.reader.for_question(question.query)
    prompts_of = partial(settings.isolated_prompts, question.query)
    certify_case = partial(_certify_case, settings, question)
    return (
        yield from certify_sizes(
            question,
            settings.quorum,
            prompts_of,
            reader.read,
            certify_case,
            placed=reader.with_grounds,
            same_batches=same_batches,
        )
    )


def _certify_case(
    settings: ClaimSettings,
    question: Question,
    found: Findings,
    number: int,
    case: BenignCase,
    readings: Sequence[Reading[ReplyKeys]],
    ledger: Ledger,
) -> Asking[None]:
    rule, replies = settings.rule, [reading.found for reading in readings]
    counts = votes_for([None if reply is None else reply.keys for reply in replies])
    always = sorted(w for w, count in counts.items() if count >= rule.min_support)
    contested = sorted(
        (w for w, count in counts.items() if rule.min_support > count >= rule.min_support - case.corrupted),
        key=lambda w: (-counts[w], w),
    )
    texts = [reading.response.text for reading in readings]
    whole = ClaimAnswer.of(replies, texts, [1] * len(replies), replace(rule, min_support=1), settings.task)
    forms = {worded.key: worded.form for worded in whole.kept}
    if not found.evidence:
        found.evidence = {
            "threshold": rule.min_support,
            "corrupted_groups": case.corrupted,
            "untouched_groups": len(case.groups),
            "always_kept": [forms[w] for w in always],
            "contested": [forms[w] for w in contested[:200]],
        }
    if case.corrupted >= rule.min_support:
        found.open_ended(
            f"{count_of(case.corrupted, 'corrupted group')} alone can have any claim kept: min_support is "
            f"{rule.min_support}"
        )
        return
    answering = [reply for reply in replies if reply is not None]
    if not answering and case.corrupted:
        found.open_ended(f"{count_of(case.corrupted, 'corrupted group')} alone {ANY_REPLY}")
        return
    if len(answering) == 1 and not always:
        text = ClaimAnswer.of(replies, texts, [1] * len(replies), rule, settings.task).text
        scores = yield from ledger.scored([text])
        found.add(text, scores[0], "one untouched group alone answers", number)
    if len(contested) <= _MOST_CONTESTED:
        yield from _score(found, number, ledger, whole, always, list(_subsets(contested)))
        return
    found.give_up(
        f"the attacker decides on {count_of(len(contested), 'claim')}, 2^{len(contested)} sets; raise min_support, or "
        "ask a narrower question"
    )
    if question.sample:
        random = Random(f"{question.seed}/{found.size}/{number}")
        drawn = [tuple(w for w in contested if random.random() < 0.5) for _ in range(question.sample)]
        sample = Findings(found.size, found.cases)
        yield from _score(sample, number, ledger, whole, always, [(), tuple(contested), *drawn])
        found.responses.update(sample.responses)
        value = min(r.score for r in found.responses.values())
        found.estimate = Estimate(value, len(drawn) + 2, question.seed)


def _subsets(contested: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all subsets, those likeliest to fail first: none, all, ..."""
    sizes = sorted(range(len(contested) + 1), key=lambda size: (min(size, len(contested) - size), size))
    for size in sizes:
        yield from combinations(contested, size)


def _score(
    found: Findings,
    number: int,
    ledger: Ledger,
    whole: ClaimAnswer,
    always: Sequence[str],
    chosen: Sequence[tuple[str, ...]],
) -> Asking[None]:
    """Add the answers of all untouched claims that are left when these contested ones are kept."""
    texts = [_text(whole, {*always, *added}) for added in chosen]
    scores = yield from ledger.scored(texts)
    for text, score, added in zip(texts, scores, chosen, strict=True):
        found.add(text, score, f"{count_of(len(always), 'claim')} kept in any case, {len(added)} more", number)


def _text(whole: ClaimAnswer, kept: set[str]) -> str:
    """The answer of these claims, in the order and words of all untouched groups."""
    return replace(whole, kept=tuple(worded for worded in whole.kept if worded.key in kept)).text or ABSTENTION
