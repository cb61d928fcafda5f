"""What all answers have in common: what may be shown before the end, and everything that is added at the end.

`answered` runs a method's plan and passes on its requests, holding back its text where more than the text decides what
is shown. `finish` then makes the answer of what the method found, in this order:

1. the radius, no larger than the quorum allows
2. the warnings: of the model, the passages, stopping early, the method's own, of cut passages, of replies
3. spending, a sole source, and `min_radius`: an answer whose radius is too small is withheld
4. the model's determinism, and links that no supporting passage has
5. for another prompt, and for an abstention with `min_radius`, nothing of what sources say beside an agreed answer
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError, TooFewVotesError
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Determinism
from robustrag_integrations.answers.links import links_in
from robustrag_integrations.answers.telling import shown_names
from robustrag_integrations.answers.usage import UNTOLD, Spending, Usage, together, told
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import grouping_warnings
from robustrag_integrations.models.base import BLANK, Distributions, Opening, Response
from robustrag_integrations.plans.asking import Heard, Outcome, PlanInput, report, truncation_warnings
from robustrag_integrations.plans.requests import Ask, Emit, Plan, Reply, Request, Steps, relayed
from robustrag_integrations.replies.reading import ending_warnings, reply_warnings

_LINKS = 3  # that a warning names


@dataclass(frozen=True)
class Draft:
    """What a method makes of the replies.

    Attributes:
        answer: its text, reports, evidence and own warnings (`PlanInput.answer`).
        heard: what the sources said, asked in isolation; None for a method that asks otherwise.
        outcome: what decides the radius; None where the answer's own stands.
        truncated: per source whether its passages were cut to fit, where they were not asked by `ask_sources`.
        final: the final response, if the answer is one.
        withheld: the reason for giving an abstention in place of the answer.
    """

    answer: RobustAnswer
    heard: Heard[Any] | None = None
    outcome: Outcome | None = None
    truncated: Sequence[bool] = ()
    final: Response | None = None
    withheld: str | None = None


def answered(inputs: PlanInput, plan: Steps[Draft]) -> Plan:
    """Run a method's plan to the whole answer; a `ModelError` has a report of an abstention and of every source.

    With `min_radius`, markers, an abstention's own text, or a model as the reader nothing is shown before the end, and
    the final call is not streamed. What the plan has not shown is shown at the end.
    """
    rules, sources = inputs.rules, inputs.sources
    unit = rules.unit_of(sources)
    if len(sources) < rules.min_sources:
        found = count_of(len(sources), "source")
        why = f"abstained: {found}, below min_sources={rules.min_sources}. Retrieve more sources"
        warnings = (*inputs.model.warnings, *inputs.caveats, *grouping_warnings(sources, rules.by), why)
        answer = inputs.answer(None, sources=tuple(map(report, sources)), warnings=warnings, radius_unit=unit)
        _refuse(rules, why, answer)
        yield Emit(answer.text)
        return answer
    holds_back = bool(rules.min_radius or inputs.markers or inputs.for_prompt or inputs.abstention)
    book, is_shown = SpendingBook(), False

    def relay(request: Request) -> Steps[Reply]:
        nonlocal is_shown
        if holds_back and isinstance(request, Emit):
            return None
        if holds_back and isinstance(request, Ask):
            request = replace(request, shown=False)
        is_shown |= isinstance(request, Emit) or (isinstance(request, Ask) and request.is_streamed)
        reply = yield request
        book.note(request, reply)
        return reply

    try:
        draft = yield from relayed(plan, relay)
    except ModelError as error:
        why = printable(f"no answer: {error}", 500)
        known: dict[str, Any] = {"sources": error.sources, "model_calls": len(error.sources), "radius_unit": unit}
        error.robustness = inputs.answer(None, warnings=(why,), **known)
        raise
    answer = finish(draft, inputs, book)
    if not is_shown:
        yield Emit(answer.shown(markers=inputs.markers, to="model" if inputs.for_prompt else "people"))
    return answer


def finish(draft: Draft, inputs: PlanInput, book: SpendingBook) -> RobustAnswer:
    """Return the answer of a draft; the module's docstring says what is added."""
    rules, sources = inputs.rules, inputs.sources
    answer, heard = draft.answer, draft.heard
    responses = [*(heard.responses if heard else ()), *([draft.final] if draft.final else ())]
    evidence = answer.evidence
    if heard is not None and heard.may_stop:
        decided_after = sum(response.skipped_reason is None for response in heard.responses)
        evidence = {**evidence, "decided_after": decided_after}
    answer = replace(
        answer,
        radius_unit=rules.unit_of(sources),
        model_calls=answer.model_calls + book.asked,
        reasoning_chars=sum(response.reasoning_chars for response in responses),
        evidence=evidence,
        warnings=_warnings(draft, inputs),
    )
    if heard is not None and draft.outcome is not None:
        radius, verbatim = (max(0, each) for each in heard.radii(draft.outcome))
        answer = replace(answer, radius=radius, radius_verbatim=verbatim)
    if draft.withheld is not None:
        answer = answer.withheld(draft.withheld)
    answer = book.entered(answer)
    if answer.sole_source is not None and len(answer.sources) > 1:
        answer = _with_sole_source(answer)
    if not answer.abstained and inputs.isolates:
        answer = _decided(answer, inputs)
    if rules.min_radius and not answer.abstained:
        answer = held_to_min_radius(answer, rules)
    known, doubts = inputs.model.repeats, []
    if not inputs.accept_sampling and (caveat := known.caveat):
        doubts.append(f"{caveat}; what holds of this one is in determinism")
    if links := unsupported_links(answer, sources):
        doubts.append(link_warning(links))
    reach = Determinism.of(
        known,
        inputs.promise,
        radius=answer.radius,
        whole=answer.whole,
        unit=answer.radius_unit,
        min_radius=rules.min_radius,
    )
    answer = replace(answer, determinism=reach, warnings=(*answer.warnings, *doubts))
    is_bare = inputs.for_prompt or (answer.abstained and bool(rules.min_radius))
    return answer.for_prompt() if is_bare else answer


