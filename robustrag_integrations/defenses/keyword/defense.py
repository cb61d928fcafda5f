"""Keyword aggregation (paper, section III-B, Algorithm 1).

ask every source alone                                 line 5
read the keywords of each reply                       line 7, `KeywordSettings`
count, and keep what enough sources say                lines 8-13, `threshold.py`
ask again with these alone                            lines 14-15

If nothing is kept there is no answer, and no further call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.settings import setting
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.counting import Counted, Holds, worst_case_sums
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.keyword.threshold import Said, Tally, Threshold
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import AbstainingSettings
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.grouping.warnings import FEW
from robustrag_integrations.models.base import Response, TextModel, TwoModels
from robustrag_integrations.plans.asking import (
    PlanInput,
    Reading,
    ask_final,
    ask_sources,
    dissent_warnings,
    read_response,
)
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Ask, Steps
from robustrag_integrations.replies.reading import final_answer
from robustrag_integrations.text.keywords import KeywordExtractor, WordExtractor, extractor_fingerprint
from robustrag_integrations.text.prompts import ABSTENTION, Prompt, agreed_prompt
from robustrag_integrations.text.spacy_keywords import SpacyKeywordExtractor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.defenses.options import KeywordOptions

_PAPERS_BETA = 3
_MOST_COUNTS = 200  # keywords in a report; a hostile reply may hold tens of thousands
_MOST_KEYWORDS = 50  # of one source


@dataclass(frozen=True, kw_only=True)
class KeywordSettings(AbstainingSettings):
    """Everything that decides a keyword aggregation apart from the model."""

    method: ClassVar[Method] = METHODS["keyword"]

    alpha: float | Fraction = setting(
        0.2,
        "share of the answering sources that keeps a keyword: at least min(alpha * n, beta) of n, as in the paper",
        long_form=0.5,  # what fewer than half of the sources carry is no part of the final prompt
        least=0,
        most=1,
        threshold=True,
    )
    beta: int | None = setting(
        None,
        "number of sources that keeps a keyword in any case; 3 as in the paper, none for long form",
        least=1,
        threshold=True,
    )
    final: Literal["always", "never"] = setting(
        "always",
        "whether the model words the kept keywords, as in the paper, or the kept keywords are the answer (never)",
    )
    min_words: int = setting(
        1,
        "keywords of fewer words do not count (the paper's results come from dropping single words)",
        long_form=2,
        least=1,
    )
    extractor: KeywordExtractor | Literal["words", "spacy"] = setting(
        "words",
        "what finds a reply's keywords: words, its content words; spacy, the paper's; or a function from reply to "
        "keywords",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        final = self.prompts.keyword or agreed_prompt(self.prompts.isolated, self.task)  # keywords for passages
        if unknown := set(final.fields) - {"keywords", "query"}:
            raise ValueError(f"the final prompt asks for {sorted(unknown)}; it is given keywords and query alone")
        self._set(prompts=replace(self.prompts, keyword=final), extractor=_extractor_of(self.extractor))

    @cached_property
    def threshold(self) -> Threshold:
        """The number of votes that keeps a keyword."""
        beta = self.beta or (None if self.task == "long_form" else _PAPERS_BETA)
        return Threshold.of(self.alpha, beta)

    def reading(self, question: str) -> Callable[[Response], Reading[frozenset[str]]]:
        """Return what reads the keywords of replies to a question, each for itself; none if a reply abstains.

        The question's own words count in a reply that has no others alone ("Paris" of "Is it Paris or London?"). An
        extractor that raises over a question finds nothing in it.
        """
        extract: Any = self.extractor
        asked: frozenset[str] = frozenset()
        with suppress(Exception):
            asked = _as_counted(extract(question) or ())

        def keywords_of(text: str) -> frozenset[str] | None:
            found = None if self.abstains(text, question) else extract(text)
            if found is None:
                return None
            counted = frozenset(word for word in _as_counted(found) if len(word.split()) >= self.min_words)
            return counted - asked or counted

        return lambda response: read_response(response, keywords_of, self.cut_replies)

    def isolated_prompts(self, query: str, sources: Sequence[Source]) -> list[Prompt]:
        """One prompt per source; for long form a request for short phrases."""
        template = self.prompts.phrases if self.task == "long_form" and self.prompts.phrases else self.prompts.isolated
        return [template.render(context=g.text, query=query) for g in sources]

    def final_prompt(self, query: str, kept: Sequence[str]) -> Prompt:
        """Return the second prompt: the query and the list of kept keywords, nothing else."""
        assert self.prompts.keyword is not None  # noqa: S101 - set at the start
        return self.prompts.keyword.render(keywords=", ".join(kept), query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "alpha": str(self.threshold.alpha),
            "beta": self.threshold.beta,
            "task": self.task,
            "final": self.final,
            "quorum": self.quorum,
            "disagreement": self.disagreement,
            "min_words": self.min_words,
            "extractor": extractor_fingerprint(self.extractor),  # type: ignore[arg-type]
            "abstains": self.abstains.fingerprint,
            "cut_replies": self.cut_replies,
        }


def _extractor_of(given: KeywordExtractor | str) -> KeywordExtractor:
    if isinstance(given, str):
        return SpacyKeywordExtractor() if given == "spacy" else WordExtractor()
    if not callable(given):
        raise TypeError(f"extractor must be a function from text to a set of str, got {type(given).__name__}")
    return given


def _as_counted(found: Collection[str]) -> frozenset[str]:
    """Return an extractor's keywords as plain str; TypeError for anything but a collection of str."""
    given = () if isinstance(found, str) else tuple(found)  # a generator can be read but once
    wrong = found if isinstance(found, str) else next((word for word in given if not isinstance(word, str)), None)
    if wrong is not None:
        raise TypeError(f"the extractor must return a set of str, got {type(wrong).__name__}")
    words = map(str.__str__, given)  # of a subclass of str, which may compare as it likes, the characters alone
    return frozenset(w for w in words if "\0" not in w and not w.isspace() and w)


