"""Certifying keyword aggregation (paper, section IV-B, Algorithm 3).

Two things are done differently from a literal reading. The attacker's effective count is not enumerated: since
alpha <= 1, what is possible with fewer effective groups is possible with more, so that one power set covers all. And
before keywords are looked at, it is checked whether the attacker alone reaches the threshold: any word can then be
retained, and the responses have no end. Under a relative threshold there is a power set for each count that the
strongest keyword can be brought to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import NO_QUORUM, NOTHING_BENIGN, Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.certification.result import Estimate
from robustrag_integrations.defenses.keyword.counting import KeywordRule, tally_keywords
from robustrag_integrations.defenses.keyword.lists import ListSpan, PossibleList
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.shown import shadowed, with_marks
from robustrag_integrations.defenses.keyword.spans import KeywordSpan
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import final_answer

_WAVE = 32  # final prompts asked at once, after the first and likeliest


def keyword_span(keyword_sets: Sequence[Collection[str] | None], corrupted: int, rule: KeywordRule) -> KeywordSpan:
    """What can be retained next to m' corrupted groups, from the untouched groups' keywords."""
    tally = tally_keywords(keyword_sets, rule)
    return rule.span(tally.counts, tally.answering, corrupted)


def keyword_certification_plan(
    question: Question, settings: KeywordSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first; final calls are shared between them."""

    def prompts_of(groups: Sequence[Any]) -> Any:
        return settings.isolated_prompts(question.query, groups)

    finals: dict[tuple[str, ...], str | None] = {(): ABSTENTION}

    def certify_case(
        found: Findings, number: int, case: BenignCase, readings: Sequence[Reading[frozenset[str]]], ledger: Ledger
    ) -> Asking[None]:
        return _certify_case(question, settings, found, number, case, readings, finals, ledger)

    read = settings.reader.for_question(question.query).keywords_of
    return certify_sizes(question, prompts_of, read, certify_case, same_batches=same_batches)


def _certify_case(
    question: Question,
    settings: KeywordSettings,
    found: Findings,
    number: int,
    case: BenignCase,
    readings: Sequence[Reading[frozenset[str]]],
    finals: dict[tuple[str, ...], str | None],
    ledger: Ledger,
) -> Asking[None]:
    if not case.groups:
        found.open_ended(NOTHING_BENIGN)
        return
    if settings.quorum.can_be_missed([reading.response for reading in readings], case.corrupted):
        found.add(None, 0.0, NO_QUORUM, number)
        return
    span = keyword_span([reading.found for reading in readings], case.corrupted, settings.rule)
    if not found.evidence:
        found.evidence = _evidence(span, case, settings.rule)
    if span.unbounded:
        found.evidence = _evidence(span, case, settings.rule)
        found.open_ended(
            f"{case.corrupted} corrupted groups reach the threshold of {float(span.mu):g} alone: "
            "any word can be retained"
        )
        return
    possible = _list_span(readings, span, case.corrupted, settings.rule)
    if _fit(possible, finals, ledger.left):
        lists = filter(None, possible.lists(ledger.left))
        yield from _try_all(question, settings, found, number, lists, finals, ledger, span)
        return
    drawn = list(possible.sampled(question.sample, Random(f"{question.seed}/{found.size}/{number}")))
    found.give_up(
        f"the attacker decides on {len(span.contested)} keywords, 2^{len(span.contested)} sets, and {ledger.left} "
        f"model calls are left; raise max_model_calls=, or {settings.rule.to_keep_less}"
    )
    if drawn:
        trial = Findings(found.size, found.cases)
        ledger.limit += len(drawn)
        yield from _try_all(question, settings, trial, number, iter(drawn), finals, ledger, span)
        found.responses.update(trial.responses)
        value = min(r.score for r in found.responses.values())
        found.estimate = Estimate(value, len(drawn), question.seed)


def _try_all(
    question: Question,
    settings: KeywordSettings,
    found: Findings,
    number: int,
    lists: Iterator[PossibleList],
    finals: dict[tuple[str, ...], str | None],
    ledger: Ledger,
    span: KeywordSpan,
) -> Asking[None]:
    """Ask for each list's answer, in waves, until one scores 0 (Algorithm 3, lines 15-19)."""
    wave = 2
    while not found.done and (possible := list(islice(lists, wave))):
        new = [shown for shown in dict.fromkeys(p.shown for p in possible) if shown not in finals]
        if new:
            prompts = tuple(settings.final_prompt(question.query, r) for r in new)
            replies = yield Ask(prompts, "final")
            ledger.spent += len(new)
            finals.update((r, _text_of(s, settings)) for r, s in zip(new, replies, strict=True))
        texts = [finals[p.shown] for p in possible]
        scores = yield from ledger.scored(t for t in texts if t is not None)
        known = iter(scores)
        for each, text in zip(possible, texts, strict=True):
            cause = _cause(each, span)
            found.add(text, next(known) if text is not None else 0.0, cause, number)
        wave = _WAVE


def _text_of(response: Response, settings: KeywordSettings) -> str | None:
    """What inference makes of a final response; None where it raises."""
    try:
        return final_answer(response, settings.reader.cut_replies).text
    except ModelError:
        return None


def _cause(possible: PossibleList, span: KeywordSpan) -> str:
    retained = possible.retained
    kept = ", ".join(retained) if retained else "nothing"
    missing = [w for w in span.contested if w not in retained]
    shown = f"; shown as: {', '.join(possible.shown)}" if possible.shown != retained else ""
    return f"retained: {kept}" + shown + (f"; suppressed: {', '.join(missing)}" if missing else "")


def _list_span(
    readings: Sequence[Reading[frozenset[str]]], span: KeywordSpan, corrupted: int, rule: KeywordRule
) -> ListSpan:
    """What can be shown next to corrupted groups: the span over keywords and the marks of those that can be kept."""
    counted = (*span.always, *span.contested)
    marks = with_marks(readings, counted, shadowed(counted))
    marked = [None if r.found is None else r.found | (m or frozenset()) for r, m in zip(readings, marks, strict=True)]
    return ListSpan(keyword_span(marked, corrupted, rule))


def _fit(possible: ListSpan, finals: dict[tuple[str, ...], str | None], left: int) -> bool:
    """Whether all lists that have no answer yet can be asked about in so many calls."""
    unknown = (found for found in possible.lists(left) if found is None or found.shown not in finals)
    counted = list(islice(unknown, left + 1))
    return len(counted) <= left and None not in counted


def _evidence(span: KeywordSpan, case: BenignCase, rule: KeywordRule) -> dict[str, Any]:
    ranked = sorted(span.counts.items(), key=lambda item: (-item[1], item[0]))
    return {
        "counts": dict(ranked[:200]),
        "threshold": float(span.mu),
        "rule": rule.in_words,
        "corrupted_groups": case.corrupted,
        "untouched_groups": len(case.groups),
        "always_retained": list(span.always),
        "contested": list(span.contested[:200]),
        "keyword_sets": sum(2 ** min(len(reach.contested), 60) for reach in span.reaches),
    }
