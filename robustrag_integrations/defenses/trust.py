"""Trust first: what is trusted is read together, and nobody outside can change its answer.

1. All trusted passages go into one prompt, as in plain RAG, which asks for a fixed phrase where they do not hold the
   answer.
2. Any reply that answers is the answer. The others are not retrieved, checked, grouped or asked before: the prompt is a
   function of the question and the trusted passages, and what follows a function of its reply (`docs/internals/
   proofs.md`, "Trust first").
3. The phrase is silence: now the others are asked one by one, and counted as without trusted passages.
4. A reply that abstains in words of its own is shown as it is, and nobody else is asked.
5. Everything else is a failure (`TrustedError`), and lets nobody else in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError, TooFewVotesError, TrustedError
from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.answers.answer import Claim, RobustAnswer, TrustedReport
from robustrag_integrations.answers.determinism import Determinism
from robustrag_integrations.answers.links import links_in
from robustrag_integrations.certification.findings import Asking, ByMetric, Findings, Question
from robustrag_integrations.defenses.settings import MethodSettings
from robustrag_integrations.defenses.voting.options import is_unclear, parse_option, shown_options
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import PlanInput, ask_final, truncation_warnings, unseen
from robustrag_integrations.plans.finish import SpendingBook, held_to_min_radius, link_warning
from robustrag_integrations.plans.requests import Ask, Emit, Plan, Reply, Request, Retrieve, Steps, relayed
from robustrag_integrations.replies.keys import items_of
from robustrag_integrations.replies.reading import complete_answer
from robustrag_integrations.replies.streams import RETRACTED
from robustrag_integrations.text.abstention import may_begin_phrase, silence_of
from robustrag_integrations.text.languages import VERDICTS, language_of, stop_words
from robustrag_integrations.text.prompts import NO_INFORMATION, OBJECT_PROMPT, PromptTemplate

MADE_UP = (
    "the reply has no number, name or word of theirs, so that the model may have made it up; ask a better model, or "
    "take such replies with word_gate=False"
)

_LOOKED_AT = 200_000  # characters of the passages
_STEM = 4  # letters that two forms of a word share, as "weekly" and "weeks" do
_UNSPACED = frozenset({"zh", "ja", "th"})


class Later:
    """What a framework retrieves where the trusted passages are silent.

    Attributes:
        found: what was found by then.
        error: what failed.
        condensed: the trusted ones were searched for with more than the question, such as the conversation.
    """

    def __init__(
        self,
        find: Callable[[], Any],
        afind: Callable[[], Awaitable[Any]] | None = None,
        checked: Callable[[Any], list[Any]] = list,
        *,
        condensed: bool = False,
    ) -> None:
        self._find, self._afind, self._checked, self.condensed = find, afind, checked, condensed
        self.found: list[Any] = []
        self.error: BaseException | None = None

    def request(self, beside: Callable[[list[Any]], PlanInput]) -> Retrieve:
        """Return the request for it; `beside` says what the plan is told of what was found."""

        def find() -> PlanInput:
            with self._noted():
                self.found = self._checked(self._find())
            return beside(self.found)

        async def afind() -> PlanInput:
            if self._afind is None:
                return await asyncio.to_thread(find)
            with self._noted():
                self.found = self._checked(await self._afind())
            return await asyncio.to_thread(beside, self.found)

        return Retrieve(find, afind)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.error = error
            raise


@dataclass(frozen=True)
class _Heard:
    """What the trusted passages say: the report, and of an answer its text or option; the response as it came."""

    report: TrustedReport
    text: str = ""
    choice: int | None = None
    response: Response | None = None
    begun: bool = False  # some of it was shown


def trust_first(
    inputs: PlanInput,
    settings: MethodSettings,
    others: Retrieve,
    ask_others: Callable[[PlanInput], Plan],
) -> Plan:
    """Return the plan of a question whose trusted passages are the one source of `inputs`, or none.

    Args:
        others: finds what `PlanInput` holds of the sources that are asked one by one, where the trusted are silent.
        ask_others: the plan that asks them, as without trusted passages.

    Raises:
        TrustedError: the trusted passages failed, and `when_trusted_fails` is "raise".
    """
    book = SpendingBook()

    def relay(request: Request) -> Steps[Reply]:
        reply = yield request
        book.note(request, reply)
        return reply

    heard = yield from relayed(_heard(inputs, settings), relay)
    shelf = heard.report
    if shelf.status in ("silent", "empty"):
        found: PlanInput = yield others
        try:
            answer = yield from relayed(ask_others(found), relay)
        except (ModelError, TooFewVotesError) as error:
            if error.robustness is not None:
                error.robustness = _beside(error.robustness, shelf)
            raise
        asked = 0 if heard.response is None else 1
        answer = _beside(replace(answer, model_calls=answer.model_calls + asked), shelf)
        return book.entered(answer)
    answer = _own_answer(heard, inputs, settings, book.asked)
    if shelf.status == "failed":
        answer = _failed(answer, heard, settings)
    elif inputs.objects and shelf.status == "answers":
        answer = yield from relayed(_as_object(answer, settings), relay)
    answer = book.entered(answer)
    if inputs.rules.min_radius and not answer.abstained:
        answer = held_to_min_radius(answer, inputs.rules)
    if inputs.for_prompt:
        answer = answer.for_prompt()
    if _holds_back(inputs) or shelf.status == "failed":
        yield Emit(("\n\n" if heard.begun else "") + answer.text)
    return answer


def _holds_back(inputs: PlanInput) -> bool:
    """True if more than the reply decides what is shown, so that nothing is before the end."""
    may_be_withheld = inputs.conversation and inputs.rules.min_radius
    return bool(inputs.for_prompt or inputs.abstention or inputs.objects or may_be_withheld)


def _heard(inputs: PlanInput, settings: MethodSettings) -> Steps[_Heard]:
    """Ask about the trusted passages, and read the reply; what may be shown is, as it comes."""
    source = inputs.sources[0] if inputs.sources else Source(0, ())
    report = TrustedReport(tuple(p.id or "" for p in source.passages), source.origins)
    if source.is_empty:
        if settings.when_empty == "ask_others" and not source.passages:
            return _Heard(replace(report, status="empty"))
        lacks = (
            "they hold nothing to read"
            if source.passages
            else "none was found. A search over documents that are there finds something, so look at its filter; where "
            "it has a threshold, when_empty='ask_others' asks the others"
        )
        return _Heard(replace(report, status="failed", error=lacks))
    choices, values = inputs.choices, {"context": source.text, "query": inputs.query}
    if choices is not None:
        values["choices"] = shown_options(choices, source.text, settings.prompts)
    phrases = settings.phrases
    shown = choices is None and not _holds_back(inputs)

    words = _SharedWords(inputs.query, source.text) if settings.word_gate and choices is None else None

    def holds(text: str) -> bool:
        """True of what may be silence, or made up: a word that is not complete yet says nothing of that."""
        said = text[: max(text.rfind(" "), text.rfind("\n"), 0)]
        return may_begin_phrase(text, phrases) or (words is not None and not words.are_in(said))

    template = cast(PromptTemplate, settings.prompts.trusted)  # `Defense.trusted_plan` refuses a set without
    [response] = yield Ask((template.render(**values),), "trusted", shown, holds=holds)
    report = replace(report, reply=response.text, truncated=response.truncated)
    answer, why = complete_answer(response, getattr(settings, "cut_replies", "abstain"), inputs.model.limit)
    text, begun = answer.text or "", False
    choice: int | None = None
    said: Literal["silent", "abstains"] | None = None
    if why is None and choices is not None:
        choice = parse_option(text, choices)
        if is_unclear(text, choices):
            why = "the reply names none of the options"
        elif choice is None:  # a letter may stand for "no information"
            said = silence_of(text, (*phrases, NO_INFORMATION), inputs.query) or "silent"
        else:
            text = choices[choice]
    elif why is None:
        said = silence_of(text, phrases, inputs.query) or (
            "abstains" if settings.final_abstains(text, inputs.query) else None
        )
        if said is None and words is not None and not words.may_be_in(text):
            why = MADE_UP
        begun = shown and not holds(text)
        if rest := _rest(said, response, answer, begun) if shown and why is None else "":
            yield Emit(rest)
    if said == "silent" and response.truncated:
        why = (
            "some of them did not fit the model's context, and the others do not hold the answer; retrieve fewer, or "
            "use a model with a larger context"
        )
    if why is not None:
        begun = shown and not holds(text)
        return _Heard(replace(report, status="failed", error=why), response=response, begun=begun)
    if choices is not None and said != "silent" and not _holds_back(inputs):
        yield Emit(text)
    return _Heard(replace(report, status=said or "answers"), text, choice, answer)


def _rest(said: str | None, response: Response, answer: Response, begun: bool) -> str:
    """Return what is left to show of a reply that is shown, or what ends one that turned out to be silence."""
    if said == "silent":
        return "\n\n" if response.note == RETRACTED else ""
    return unseen(response, answer) if begun else answer.text or ""


def _own_answer(heard: _Heard, inputs: PlanInput, settings: MethodSettings, calls: int) -> RobustAnswer:
    """Return the answer that the trusted passages alone decide: theirs, their own abstention, or none."""
    shelf, response = heard.report, heard.response
    answers = shelf.status == "answers"
    text = heard.text if shelf.status != "failed" else ""
    if shelf.status == "abstains" and inputs.abstention:
        text = ""
    known = inputs.model.repeats
    told = [*inputs.model.warnings, *inputs.caveats, *truncation_warnings([shelf.truncated])]
    if answers and response is not None:
        told += filter(None, [response.note])
        there = links_in("\n".join(p.text for source in inputs.sources for p in source.passages))
        if links := [link for link in links_in(text) if link not in there]:
            told.append(link_warning(links))
    if not inputs.accept_sampling and (caveat := known.caveat):
        told.append(f"{caveat}; what holds of this one is in determinism")
    decided = "conversation" if inputs.conversation else "trusted"
    items = items_of(text) if answers and settings.task == "list" else ()  # without votes, so that none has a radius
    return inputs.answer(
        text or None,
        abstained=not answers,
        choice=heard.choice,
        model_calls=calls,
        reasoning_chars=0 if response is None else response.reasoning_chars,
        trusted=shelf,
        claims=tuple(Claim(wording, 0, None, shelf.origins, ()) for _, wording in items),
        decided_by=decided if answers else None,
        determinism=Determinism.trusted(known) if answers else Determinism.of(known, None, radius=0, whole=0),
        warnings=tuple(dict.fromkeys(told)),
    )


def _failed(answer: RobustAnswer, heard: _Heard, settings: MethodSettings) -> RobustAnswer:
    """Return the abstention of trusted passages that failed, or raise it."""
    why = f"the trusted passages gave no answer: {heard.report.error}. Nobody else was asked"
    answer = replace(answer, warnings=(*answer.warnings, why))
    if settings.when_trusted_fails == "abstain":
        return answer
    raise TrustedError(why, answer) from (None if heard.response is None else heard.response.cause)


def _as_object(answer: RobustAnswer, settings: MethodSettings) -> Steps[RobustAnswer]:
    """Have the answer put into an object by a call that reads it, the question and nothing else."""
    prompt = (settings.prompts.object or OBJECT_PROMPT).render(agreed=answer.text, query=answer.query)
    answer = replace(answer, model_calls=answer.model_calls + 1, evidence={**answer.evidence, "agreed": answer.text})
    try:
        said = yield from ask_final(prompt, getattr(settings, "cut_replies", "abstain"), shown=False)
    except ModelError as error:
        why = f"abstained: the call that puts the answer into an object failed ({printable(str(error), 200)})"
        return answer.withheld(why)
    return replace(answer, text=said.text or "")


def _beside(answer: RobustAnswer, shelf: TrustedReport) -> RobustAnswer:
    """Return the others' answer with the report of the trusted passages, which come first where places are counted."""
    first = len(shelf.passage_ids)
    sources = tuple(replace(g, positions=tuple(first + place for place in g.positions)) for g in answer.sources)
    return replace(answer, trusted=shelf, sources=sources)