def _warnings(draft: Draft, inputs: PlanInput) -> tuple[str, ...]:
    final, responses = draft.final, [] if draft.heard is None else draft.heard.responses
    said = [*inputs.model.warnings, *inputs.caveats]
    if inputs.isolates:
        said += grouping_warnings(inputs.sources, inputs.rules.by)
        heard = sum(response.skipped_reason is None for response in responses)
        if heard < len(responses):
            said.append(
                f"decided after {heard} of {len(responses)} sources: the text is the one that all would have given, "
                "whatever the others say; the radius is what was proved by then, and may depend on who answered first"
            )
    said += [*draft.answer.warnings, *truncation_warnings(draft.truncated or [r.truncated for r in responses])]
    said += reply_warnings(responses, inputs.model.limit)
    if final is not None:
        said += [*ending_warnings(final, responses), *filter(None, [final.note])]
    return tuple(dict.fromkeys(said))


def _with_sole_source(answer: RobustAnswer) -> RobustAnswer:
    statuses = Counter(source.status for source in answer.sources)
    silent = statuses["abstained"]
    sole = next(source for source in answer.sources if source.status == "supports")
    said = f"rests on {', '.join(shown_names(sole.origins or sole.passage_ids).values())} alone"
    if silent:
        said += f"; {count_of(silent, 'other source')} {'is' if silent == 1 else 'are'} silent"
        said += ", none contradicts" * (silent == len(answer.sources) - 1)
    return replace(answer, warnings=(*answer.warnings, said))


def _decided(answer: RobustAnswer, inputs: PlanInput) -> RobustAnswer:
    """Return the answer with who decided it; a conversation that anybody may have written decides more than votes."""
    if inputs.conversation:
        return replace(answer, decided_by="conversation", radius=0, radius_verbatim=0)
    alone = answer.sole_source is not None or answer.evidence.get("support") == 1
    return replace(answer, decided_by="sole_source" if alone else "votes")


