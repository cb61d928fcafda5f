"""The steps that all plans share: ask every source in isolation, count failures as abstentions, hold the quorum.

1. `ask_sources` yields one `Ask` with a prompt per source (Algorithm 1, line 5); where early stopping is allowed,
   replies may be missing once the answer is `decided`.
2. `read_response` reads each reply for itself: whatever it makes a reader raise costs its own source alone.
3. Too few successes raise `QuorumError`; of sources that share a text and a reply, the first one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import INTERRUPTS, ModelError, QuorumError
from robustrag_integrations._util.redaction import in_one_line, redacted
from robustrag_integrations._util.words import some_of
from robustrag_integrations.answers.answer import Dissent, RobustAnswer, SourceReport
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.answers.telling import shown_names
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.models.base import BLANK, Model, Response
from robustrag_integrations.plans.requests import Ask, Emit, Steps
from robustrag_integrations.replies.reading import CutReplies, counted, final_answer
from robustrag_integrations.replies.streams import RETRACTED
from robustrag_integrations.text.prompts import ABSTENTION, Prompt
from robustrag_integrations.text.reasoning import parts_of

Found = TypeVar("Found")

_MOST_NAMED = 3  # dissenting answers in a warning


@dataclass(frozen=True)
class PlanInput:
    """One question, as every method's plan takes it.

    Attributes:
        caveats: known weaknesses of the answer, in words; first among its warnings.
        model: what is asked, of which the plan looks up warnings and determinism at the end, when they are known.
        accept_sampling: the user knows that the model may sample: no warning repeats it.
        markers: True if the text shown has `[1]` markers (`RobustAnswer.marked_text`).
        for_prompt: True if the answer is one that other prompts may hold (`RobustAnswer.for_prompt`).
        abstention: the text of an abstention; None: the model's words, or the default.
        conversation: True if prompts show, or the question comes from, a conversation with words of assistants or
            tools that no trusted source decided: the answer is no more to be relied on than they are.
        objects: True if the model of the final call answers with an object.
        method, settings, promise, isolates: the method's name, its settings, JSON-safe, and traits of its `Defense`.
    """

    query: str
    sources: tuple[Source, ...] = ()
    choices: Sequence[str] | None = None
    rules: VoteRules = field(default_factory=VoteRules)
    caveats: tuple[str, ...] = ()
    model: Model = field(default_factory=Model)
    accept_sampling: bool = False
    markers: bool = False
    for_prompt: bool = False
    abstention: str | None = None
    conversation: bool = False
    objects: bool = False
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    promise: Promise | None = None
    isolates: bool = True

    def answer(self, text: str | None, *, abstained: bool | None = None, **found: Any) -> RobustAnswer:
        """Build a method's answer: an abstention where there is no text. `finish` adds what all methods share."""
        values = {"radius": 0, "settings": {**self.settings, **self.rules.named}, **found}
        abstained = not text if abstained is None else abstained
        text = (self.abstention if abstained else None) or text or ABSTENTION
        return RobustAnswer(text, abstained=abstained, query=self.query, method=self.method, **values)


def check_query(query: str) -> None:
    """Raise unless the query is a non-empty text."""
    if not isinstance(query, str):
        raise TypeError(f"the query must be a str, got {type(query).__name__}: {query!r:.60}")
    if not query.strip():
        raise ValueError("the query is empty; ask something")


def needed_of(sources: int, quorum: float) -> int:
    """Return the smallest number of sources whose calls must succeed, by the share of all; at least one."""
    return max(1, math.ceil(quorum * sources - 1e-9)) if sources else 0


def spare_calls(responses: Sequence[Response], sources: int, quorum: float) -> int:
    """Return how many of those that succeeded can fail before the quorum is missed; below 0 if it is missed."""
    return sum(response.text is not None for response in responses) - needed_of(sources, quorum)


@dataclass(frozen=True)
class Reading(Generic[Found]):
    """The content read from one source's response: its keywords, say; None for an abstention or a failure.

    Attributes:
        response: as it counts: a failure if it could not be read.
    """

    response: Response
    found: Found | None

    @property
    def is_cut(self) -> bool:
        """True if the reply reached its limit of tokens and does not count: it may say anything, and is no silence."""
        return self.response.abstains and self.response.finish == "length" and self.response.refusal is None


