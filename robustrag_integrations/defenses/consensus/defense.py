"""Consensus aggregation: one round of isolated calls.

ask every source alone, and read its whole answer      `settings.py`
count                                                 `counting.py`
show the answer, or tell who says what
with a class of the user's, have it put into an object

An answer is shown in the wording that most of its sources use: a reply's own text, of which nothing is cut. Two
wordings of one key differ in what means nothing (`replies/keys.py`); the radius is about keys, that of the letters
about both. Where no answer is agreed on, people may hear a *sole source*: the one source of whose answer the model is
sure. It has the radius 0 and goes into no prompt, so that nothing rests on confidence but what people see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.answers.links import without_links
from robustrag_integrations.answers.telling import LONGEST, LONGEST_IN_FULL
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.certification.isolated import Unbounded, certify_sizes, without_calls
from robustrag_integrations.core import commonest, count, possible, wordings
from robustrag_integrations.counting import Count, Counted, Holds, Rule, worst_case_sums
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.consensus.lists import list_certification_plan, list_plan
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings, Said
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.asking import PlanInput, Reading, ask_final, ask_sources, dissent_warnings
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.replies.keys import verdict_of
from robustrag_integrations.text.languages import language_of, stop_words
from robustrag_integrations.text.prompts import ABSTENTION, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.defenses.options import ConsensusOptions

_MOST_COUNTS = 200  # of answers in the evidence; a hostile set of sources may give many
_LONGEST_SOLE = 10_000  # characters of a sole source's answer that are shown


@dataclass(frozen=True)
class Outcome(Counted):
    """What sources agree on: per source what it says, and what of it has a vote; the count of that; and how many
    sources may say more: they were not waited for, or their replies were cut."""

    said: tuple[Said | None, ...]
    voting: tuple[Said | None, ...]
    count: Count[str]
    unheard: int = 0
    has_wordings: ClassVar[bool] = True

    @classmethod
    def of(cls, found: Sequence[Said | None], rule: Rule, unheard: int = 0) -> Outcome:
        """Count what sources say."""
        voting = tuple(own if own is not None and own.counts else None for own in found)
        return cls(tuple(found), voting, count(voting, rule), unheard)

    @cached_property
    def text(self) -> str:
        """The answer; empty if there is none."""
        if self.count.winner is not None:
            return commonest(self._wordings)
        if self.sole is None:
            return ""
        return without_links(self.sole.text[:_LONGEST_SOLE]) + "…" * (len(self.sole.text) > _LONGEST_SOLE)

    @cached_property
    def sole(self) -> Said | None:
        """What the one source says of which the model is sure, where there is no answer, no tie, and all were heard.

        Where no confidence is known each reply counts as sure: then it is the one source that answers.
        """
        if self.count.winner is not None or self.count.tied or self.unheard:
            return None
        sure = [own for own in self.voting if own is not None and own.is_sure]
        return sure[0] if len(sure) == 1 else None

    @property
    def key(self) -> str | None:
        """The key of the text."""
        return self.count.winner if self.count.winner is not None else self.sole.key if self.sole else None

    @cached_property
    def _wordings(self) -> Counter[str]:
        return wordings(self.voting, self.count.winner)

    def report(self, own: Said, variants: Collection[str]) -> dict[str, Any]:
        """Return a source's findings by the fields of its report; `variants`: keys of other forms of the answer."""
        text = own.text
        if own.counts and own.key == self.key:
            status, text = "supports", text if self.count.winner is not None else self.text
        elif own.is_sure and own.counts:
            status = "variant" if own.key in variants else "differs"
        else:
            status = "unsure"
        return {"status": status, "keywords": (own.key,), "words": (text,), "confidence": own.confidence}

    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        """Tell for each r whether the answer, or its letters, stay.

        The shown wording has to stay ahead of the others, or level where it comes first. Of one that nobody writes yet
        nothing is known.
        """
        holds = self.count.holding(most, pending)
        if verbatim and self.count.winner is not None:
            written = [own.text if own and own.key == self.count.winner else None for own in self.voting]
            shown = np.array([form == self.text for form in written], np.int64)
            others = [form for form in self._wordings if form != self.text]
            rows = [shown - np.array([form == other for form in written], np.int64) for other in others]
            wins_ties = np.array([False, *((len(self.text), self.text) < (len(other), other) for other in others)])
            ahead = worst_case_sums(np.array([shown, *rows]), -1, most, pending) + wins_ties[:, None] > 0
            holds &= ahead.all(axis=0)
            holds[0] |= pending == 0
        return holds

    @property
    def evidence(self) -> dict[str, Any]:
        """The votes of each answer, in a wording of it, and of how many there are."""
        wording: dict[str, str] = {}
        for own in self.said:
            if own is not None:
                wording.setdefault(own.key, own.text)
        counts: dict[str, int] = {}
        for key, votes in list(self.count.votes.items())[:_MOST_COUNTS]:
            counts.setdefault(self.text if key == self.count.winner else wording[key], votes)
        found: dict[str, Any] = {"counts": counts, "answering": sum(self.count.votes.values())}
        if self.key is not None:
            found["support"] = self.count.votes.get(self.key, 0)
        if self.said and all(own is None or own.confidence is None for own in self.said):
            found["confidence"] = "unknown"
        return found