@dataclass(frozen=True)
class _Text(Counted):
    """The text that kept keywords give.

    `tells`: it is what sources say, which each of them may change. `aloud`: per source whether its reply reasons aloud,
    where the final call was shown late for that reason. A stream that did not wait, as nobody reasons aloud any more,
    may end in an error.
    """

    tally: Tally
    tells: bool
    aloud: Sequence[bool] = ()

    @property
    def said(self) -> Sequence[Any]:  # type: ignore[override]
        """What counts of each source."""
        return self.tally.said

    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        """Tell for each r from 0 to `most` whether the text stays."""
        if self.tells:
            return np.array([r == 0 and pending == 0 for r in range(most + 1)])
        holds = self.tally.holding(most, pending)
        if any(self.aloud):
            holds &= worst_case_sums(np.array(self.aloud, np.int64), 0, most) >= 1
        return holds


def keyword_plan(inputs: PlanInput, settings: KeywordSettings) -> Steps[Draft]:
    """Run Algorithm 1: ask each source alone, keep the keywords that enough of them share, let the model word these.

    The final prompt is a function of the kept keywords, and the answer of the final prompt: while the same keywords are
    kept, the answer stays to the letter.
    """
    query, read = inputs.query, settings.reading(inputs.query)

    def count(found: Sequence[frozenset[str] | None], pending: int) -> _Text:
        tally = Tally.of(found, settings.threshold)
        return _Text(tally, settings.disagreement == "tell" and not tally.kept)

    prompts = settings.isolated_prompts(query, inputs.sources)
    heard = yield from ask_sources(inputs, prompts, read, settings.quorum, count)
    outcome = count(heard.found, heard.pending)
    tally = outcome.tally
    final: Response | None = None
    text = ", ".join(tally.kept)
    if tally.kept and settings.final == "always":
        aloud = [response.aloud for response in heard.responses]
        prompt = settings.final_prompt(query, tally.kept)
        final = yield from ask_final(prompt, settings.cut_replies, whole=any(aloud), heard=heard)
        text = final.text or ""
        outcome = replace(outcome, aloud=aloud if final.aloud else ())
    abstained = not tally.kept or not text or settings.final_abstains(text)
    in_text = () if abstained else read(Response(text)).found or ()
    shown = () if abstained else tuple(keyword for keyword in tally.kept if keyword in in_text) or tally.kept
    answer = inputs.answer(
        text,
        abstained=abstained,
        sources=heard.reports(lambda said: _said(said, shown)),
        evidence=_evidence(tally),
    )
    dissent = () if abstained else answer.dissent
    warnings = _warnings(tally, len(inputs.sources))
    warnings += dissent_warnings(dissent, sum(found is not None for found in tally.said))
    answer = replace(answer, warnings=tuple(warnings))
    if outcome.tells:
        answer = answer.telling()
    return Draft(answer, heard, outcome, final=final)