Outcome: TypeAlias = Any  # what a method counted: a `Counted` of `counting.py`
Count = Callable[[Sequence[Any], int], Outcome]  # what is found in each source, and how many may say anything yet


class Heard(Generic[Found]):
    """What the sources said.

    Attributes:
        may_stop: True if the sources need not be waited for once the answer is decided.
        responses: as they count.
        found: what was found in each response; None for one that counts for nothing.
        pending: the number of sources that may still say anything.
        cut: the number of sources whose replies were cut, and do not count.
        spare: the number of sources that can fail before the quorum is missed, and no answer comes at all; below 0 if
            it is missed.
    """

    def __init__(
        self,
        sources: tuple[Source, ...],
        readings: Sequence[Reading[Found]],
        quorum: float = 0.5,
        may_stop: bool = False,
    ) -> None:
        self.sources, self.readings, self.may_stop = sources, readings, may_stop
        self.responses = [reading.response for reading in readings]
        self.found = [reading.found for reading in readings]
        self.pending = sum(r.skipped_reason is not None for r in self.responses) if may_stop else 0
        self.cut = sum(reading.is_cut for reading in readings)
        self.spare = spare_calls(self.responses, len(sources), quorum)

    def radii(self, outcome: Outcome) -> tuple[int, int]:
        """The radii of an outcome and of its letters, of which neither outlives the quorum; -1 for what is open."""
        radius = verbatim = outcome.radius(self.pending)
        if outcome.has_wordings:
            verbatim = outcome.radius(self.pending, verbatim=True)
        return min(radius, self.spare), min(radius, verbatim, self.spare)

    def reports(self, said: Callable[[Any], Mapping[str, Any]]) -> tuple[SourceReport, ...]:
        """One report per source; `said` gives its fields for what a source said."""
        return tuple(
            report(source, r.response, **({"status": "cut"} if r.is_cut else {} if r.found is None else said(r.found)))
            for source, r in zip(self.sources, self.readings, strict=True)
        )


def read_response(
    response: Response,
    read: Callable[[str], Found | None],
    cut_replies: CutReplies = "abstain",
) -> Reading[Found]:
    """Read one response's answer; whatever `read` raises over it makes its source fail, and no other.

    A passage can be written so that a keyword extractor, say, raises on the response about it. That must cost its own
    source alone. Interrupts and cancellations pass.
    """
    response = counted(response, cut_replies)
    if response.text is None or response.abstains:
        return Reading(response, None)
    try:
        return Reading(response, read(response.text))
    except INTERRUPTS:
        raise
    except BaseException as error:
        reason = f"its response could not be read: {in_one_line(error)}"
        return Reading(replace(response, text=None, error=reason), None)


def read_replies(
    sources: Sequence[Source], replies: Sequence[Response], read: Callable[[Response], Reading[Found]]
) -> list[Reading[Found]]:
    """Read each source's reply, equal ones once. A source with nothing to read abstains, whatever the reply."""
    known: dict[tuple[Response, Any], Reading[Found]] = {}
    readings = []
    for source, response in zip(sources, replies, strict=True):
        if source.is_empty and not response.skipped_reason and response != BLANK:
            readings.append(Reading[Found](Response("", abstains=True, usage=response.usage), None))
            continue
        same = (response, response.logprobs)
        found = known[same] = known[same] if same in known else read(response)
        if found.response.usage is not response.usage:
            found = replace(found, response=replace(found.response, usage=response.usage))
        readings.append(found)
    return readings


