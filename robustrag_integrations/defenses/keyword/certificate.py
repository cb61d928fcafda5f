"""Certificate of keyword aggregation (paper, section IV-B, Algorithm 3).

Two things are done differently from a literal reading. The attacker's effective count is not enumerated: since
alpha <= 1, what is possible with fewer effective groups is possible with more, so that one power set covers all. And
before keywords are looked at, it is checked whether the attacker alone reaches the threshold: any word can then be
retained, and the responses have no end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, islice
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.threshold import Said, Tally, Threshold
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import final_answer

_WAVE = 32  # final prompts asked at once, after the first and likeliest
_MOST_TEXTS = 50_000  # of keyword sets that are shown as they are, without a call


@dataclass(frozen=True)
class KeywordSpan:
    """The keywords that can be retained next to m' corrupted groups.

    Attributes:
        always: W_A, retained whatever the attacker does; sorted.
        contested: W_C, retained or not as the attacker likes; those said most often first.
        unbounded: True if the attacker alone can have any word retained.
        needed: the number of votes that retains a keyword.
        tally: the untouched groups' keywords.
    """

    always: tuple[str, ...]
    contested: tuple[str, ...]
    unbounded: bool
    needed: int
    tally: Tally

    @property
    def size(self) -> int:
        """The number of keyword sets."""
        return 1 << len(self.contested)

    def sets(self) -> Iterator[tuple[str, ...]]:
        """Yield all keyword sets, sorted: those likeliest to fail first, none contested, all, one left out, ..."""
        size = len(self.contested)
        by_size = sorted(range(size + 1), key=lambda n: (min(n, size - n), 0 < n <= size // 2))
        for count in by_size:
            for chosen in combinations(self.contested, count):
                yield tuple(sorted((*self.always, *chosen)))


def keyword_span(said: Said, corrupted: int, threshold: Threshold) -> KeywordSpan:
    """Return the keywords that can be retained next to m' corrupted groups, from those of the untouched groups.

    With e of m' corrupted groups answering, a keyword said c(w) times stays if it reaches the threshold of n + e groups
    and can stay if c(w) + e does. Both sets grow apart with e, so that e = m' covers all others (Algorithm 3, lines
    1-14).
    """
    tally = Tally.of(said, threshold)
    needed = threshold.needed(tally.answering + corrupted)
    ranked = sorted(tally.counts, key=lambda w: (-tally.counts[w], w))
    always = tuple(sorted(w for w in ranked if tally.counts[w] >= needed))
    contested = tuple(w for w in ranked if needed > tally.counts[w] >= needed - corrupted)
    return KeywordSpan(always, contested, corrupted >= needed, needed, tally)


def keyword_certification_plan(
    question: Question, settings: KeywordSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first; final calls are shared between them."""
    prompts_of, read = partial(settings.isolated_prompts, question.query), settings.reading(question.query)
    certify = _Trial(question, settings).certify_case
    return certify_sizes(question, settings.quorum_rule, prompts_of, read, certify, same_batches=same_batches)


@dataclass
class _Trial:
    """One question's final calls, shared by all corruption sizes."""

    question: Question
    settings: KeywordSettings
    finals: dict[tuple[str, ...], Response] = field(default_factory=dict)

    def certify_case(
        self,
        found: Findings,
        number: int,
        case: BenignCase,
        readings: Sequence[Reading[frozenset[str]]],
        ledger: Ledger,
    ) -> Asking[None]:
        """Add the answers that are possible next to one case's untouched groups."""
        span = keyword_span([reading.found for reading in readings], case.corrupted, self.settings.threshold)
        if not found.evidence or span.unbounded:
            found.evidence = _evidence(span, case)
        if span.unbounded:
            found.open_ended(
                f"{count_of(case.corrupted, 'corrupted group')} alone can reach the threshold of {span.needed}: "
                "any word can be retained"
            )
            return
        if self._fits(span, ledger.left):
            yield from self._try_all(found, number, span.sets(), ledger, span)
            return
        found.give_up(
            f"the attacker decides on {count_of(len(span.contested), 'keyword')}, 2^{len(span.contested)} sets, with "
            f"{count_of(ledger.left, 'model call')} left; raise max_model_calls=, or raise alpha= and beta="
        )

    def _asks(self, kept: tuple[str, ...]) -> bool:
        return self.settings.final == "always" and bool(kept) and kept not in self.finals

    def _fits(self, span: KeywordSpan, left: int) -> bool:
        """True if so many calls are enough for all sets that the model has to be asked about."""
        if self.settings.final == "never":
            return span.size <= _MOST_TEXTS
        if span.size > left + len(self.finals) + 1:
            return False
        return sum(map(self._asks, span.sets())) <= left

    def _try_all(
        self, found: Findings, number: int, sets: Iterator[tuple[str, ...]], ledger: Ledger, span: KeywordSpan
    ) -> Asking[None]:
        """Ask for each set's answer, in waves, until one scores 0 (Algorithm 3, lines 15-19)."""
        wave = 2
        while not found.done and (possible := list(islice(sets, wave))):
            if new := list(dict.fromkeys(filter(self._asks, possible))):
                prompts = tuple(self.settings.final_prompt(self.question.query, kept) for kept in new)
                replies = yield Ask(prompts, "final")
                ledger.spent += len(new)
                self.finals.update(zip(new, replies, strict=True))
            texts = [self._text(kept) for kept in possible]
            scores = iter((yield from ledger.scored(t for t in texts if t is not None)))
            for kept, text in zip(possible, texts, strict=True):
                found.add(text, next(scores) if text is not None else 0.0, _cause(kept, span), number)
            wave = _WAVE

    def _text(self, kept: tuple[str, ...]) -> str | None:
        """Return the text that inference shows for these keywords; None where it raises."""
        if not kept or self.settings.final == "never":
            return ", ".join(kept) or ABSTENTION
        try:
            return final_answer(self.finals[kept], self.settings.cut_replies).text or ABSTENTION
        except ModelError:
            return None


def _cause(kept: Sequence[str], span: KeywordSpan) -> str:
    missing = [w for w in span.contested if w not in kept]
    retained = f"retained: {', '.join(kept) if kept else 'nothing'}"
    return retained + (f"; suppressed: {', '.join(missing)}" if missing else "")


def _evidence(span: KeywordSpan, case: BenignCase) -> dict[str, Any]:
    counts = span.tally.counts
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {
        "counts": dict(ranked[:200]),
        "threshold": span.needed,
        "rule": span.tally.threshold.in_words,
        "corrupted_groups": case.corrupted,
        "untouched_groups": len(case.groups),
        "always_retained": list(span.always),
        "contested": list(span.contested[:200]),
        "keyword_sets": 2 ** min(len(span.contested), 60),
    }