def _said(said: frozenset[str], answer: Sequence[str]) -> dict[str, Any]:
    """Return the report of a source: it supports the answer if it says all of its keywords, and differs if none."""
    words = tuple(keyword for keyword in answer if keyword in said)
    return {
        "status": ("supports" if len(words) == len(answer) else "variant") if words else "differs",
        "keywords": tuple(sorted(said)[:_MOST_KEYWORDS]),
        "words": words,
    }


def _warnings(tally: Tally, sources: int) -> list[str]:
    found = []
    answering = [keywords for keywords in tally.said if keywords is not None]
    if unread := sum(not keywords for keywords in answering):
        found.append(
            f"extractor= found no keyword in {unread} of {len(answering)} replies, which are ignored; use one "
            "that reads their language"
        )
    if sources >= FEW and answering and tally.needed <= 1:
        found.append(
            f"with {count_of(tally.answering, 'answering source')} the threshold is {tally.needed}: one source alone "
            "decides what is kept; raise alpha= and beta=, or retrieve more passages"
        )
    if answering and not tally.kept:
        most = max(tally.counts.values(), default=0)
        found.append(
            f"no keyword has the {tally.needed} sources that it takes ({tally.threshold.in_words}): the most is {most}"
        )
    return found


def _evidence(tally: Tally) -> dict[str, Any]:
    ranked = sorted(tally.counts.items(), key=lambda item: (-item[1], item[0]))
    return {
        "counts": dict(ranked[: max(_MOST_COUNTS, len(tally.kept))]),
        "distinct_keywords": len(tally.counts),
        "threshold": tally.needed,
        "rule": tally.threshold.in_words,
        "retained": list(tally.kept),
        **({"support": min(tally.counts[keyword] for keyword in tally.kept)} if tally.kept else {}),
        "answering": tally.answering,
    }


_WAVE = 32  # final prompts asked at once, after the first and likeliest
_MOST_TEXTS = 50_000  # of keyword sets that are shown as they are, without a call


