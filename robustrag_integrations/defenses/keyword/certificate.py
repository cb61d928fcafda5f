"""Certificate of keyword aggregation (paper, section IV-B, Algorithm 3).

Two things are done differently from a literal reading. The attacker's effective count is not enumerated: since
alpha <= 1, what is possible with fewer effective groups is possible with more, so that one power set covers all. And
before keywords are looked at, it is checked whether the attacker alone reaches the threshold: any word can then be
retained, and the responses have no end. Under a relative threshold there is a power set for each count that the
strongest keyword can be brought to. The reply of the only group that answers (`agreement/sole.py`) is a response, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.certification.result import Estimate
from robustrag_integrations.defenses.agreement.agreed import Unbounded, are_invented
from robustrag_integrations.defenses.agreement.asking import settled
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.agreement.sole import ANY_REPLY, sole_reply
from robustrag_integrations.defenses.keyword.counting import KeywordRule, tally_keywords
from robustrag_integrations.defenses.keyword.kept import Kept
from robustrag_integrations.defenses.keyword.lists import ListSpan, PossibleList
from robustrag_integrations.defenses.keyword.plan import final_text
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.spans import KeywordSpan
from robustrag_integrations.keywords.runs import ReplyKeys
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.prompts import ABSTENTION

_WAVE = 32  # final prompts asked at once, after the first and likeliest


def keyword_span(keyword_sets: Sequence[Collection[str] | None], corrupted: int, rule: KeywordRule) -> KeywordSpan:
    """Return the keywords that can be retained next to m' corrupted groups, from those of the untouched groups."""
    tally = tally_keywords(keyword_sets, rule)
    return rule.span(tally.counts, tally.answering, corrupted)


def keyword_certification_plan(
    question: Question, settings: KeywordSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first; final calls are shared between them."""
    settings = yield from settled(settings)
    prompts_of = partial(settings.isolated_prompts, question.query)
    reader = settings.reader.for_question(question.query)
    trial = _Trial(question, settings, reader)
    return (
        yield from certify_sizes(
            question,
            settings.quorum,
            prompts_of,
            reader.read,
            trial.certify_case,
            placed=reader.with_grounds,
            same_batches=same_batches,
        )
    )


@dataclass
class _Trial:
    """One question's final calls, shared by all corruption sizes."""

    question: Question
    settings: KeywordSettings
    reader: ReplyReader
    finals: dict[tuple[str, ...], Response] = field(default_factory=dict)

    def certify_case(
        self, found: Findings, number: int, case: BenignCase, readings: Sequence[Reading[ReplyKeys]], ledger: Ledger
    ) -> Asking[None]:
        """Add the answers that are possible next to one case's untouched groups."""
        settings, rule = self.settings, self.settings.rule
        replies = [reading.found for reading in readings]
        span = keyword_span([None if r is None else r.keys for r in replies], case.corrupted, rule)
        if not found.evidence or span.unbounded:
            found.evidence = _evidence(span, case, rule)
        if span.unbounded:
            found.open_ended(
                f"{count_of(case.corrupted, 'corrupted group')} alone can reach the threshold of {float(span.mu):g}: "
                "any word can be retained"
            )
            return
        answering = sum(reply is not None for reply in replies)
        if settings.shows_sole and not answering and case.corrupted:
            found.open_ended(f"{count_of(case.corrupted, 'corrupted group')} alone {ANY_REPLY}")
            return
        sole = sole_reply(readings, [1] * len(readings), ()) if settings.shows_sole else None
        if sole:
            text = sole.text or ABSTENTION
            [score] = yield from ledger.scored([text])
            found.add(text, score, "one untouched group alone answers", number)
            if found.done or not case.corrupted:
                return
        possible = ListSpan(span, replies, case.corrupted, settings.as_counted)
        try:
            if self._fits(possible, ledger.left):
                lists = filter(None, possible.lists(ledger.left))
                yield from self._try_all(found, number, lists, ledger, span)
                return
            draws = possible.sampled(self.question.sample, Random(f"{self.question.seed}/{found.size}/{number}"))
            drawn = list(draws)
        except Unbounded as why:
            found.open_ended(f"{count_of(case.corrupted, 'corrupted group')} alone {why}")
            return
        found.give_up(
            f"the attacker decides on {count_of(len(span.contested), 'keyword')}, 2^{len(span.contested)} sets, with "
            f"{count_of(ledger.left, 'model call')} left; raise max_model_calls=, or {rule.to_keep_less}"
        )
        if drawn:
            sample = Findings(found.size, found.cases)
            ledger.limit += len(drawn)
            yield from self._try_all(sample, number, iter(drawn), ledger, span)
            found.responses.update(sample.responses)
            value = min(r.score for r in found.responses.values())
            found.estimate = Estimate(value, len(drawn), self.question.seed)

    def _asks(self, possible: PossibleList) -> bool:
        return self.settings.asks_for(len(possible.words)) and possible.shown not in self.finals

    def _fits(self, possible: ListSpan, left: int) -> bool:
        """True if so many calls are enough for all lists that the model has to be asked about."""
        unknown = (found for found in possible.lists(left) if found is None or self._asks(found))
        counted = list(islice(unknown, left + 1))
        return len(counted) <= left and None not in counted

    def _try_all(
        self, found: Findings, number: int, lists: Iterator[PossibleList], ledger: Ledger, span: KeywordSpan
    ) -> Asking[None]:
        """Ask for each list's answer, in waves, until one scores 0 (Algorithm 3, lines 15-19)."""
        wave = 2
        while not found.done and (possible := list(islice(lists, wave))):
            new = list(dict.fromkeys(each.shown for each in possible if self._asks(each)))
            if new:
                prompts = tuple(self.settings.final_prompt(self.question.query, shown) for shown in new)
                replies = yield Ask(prompts, "final")
                ledger.spent += len(new)
                self.finals.update(zip(new, replies, strict=True))
            texts = [self._text(each) for each in possible]
            scores = iter((yield from ledger.scored(t for t in texts if t is not None)))
            for each, text in zip(possible, texts, strict=True):
                found.add(text, next(scores) if text is not None else 0.0, _cause(each, span), number)
            for each in possible:
                if are_invented(each.words):  # unless a corrupted group has it from its passages
                    [score] = yield from ledger.scored([ABSTENTION])
                    found.add(ABSTENTION, score, _cause(each, span), number)
            wave = _WAVE

    def _text(self, possible: PossibleList) -> str | None:
        """Return the text that inference shows for these words; None where it raises."""
        kept = Kept(possible.words, (), ())
        if not self.settings.asks_for(len(kept.words)):
            return kept.text or ABSTENTION
        return final_text(self.finals[possible.shown], kept, self.settings, self.reader)


def _cause(possible: PossibleList, span: KeywordSpan) -> str:
    retained = possible.retained
    kept = ", ".join(retained) if retained else "nothing"
    missing = [w for w in span.contested if w not in retained]
    shown = f"; shown as: {', '.join(possible.shown)}" if possible.shown != retained else ""
    return f"retained: {kept}" + shown + (f"; suppressed: {', '.join(missing)}" if missing else "")


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