def ask_sources(
    inputs: PlanInput,
    prompts: Sequence[Prompt],
    read: Callable[[Response], Reading[Found]],
    quorum: float = 0.5,
    count: Count | None = None,
) -> Steps[Heard[Found]]:
    """Ask every source its own prompt (paper, Algorithm 1, line 5), and read its reply.

    A source with nothing to read abstains, whatever the model replies to its prompt. The prompt stays among the others,
    so that no passage decides how many there are: in one batch it is read; where each is a call, it makes none.

    Args:
        count: counts what was found; None for a method that needs what all sources say.

    Raises:
        QuorumError: too many sources failed. Those that were not waited for did not succeed.
    """
    sources, rules = inputs.sources, inputs.rules
    may_stop = rules.stop_when_decided and count is not None

    def heard_in(replies: Sequence[Response]) -> Heard[Found]:
        readings = read_replies(sources, replies, read)
        return Heard(sources, readings, quorum, may_stop)

    def decided(replies: Sequence[Response]) -> bool:
        """True if the answer and its letters stay whatever the missing replies are, with a radius that is enough."""
        assert count is not None  # noqa: S101 - else nothing is decided early
        if spare_calls(replies, len(sources), quorum) < 0:
            return False
        heard = heard_in(replies)
        radius, verbatim = heard.radii(count(heard.found, heard.pending))
        return heard.spare >= 0 and verbatim >= 0 and radius >= rules.min_radius

    replies: Sequence[Response] = ()
    if prompts:
        asked = tuple(replace(p, blank=True) if g.is_empty else p for p, g in zip(prompts, sources, strict=True))
        replies = yield Ask(asked, "isolated", until=decided if may_stop else None)
    heard = heard_in(replies)
    if heard.spare < 0:
        causes = {i: redacted(r.error or "no text") for i, r in enumerate(heard.responses) if r.text is None}
        reports = tuple(map(report, sources, heard.responses))
        cause = next((r.cause for r in heard.responses if r.cause is not None), None)
        needed = needed_of(len(sources), quorum)
        error = QuorumError(needed + heard.spare, len(sources), needed, causes, reports)
        error.failed_alike = len({type(r.cause) for r in heard.responses if r != BLANK}) == 1 and cause is not None
        raise error from cause
    return heard


def ask_final(
    prompt: Prompt,
    cut_replies: CutReplies = "abstain",
    *,
    shown: bool = True,
    whole: bool = False,
    heard: Heard[Any] | None = None,
) -> Steps[Response]:
    """Ask the final question; the response has the answer that the user gets as its text (`final_answer`).

    Args:
        shown: True if the answer is shown word for word.
        whole: True if it is shown once it is complete, not in pieces.
        heard: what the sources said before, for the report of a failure.

    Raises:
        ModelError: the call failed, or the answer was cut.
    """
    try:
        [response] = yield Ask((prompt,), "final", shown, whole)
        answer = final_answer(response, cut_replies)
    except ModelError as error:
        if heard is not None:
            error.sources = tuple(map(report, heard.sources, heard.responses))
        raise
    if shown and (rest := unseen(response, answer)):
        yield Emit(rest)
    return answer


def unseen(response: Response, answer: Response) -> str:
    """Return the part of a final answer that no stream has shown: a text in place of nothing, or the mark of a cut."""
    if response.note == RETRACTED:
        return f"\n\n{answer.text}"
    seen, text = parts_of(response.text or "").answer.strip(), answer.text or ""
    return text[len(seen) :] if seen and text.startswith(seen) else text


def report(source: Source, response: Response | None = None, /, **findings: Any) -> SourceReport:
    """Build a source's report with its passages' names; it abstained or failed unless the findings say otherwise."""
    if response is not None:
        findings = {
            "response": response.text,
            "truncated": response.truncated,
            "note": response.note,
            "reasoning_chars": response.reasoning_chars,
            **findings,
        }
        if response.skipped_reason is not None:
            findings = {**findings, "status": "not_asked", "note": response.error}
        elif response.text is None:
            findings = {"status": "failed", "error": printable(redacted(response.error or "failed"), 300), **findings}
    return SourceReport(
        source.index,
        tuple(p.id or "" for p in source.passages),
        source.origins,
        positions=source.ranks,
        **findings,
    )


def truncation_warnings(truncated: Sequence[bool]) -> list[str]:
    """Warn of sources whose passages were cut to fit."""
    if not any(truncated):
        return []
    return [
        f"the passages of {sum(truncated)} of {len(truncated)} sources were cut to fit the model's context; of a file "
        "that is too long, keep fewer passages"
    ]


def dissent_warnings(dissent: Sequence[Dissent], answering: int) -> list[str]:
    """Name the sources whose replies are not the answer, with their words."""
    if not dissent:
        return []
    sources = sum(len(found.sources) for found in dissent)
    names = shown_names(origin for found in dissent for origin in found.origins)
    told = (
        f"{printable(found.text, 60)!r} ({printable(', '.join(names[o] for o in found.origins), 60)}"
        f"{', unsure' * found.unsure})"
        for found in dissent
    )
    named = some_of(told, len(dissent), _MOST_NAMED)
    return [f"{sources} of {answering} answering sources {'give' if sources != 1 else 'gives'} another reply: {named}"]
