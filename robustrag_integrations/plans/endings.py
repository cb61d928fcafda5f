"""The last steps of every plan: late warnings, abstention below a minimum radius, determinism, links, markers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import ANSWERING, RobustAnswer
from robustrag_integrations.answers.determinism import Determinism, Promise, Repeats
from robustrag_integrations.answers.links import links_in
from robustrag_integrations.errors import ModelError, TooFewVotesError
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import grouping_warnings, retold, tell_of_copies
from robustrag_integrations.plans.asking import report
from robustrag_integrations.plans.requests import Ask, Emit, Plan, Relay, Request, relayed
from robustrag_integrations.prompts import ABSTENTION

_LINKS = 3  # that a warning names


def with_late_caveats(plan: Plan, caveats: Callable[[], Iterable[str]]) -> Plan:
    """Wrap a plan: its answer carries the model's caveats, some known only after it was asked.

    A caveat that no longer holds is dropped: that temperature 0 was asked for, say, of a model that then refused it.
    """
    early = tuple(caveats())
    answer = yield from plan
    others = [warning for warning in answer.warnings if warning not in early]
    return answer.changed(warnings=tuple(dict.fromkeys((*caveats(), *others))))


def with_report_of_failure(plan: Plan, query: str, defense: str, settings: Callable[[], Mapping[str, Any]]) -> Plan:
    """Wrap a plan: its `ModelError` carries a report, an abstention with every group's outcome."""
    try:
        return (yield from plan)
    except ModelError as error:
        error.robustness = RobustAnswer(
            text=ABSTENTION,
            radius=0,
            radius_verbatim=0,
            abstained=True,
            query=query,
            defense=defense,
            groups=error.groups,
            warnings=(printable(f"no answer: {error}", 500),),
            settings=settings(),
            model_calls=len(error.groups),
        )
        raise


def with_determinism(
    plan: Plan,
    promise: Promise | None,
    repeats: Callable[[], Repeats],
    *,
    accept_sampling: bool = False,
    min_radius: int | Mapping[str, int] = 0,
) -> Plan:
    """Wrap a plan: its answer says whether its model is reproducible, and what its radius promises if not.

    The model's reproducibility is looked up at the end: some of it is known only after the first call.
    """
    answer = yield from plan
    known = repeats()
    found = Determinism.of(
        known,
        promise,
        radius=answer.radius,
        whole=answer.whole,
        unit=answer.radius_unit,
        acknowledged=accept_sampling,
        min_radius=min_radius,
    )
    if accept_sampling or not known.in_doubt:
        return answer.changed(determinism=found)
    doubt = f"{known.caveat}; what holds of this one is in determinism"
    return answer.changed(determinism=found, warnings=(*answer.warnings, doubt))


def too_few_groups(
    groups: Sequence[PassageGroup],
    rules: VoteRules,
    query: str,
    defense: str,
    settings: Mapping[str, Any],
    warnings: Sequence[str],
) -> Plan:
    """Abstain without asking anything, as there are fewer groups than `rules.min_groups`.

    Raises:
        TooFewVotesError: with `below="raise"`.
    """
    why = f"abstained: {count_of(len(groups), 'group')}, below min_groups={rules.min_groups}. Retrieve more sources"
    answer = RobustAnswer(
        text=ABSTENTION,
        radius=0,
        abstained=True,
        query=query,
        defense=defense,
        groups=tuple(report(group) for group in groups),
        warnings=(*warnings, *grouping_warnings(groups, rules.by), why),
        settings={**settings, **rules.as_dict()},
        radius_unit=rules.unit_of(groups),
    )
    _refuse(rules, why, answer)
    yield Emit(answer.text)
    return answer


def with_sole_source(plan: Plan) -> Plan:
    """Wrap a plan: its answer says if it rests on one of several sources alone."""
    answer = yield from plan
    if answer.sole_source is None or len(answer.groups) == 1:
        return answer
    copies = sum(group.status == "copy" for group in answer.groups)
    others = sum(group.status in ANSWERING for group in answer.groups) - 1
    silent = len(answer.groups) - 1 - copies - others
    said = f"rests on {printable(answer.sole_source, 80)} alone"
    if silent:
        said += f"; {count_of(silent, 'other source')} {'is' if silent == 1 else 'are'} silent"
        said += ", none contradicts" * (not others)
    if copies:
        said += f"; {count_of(copies, 'other')} {'holds' if copies == 1 else 'hold'} the same text"
    return answer.changed(warnings=(*answer.warnings, said))


def with_retellings(plan: Plan, groups: Sequence[PassageGroup]) -> Plan:
    """Wrap a plan: its answer says how many of the sources that say it tell it in nearly the same words."""
    answer = yield from plan
    telling = {g.index for g in answer.groups if g.status in ("supports", "variant") and g.words}
    if answer.abstained or len(telling) < 2 or not tell_of_copies(answer.warnings):
        return answer
    alike = retold([group for group in groups if group.index in telling])
    if alike < 2:
        return answer
    return answer.changed(evidence={**answer.evidence, "retold": {"alike": alike, "of": len(telling)}})