def consensus_plan(inputs: PlanInput, settings: ConsensusSettings) -> Steps[Draft]:
    """Ask every source alone; the answer is the whole answer that most of them give."""
    prompts = settings.isolated_prompts(inputs.query, inputs.sources)
    read = settings.reading(inputs.query)

    def count(found: Sequence[Said | None], pending: int) -> Outcome:
        return Outcome.of(found, settings.rule, pending)

    heard = yield from ask_sources(inputs, prompts, read, settings.quorum, count)
    outcome = count(heard.found, heard.pending + heard.cut)
    variants = variants_of(outcome.key, [own.key for own in outcome.said if own is not None], inputs.query)
    reports = heard.reports(partial(outcome.report, variants=variants))
    answer = inputs.answer(outcome.text, sources=reports, evidence=outcome.evidence)
    answer = replace(answer, warnings=_warnings(outcome, answer, settings.task))
    if answer.abstained:
        return Draft(_told(answer, outcome, settings) if settings.disagreement == "tell" else answer, heard, outcome)
    prompt = settings.object_prompt(answer.query, answer.text)
    if prompt is None:
        return Draft(answer, heard, outcome)
    answer = replace(answer, evidence={**answer.evidence, "agreed": answer.text})
    try:
        made = yield from ask_final(prompt, settings.cut_replies, shown=False)
    except ModelError as error:
        why = f"abstained: the call that puts the agreed answer into an object failed ({printable(str(error), 200)})"
        return Draft(answer, heard, outcome, withheld=why)
    return Draft(replace(answer, text=made.text or ""), heard, outcome)


def _told(answer: RobustAnswer, outcome: Outcome, settings: ConsensusSettings) -> RobustAnswer:
    """Return the abstention that tells people who says what, first the answers that lead alike."""
    tied = outcome.count.tied if len(outcome.count.tied) > 1 else ()
    return answer.telling(
        first={g.index for g, own in zip(answer.sources, outcome.said, strict=True) if own and own.key in tied},
        longest=LONGEST_IN_FULL if settings.task == "long_form" else LONGEST,
    )


def variants_of(answer: str | None, keys: Iterable[str], question: str) -> frozenset[str]:
    """Return the keys that are longer or shorter forms of the answer's: "mayor ruth penn" of "ruth penn".

    One stands in the other at word boundaries, and what it has more is content words of the question's language alone:
    with a stop word, such as a "not", or a digit, it is another answer. None in a language that is not known.
    """
    others = {key for key in keys if key != answer}
    if answer is None or not others or (language := language_of(question)) is None:
        return frozenset()
    small = stop_words(language)

    def is_form(key: str) -> bool:
        short, long = sorted((answer, key), key=len)
        before, found, after = f" {long} ".partition(f" {short} ")
        rest = f"{before} {after}".split()
        return bool(found) and all(word.rstrip(".").isalpha() and word.casefold() not in small for word in rest)

    return frozenset(filter(is_form, others))


def _warnings(outcome: Outcome, answer: RobustAnswer, task: Task) -> tuple[str, ...]:
    count, said = outcome.count, [own.text for own in outcome.said if own is not None]
    if outcome.text:
        return tuple(dissent_warnings(answer.dissent, len(said)))
    if not said or task == "long_form":
        return ()
    if len(count.tied) > 1:
        return (f"no answer: {len(count.tied)} answers have {count_of(count.votes[count.tied[0]], 'vote')} each",)
    most, one_in = max(count.votes.values(), default=0), count.rule.one_in
    if count.tied and one_in * most > len(said) * bool(one_in):
        return (f"no answer: as many sources begin with the opposite of {verdict_of(count.tied[0])!r}",)
    if count.tied:
        share = "half" if one_in == 2 else "a quarter"
        return (f"no answer is given by more than {share} of the {count_of(len(said), 'source')} that answer",)
    alike = ", no two alike" if len(said) == len(count.votes) > 1 else ""
    least = count_of(count.rule.min_support, "source")
    tasks = "; a question for several things wants task='list', one for sentences task='long_form'"
    tasks = tasks if max(map(len, said)) > _SHORT else ""
    return (f"no answer is given by {least} (min_support): {len(said)} answered{alike}{tasks}",)