def held_to_min_radius(answer: RobustAnswer, rules: VoteRules) -> RobustAnswer:
    """Return an abstention where the radius is too small; it has none, as an attacker may raise the withheld one."""
    least = rules.min_radius
    if answer.decided_by == "trusted":
        return answer
    if answer.meets(least):
        kept = (
            f"min_radius={least}: an attacker within the radius may cause an abstention, but no other answer than "
            "this one"
        )
        return replace(answer, warnings=(*answer.warnings, kept))
    why = (
        f"abstained: the answer's radius is {answer.radius}, below min_radius={least}. Do not retry "
        "until it is larger: an attacker who can sway single runs then chooses which one counts. Retrieve more "
        "sources"
    )
    answer = answer.withheld(why)
    _refuse(rules, why, answer)
    return answer


def _refuse(rules: VoteRules, why: str, answer: RobustAnswer) -> None:
    if rules.below == "raise":
        raise TooFewVotesError(why.removeprefix("abstained: "), answer)


def unsupported_links(answer: RobustAnswer, sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the addresses in an answer that no passage of a supporting source has, compared to the letter.

    Whatever shows an answer as Markdown or HTML fetches its images and offers its links; an address that carries words
    of the conversation sends them away. A link that no passage has was made up, or is what an attacker ordered. Where
    nothing is cited, as in vanilla RAG or decoding, any source that does not fail, abstain or lose supports.
    """
    links = () if answer.abstained else links_in(answer.text)  # what an abstention tells has none but sources
    if not links:
        return ()
    by_place = {place: p.text for source in sources for place, p in zip(source.ranks, source.passages, strict=False)}
    by_index = {source.index: source.text for source in sources}
    cited = {citation.source for citation in answer.citations}
    known: set[str] = set()
    for source in answer.sources:
        if source.index in cited if cited else source.status in ("supports", "variant"):
            texts = [by_place[p] for p in source.positions if p in by_place] or [by_index.get(source.index, "")]
            known.update(link for text in texts for link in links_in(text))
    return tuple(link for link in links if link not in known)


def link_warning(links: Sequence[str]) -> str:
    """Word the warning of an answer with such links."""
    named = ", ".join(printable(link, 120) for link in links[:_LINKS])
    more = f" and {len(links) - _LINKS} more" if len(links) > _LINKS else ""
    return (
        f"the answer has a link or image that no supporting passage has: {named}{more}; do not fetch or render "
        "it, it may carry text of this conversation away"
    )


@dataclass
class SpendingBook:
    """The calls, rounds and tokens of one answer; replies are counted as they came."""

    asked: int = 0
    _rounds: int = 0
    _sources: dict[int, list[Usage]] = field(default_factory=dict)
    _shared: list[Usage] = field(default_factory=list)
    _session: Distributions | None = None

    def note(self, request: Request, reply: Reply) -> None:
        """Enter a request and its reply."""
        if isinstance(request, Ask):
            asked = {i: r for i, r in enumerate(reply) if r.skipped_reason != "not_asked" and r != BLANK}
            self.asked += len(asked)
            self._rounds += 1
            if request.role == "isolated":
                for source, response in asked.items():
                    self._sources.setdefault(source, []).append(response.usage)
            else:
                self._shared += [response.usage for response in asked.values()]
        elif not isinstance(request, Emit):
            self._rounds += 1
            if isinstance(reply, (Opening, Distributions)):
                self._session = reply.distributions if isinstance(reply, Opening) else reply

    def entered(self, answer: RobustAnswer) -> RobustAnswer:
        """Return the answer with its spending, in all and per source."""
        sources = {source: together(usages) for source, usages in self._sources.items()}
        calls = [usage for usages in (*self._sources.values(), self._shared) for usage in usages]
        shared, made, rounds = list(self._shared), len(calls), self._rounds
        if self._session is not None:
            if self._session.rounds is not None:  # a decoding plan makes no other calls
                rounds = self._session.rounds
            spent = self._session.spent or (Usage(),) * (len(self._session.sources) + 1)
            sources |= dict(enumerate(spent[:-1]))
            shared.append(spent[-1])
            calls += spent
            made += self._session.calls
        reports = tuple(
            report if (usage := sources.get(report.index, UNTOLD)) == report.usage else replace(report, usage=usage)
            for report in answer.sources
        )
        silent = sum(usage.prompt is None or usage.completion is None for usage in calls)
        spending = Spending(made, rounds, silent, together(calls), told(calls), together(shared))
        return replace(answer, sources=reports, spending=spending)