@dataclass(frozen=True)
class KeywordSpan:
    """The keywords that can be retained next to m' corrupted sources.

    Attributes:
        always: W_A, retained whatever the attacker does; sorted.
        contested: W_C, retained or not as the attacker likes; those said most often first.
        unbounded: True if the attacker alone can have any word retained.
        needed: the number of votes that retains a keyword.
    """

    always: tuple[str, ...]
    contested: tuple[str, ...]
    unbounded: bool
    needed: int
    tally: Tally

    def sets(self) -> Iterator[tuple[str, ...]]:
        """Yield all keyword sets, sorted: those likeliest to fail first, none contested, all, one left out, ..."""
        size = len(self.contested)
        by_size = sorted(range(size + 1), key=lambda n: (min(n, size - n), 0 < n <= size // 2))
        for count in by_size:
            for chosen in combinations(self.contested, count):
                yield tuple(sorted((*self.always, *chosen)))


def keyword_span(said: Said, corrupted: int, threshold: Threshold) -> KeywordSpan:
    """Return the keywords that can be retained next to m' corrupted sources, from those of the untouched sources.

    With e of m' corrupted sources answering, a keyword said c(w) times stays if it reaches the threshold of n + e
    sources and can stay if c(w) + e does. Both sets grow apart with e, so that e = m' covers all others (Algorithm 3,
    lines 1-14).
    """
    tally = Tally.of(said, threshold)
    needed = threshold.needed(tally.answering + corrupted)
    ranked = sorted(tally.counts, key=lambda w: (-tally.counts[w], w))
    always = tuple(sorted(w for w in ranked if tally.counts[w] >= needed))
    contested = tuple(w for w in ranked if needed > tally.counts[w] >= needed - corrupted)
    return KeywordSpan(always, contested, corrupted >= needed, needed, tally)


def keyword_certification_plan(
    question: Question, settings: KeywordSettings, choices: object = None, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first; final calls are shared between them."""
    prompts_of, read = partial(settings.isolated_prompts, question.query), settings.reading(question.query)
    certify = _Trial(question, settings).certify_case
    return certify_sizes(question, settings.quorum, prompts_of, read, certify, same_batches=same_batches)


@dataclass
class _Trial:
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
        """Add the answers that are possible next to one case's untouched sources."""
        span = keyword_span([reading.found for reading in readings], case.corrupted, self.settings.threshold)
        if not found.evidence or span.unbounded:
            found.evidence = _span_evidence(span, case)
        if span.unbounded:
            found.open_ended(
                f"{count_of(case.corrupted, 'corrupted source')} alone can reach the threshold of {span.needed}: "
                "any word can be retained"
            )
            return
        if not span.always and self.settings.disagreement == "tell" and (case.corrupted or span.tally.answering):
            found.open_ended(
                f"{count_of(case.corrupted, 'corrupted source')} can leave no keyword: people are told who says what"
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
        size = 1 << len(span.contested)
        if self.settings.final == "never":
            return size <= _MOST_TEXTS
        return size <= left + len(self.finals) + 1 and sum(map(self._asks, span.sets())) <= left

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
    return f"retained: {', '.join(kept) or 'nothing'}" + (f"; suppressed: {', '.join(missing)}" if missing else "")


def _span_evidence(span: KeywordSpan, case: BenignCase) -> dict[str, Any]:
    counts = span.tally.counts
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {
        "counts": dict(ranked[:200]),
        "threshold": span.needed,
        "rule": span.tally.threshold.in_words,
        "corrupted_sources": case.corrupted,
        "untouched_sources": len(case.sources),
        "always_retained": list(span.always),
        "contested": list(span.contested[:200]),
        "keyword_sets": 2 ** min(len(span.contested), 60),
    }


class KeywordAggregation(TextDefense):
    """Secure keyword aggregation over any text model.

    Guarantee: replacing the content of any `answer.radius` sources leaves the answer as it is if the model is
    deterministic, and the kept keywords of this run if it samples (`answer.determinism`).

    Theorem (`threshold.py`): the answer is a function of the kept keywords. Of the replaced sources each takes away its
    own vote for a kept keyword, and adds one for any other, one that nobody said included; the radius is the largest
    number of sources for which no keyword crosses min(alpha n, beta), however many of them answer.

    Args:
        model: the model to ask, once per source and once with the retained keywords.
        final_model: asked with the retained keywords in its place; the guarantee needs both to be deterministic.
        task: `short_answer` (default), or `long_form`: each source is asked for short phrases, single words do not
            count, and the model is asked to write an answer of those that at least half of the sources carry.
        prompts: your own `PromptSet`; None for the project's. Without a `keyword` prompt in it, the isolated prompt is
            asked at the end, too, with the kept keywords where the passages stood.
        options: the settings of the method:

    Examples:
        >>> defense = KeywordAggregation(CallableModel(my_llm))
        >>> answer = defense.answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    settings_type = KeywordSettings
    settings: KeywordSettings
    promise = Promise(
        "the keywords that this run kept",
        "the final call is asked with these alone and draws on its own, so that its words may differ by chance, not by "
        "the attacker's choice",
        scope="final_prompt",
    )

    def __init__(
        self, model: TextModel, *, final_model: TextModel | None = None, **given: Unpack[KeywordOptions]
    ) -> None:
        super().__init__(model if final_model is None else TwoModels(model, final_model), **given)

    plan_of = staticmethod(keyword_plan)
    certification_plan = staticmethod(keyword_certification_plan)