_SHORT = 40  # characters; longer replies answer for more than one thing
ANY_KEY = "can have any answer win"
ANY_FORM = "can decide how the answer is written"
ANY_SOLE = "can be the only one that is heard, and have any text shown"
ANY_TOLD = "can keep the others from an answer, and people are told what it says"
ALL_TOLD = "need not do anything: there is no answer, and people are told who says what"


def consensus_certification_plan(
    question: Question, settings: ConsensusSettings, choices: object = None, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""
    if settings.task == "list":
        return list_certification_plan(question, settings, same_batches=same_batches)
    read = settings.reading(question.query)
    prompts_of = partial(settings.isolated_prompts, question.query)

    def texts(readings: Sequence[Reading[Said]], case: BenignCase, found: Findings) -> dict[str, str]:
        said = [reading.found for reading in readings]
        outcome = Outcome.of(said, settings.rule, sum(reading.is_cut for reading in readings))
        if not found.evidence:
            shown = {"corrupted_sources": case.corrupted, "untouched_sources": len(case.sources)}
            found.evidence = {**outcome.evidence, **shown}
        possible = sorted(possible_texts(outcome, case.corrupted, settings))
        return dict.fromkeys(possible, count_of(len(possible), "possible answer"))

    step = without_calls(texts)
    return certify_sizes(question, settings.quorum, prompts_of, read, step, same_batches=same_batches)


def possible_texts(outcome: Outcome, corrupted: int, settings: ConsensusSettings) -> set[str]:
    """Return every answer that is possible next to so many corrupted sources, which may say anything or abstain.

    `Unbounded`: any text is possible. That is so, too, where people are told what sources say in place of an answer.
    """
    tells = settings.disagreement == "tell"
    if outcome.count.winner is not None and outcome.holding(0, corrupted, verbatim=True)[0]:
        return {outcome.text}
    if corrupted == 0:
        if not outcome.text and tells and (outcome.unheard or any(outcome.said)):
            raise Unbounded(ALL_TOLD)
        return {outcome.text or ABSTENTION}
    keys = possible(outcome.voting, corrupted, settings.rule)
    if keys is None:
        raise Unbounded(ANY_KEY)
    if max(outcome.count.votes.values(), default=0) < settings.rule.min_support:
        raise Unbounded(ANY_SOLE)
    if None in keys and tells:
        raise Unbounded(ANY_TOLD)
    return {ABSTENTION}.union(*(_forms(outcome.voting, key, corrupted) for key in keys - {None}))


def _forms(votes: Sequence[Said | None], key: str | None, corrupted: int) -> set[str]:
    """Return the wordings in which a key can be shown when corrupted sources write it as they like."""
    written = wordings(votes, key)
    most = max(written.values(), default=0)
    if corrupted and corrupted >= most:
        raise Unbounded(ANY_FORM)
    return {form for form, count in written.items() if count + corrupted >= most}


class ConsensusAggregation(TextDefense):
    """Short answers from one round of calls: the whole answer that most sources give, in a source's own words.

    A source's whole answer is one vote, and nothing is cut out of it (`replies/keys.py`). Most votes win. Where answers
    tie, or no two sources agree, there is no answer, and the text tells who says what.

    Guarantee: replacing the content of any `answer.radius` sources leaves the same answer up to case, spacing, an
    article and the punctuation at its end, and of any `answer.radius_verbatim` sources the same letters; those of this
    run, if the model samples (`answer.determinism`).

    Theorem (`counting.py`): the answer stays if, whatever r sources say, it stays ahead of every other one,
    and of one that nobody has given, and keeps `min_support` votes.

    Args:
        model: the model to ask, once per source.
        task: `short_answer` (default); `list`, counted item by item; `long_form`, each source's full answer: what two
            give alike, what one alone gives, or who says what.
        prompts: your own `PromptSet`; None for the project's.
        options: the settings of the method:

    Examples:
        >>> answer = ConsensusAggregation(model).answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    decides_early = True
    settings_type = ConsensusSettings
    settings: ConsensusSettings
    promise = Promise("the answer of this run")

    def __init__(self, model: TextModel, **given: Unpack[ConsensusOptions]) -> None:
        super().__init__(model, **given)

    certification_plan = staticmethod(consensus_certification_plan)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: ConsensusSettings) -> Steps[Draft]:
        """Return the plan: one round of calls."""
        return (list_plan if settings.task == "list" else consensus_plan)(inputs, settings)