def for_prompts(plan: Plan, *, markers: bool = False) -> Plan:
    """Wrap a plan: its answer is one that other prompts may hold (`RobustAnswer.for_prompt`); it comes in one piece.

    Args:
        plan: an answer's.
        markers: show its `marked_text` (`with_markers`).
    """
    answer = (yield from _held_back(plan)).for_prompt()
    yield Emit(answer.marked_text if markers else answer.text)
    return answer


def with_rules(plan: Plan, rules: VoteRules, groups: Sequence[PassageGroup]) -> Plan:
    """Wrap a plan: an answer whose radius is below `rules.min_radius` becomes an abstention.

    Nothing is shown before the radius is known: the plan's pieces are held back, and its final call is not streamed.
    The abstention has no radius of its own, since an attacker may raise that of the withheld answer; the latter is in
    the evidence.

    Raises:
        TooFewVotesError: with `below="raise"`.
    """
    answer = yield from (_held_back(plan) if rules.min_radius else plan)
    if (told := rules.as_dict()) or rules.unit_of(groups) != answer.radius_unit:
        answer = replace(answer, settings={**answer.settings, **told}, radius_unit=rules.unit_of(groups))
    if answer.tier_budgets is not None:
        tiers = rules.tiers_of(answer.tier_sizes)
        answer = answer.changed(tier_budgets=tuple({t: b.get(t, 0) for t in tiers} for b in answer.tier_budgets))
    if not rules.min_radius:
        return answer
    if not answer.abstained and not _is_enough(answer, rules.min_radius):
        radius = answer.radius_by_tier or answer.radius if isinstance(rules.min_radius, Mapping) else answer.radius
        why = (
            f"abstained: the answer's radius is {radius}, below min_radius={rules.min_radius}. Do not ask again "
            "until it is larger: an attacker who can sway single runs then chooses which one counts. Retrieve more "
            "sources"
        )
        answer = answer.withheld(why)
        _refuse(rules, why, answer)
    elif not answer.abstained:
        kept = (
            f"min_radius={rules.min_radius}: an attacker within the radius may cause an abstention, but no other "
            "answer than this one"
        )
        answer = replace(answer, warnings=(*answer.warnings, kept))
    yield Emit(answer.text)
    return answer


def _is_enough(answer: RobustAnswer, least: int | Mapping[str, int]) -> bool:
    if isinstance(least, Mapping):
        return answer.holds({tier: count for tier, count in least.items() if tier in answer.tier_sizes})
    return answer.radius >= least


def _refuse(rules: VoteRules, why: str, answer: RobustAnswer) -> None:
    if rules.below == "raise":
        raise TooFewVotesError(why.removeprefix("abstained: "), answer)


def unsupported_links(answer: RobustAnswer, groups: Sequence[PassageGroup]) -> tuple[str, ...]:
    """Return the addresses in an answer that no passage of a supporting group has, compared to the letter.

    Where nothing is cited (`answer.citations`), such as in an answer of vanilla RAG or of decoding aggregation, any
    group that does not fail, abstain or lose counts as supporting.

    Args:
        answer: a defence's answer.
        groups: the groups that it was made from.
    """
    links = () if answer.abstained else links_in(answer.text)  # what an abstention tells has none but sources
    if not links:
        return ()
    by_place = {place: p.text for group in groups for place, p in zip(group.ranks, group.passages, strict=False)}
    by_index = {group.index: group.text for group in groups}
    cited = {citation.group for citation in answer.citations}
    known: set[str] = set()
    for group in answer.groups:
        if group.index in cited if cited else group.status in ("supports", "variant"):
            texts = [by_place[p] for p in group.positions if p in by_place] or [by_index.get(group.index, "")]
            known.update(link for text in texts for link in links_in(text))
    return tuple(link for link in links if link not in known)


def with_link_check(plan: Plan, groups: Sequence[PassageGroup]) -> Plan:
    """Wrap a plan: its answer warns of links and images that no supporting passage has.

    Whatever shows an answer as Markdown or HTML fetches its images and offers its links; an address that carries words
    of the conversation sends them away. A link that no passage has was made up, or is what an attacker ordered.
    """
    answer = yield from plan
    links = unsupported_links(answer, groups)
    return replace(answer, warnings=(*answer.warnings, link_warning(links))) if links else answer


def link_warning(links: Sequence[str]) -> str:
    """Word the warning of an answer with such links."""
    named = ", ".join(printable(link, 120) for link in links[:_LINKS])
    more = f" and {len(links) - _LINKS} more" if len(links) > _LINKS else ""
    return (
        f"the answer has a link or image that no supporting passage has: {named}{more}; do not fetch or render "
        "it, it may carry text of this conversation away"
    )


def with_markers(plan: Plan) -> Plan:
    """Wrap a plan: the answer's `marked_text` is shown; its `text` stays without markers.

    The places of markers are known once the answer is complete, so it is shown in one piece.
    """
    answer = yield from _held_back(plan)
    yield Emit(answer.marked_text)
    return answer


def _held_back(plan: Plan) -> Plan:
    """Wrap a plan: its pieces are dropped, and its answer stays the same."""

    def relay(request: Request) -> Relay:
        if isinstance(request, Emit):
            return None
        return (yield replace(request, shown=False) if isinstance(request, Ask) else request)

    return relayed(plan, relay)
