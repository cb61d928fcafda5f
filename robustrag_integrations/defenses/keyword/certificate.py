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
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.spans import KeywordSpan, retained_sets
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
    unknown = _count_unknown(span, finals, ledger.left)
    if unknown <= ledger.left:
        yield from _try_all(question, settings, found, number, retained_sets(span), finals, ledger, span)
        return
    drawn = list(_sampled(span, question.sample, Random(f"{question.seed}/{found.size}/{number}")))
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
    sets: Iterator[tuple[str, ...]],
    finals: dict[tuple[str, ...], str | None],
    ledger: Ledger,
    span: KeywordSpan,
) -> Asking[None]:
    """Ask for each keyword set's answer, in waves, until one scores 0 (Algorithm 3, lines 15-19)."""
    wave = 2
    while not found.done and (retained := list(islice(sets, wave))):
        new = [r for r in dict.fromkeys(retained) if r not in finals]
        if new:
            prompts = tuple(settings.final_prompt(question.query, r) for r in new)
            replies = yield Ask(prompts, "final")
            ledger.spent += len(new)
            finals.update((r, _text_of(s, settings)) for r, s in zip(new, replies, strict=True))
        texts = [finals[r] for r in retained]
        scores = yield from ledger.scored(t for t in texts if t is not None)
        known = iter(scores)
        for keywords, text in zip(retained, texts, strict=True):
            cause = _cause(keywords, span)
            found.add(text, next(known) if text is not None else 0.0, cause, number)
        wave = _WAVE


def _text_of(response: Response, settings: KeywordSettings) -> str | None:
    """What inference makes of a final response; None where it raises."""
    try:
        return final_answer(response, settings.reader.cut_replies).text
    except ModelError:
        return None


def _cause(retained: Sequence[str], span: KeywordSpan) -> str:
    kept = ", ".join(retained) if retained else "nothing"
    missing = [w for w in span.contested if w not in retained]
    return f"retained: {kept}" + (f"; suppressed: {', '.join(missing)}" if missing else "")


def _count_unknown(span: KeywordSpan, finals: dict[tuple[str, ...], str | None], left: int) -> int:
    """How many keyword sets have no answer yet, counted up to one more than `left`."""
    unknown = (retained for retained in retained_sets(span) if retained not in finals)
    return sum(1 for _ in islice(unknown, left + 1))


def _sampled(span: KeywordSpan, size: int, random: Random) -> Iterator[tuple[str, ...]]:
    """Keyword sets drawn at random: a threshold, and each keyword that is contested at it in or out."""
    for _ in range(size):
        reach = random.choice(span.reaches)
        chosen = tuple(w for w in reach.contested if random.random() < 0.5)
        if not reach.allows(chosen):
            chosen = reach.contested
        yield tuple(sorted((*reach.always, *chosen)))


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