def certificate_of_trust(
    inputs: PlanInput, settings: MethodSettings, question: Question, certify_others: Asking[tuple[Findings, ...]]
) -> Asking[tuple[Findings, ...]]:
    """Return the plan of a certificate: a trusted answer has one possible text, and a silent shelf those of the others.

    Raises:
        TrustedError: the trusted passages failed.
    """

    def relay(request: Any) -> Steps[Reply]:
        return None if isinstance(request, Emit) else (yield request)

    heard = yield from relayed(_heard(inputs, settings), relay)
    shelf, calls = heard.report, 0 if heard.response is None else 1
    if shelf.status == "failed":
        raise TrustedError(f"the trusted passages gave no answer: {shelf.error}", None)
    if shelf.status in ("silent", "empty"):
        found = yield from certify_others
        return tuple(replace(each, model_calls=(each.model_calls or 0) + calls) for each in found)
    [score] = yield ByMetric((heard.text,))
    sizes = [Findings(size, (), model_calls=calls) for size in question.sizes]
    for each in sizes:
        each.add(heard.text, score, "the trusted passages decide it", 0)
    return tuple(sizes)


class _SharedWords:
    """The words of some passages, against which replies to a question about them are held.

    The words of the question are left out, as a reply repeats them whether it was read or made up; so are small words
    and a yes or no, which the passages say in other words.
    Nothing is told of another language than the question's, nor of one that is written without spaces.
    """

    def __init__(self, question: str, passages: str) -> None:
        read = passages[:_LOOKED_AT]
        language = language_of(question)
        self._is_told = language == language_of(read) and language is not None and language not in _UNSPACED
        self._language = language
        self._left_out = frozenset(plain_words(question).split()) | stop_words(language or "") | VERDICTS
        self._known = frozenset(map(_stem, plain_words(read).split())) if self._is_told else frozenset()

    def may_be_in(self, reply: str) -> bool:
        """True unless the reply has content words, none of which the passages have: then it was likely made up."""
        if not self._is_told or language_of(reply) not in (None, self._language):
            return True
        return not self._content(reply) or self.are_in(reply)

    def are_in(self, beginning: str) -> bool:
        """True if the beginning of a reply has a content word of the passages, or nothing is told of it."""
        return not self._is_told or any(_stem(word) in self._known for word in self._content(beginning))

    def _content(self, text: str) -> list[str]:
        return [word for word in plain_words(text).split() if word not in self._left_out]


def _stem(word: str) -> str:
    return word[:_STEM] if word.isalpha() else word
