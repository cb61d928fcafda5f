"""The plan of keyword aggregation (paper, section III-B, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.agreement.alternatives import alternatives
from robustrag_integrations.defenses.agreement.asking import ask_for_keywords
from robustrag_integrations.defenses.agreement.negations import opposed_warning
from robustrag_integrations.defenses.agreement.reader import KeywordReader
from robustrag_integrations.defenses.agreement.reports import keyword_reports
from robustrag_integrations.defenses.agreement.support import Support, supports
from robustrag_integrations.defenses.agreement.tally import KeywordTally
from robustrag_integrations.defenses.keyword.counting import keyword_radius, tally_keywords
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.shown import list_of
from robustrag_integrations.display import printable
from robustrag_integrations.grouping.passages import GroupBy, PassageGroup
from robustrag_integrations.grouping.warnings import FEW, grouping_warnings
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import (
    Reading,
    ask_final,
    naming_groups,
    truncation_warnings,
)
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import ending_warnings, reply_warnings

_EVIDENCE_KEYWORDS = 200
_RIVAL = 2  # votes that make another answer worth naming
_CONFLICT_CANDIDATES = 8  # retained keywords that are held against all others


def keyword_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: KeywordSettings,
    *,
    group_by: GroupBy | None = None,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Algorithm 1: ask every group alone, keep the keywords that enough of them share, ask again with those alone."""
    said = yield from ask_for_keywords(query, groups, settings)
    readings, reader = said.groups, said.reader
    responses, keyword_sets = [r.response for r in readings], [r.found for r in readings]
    weights = [g.weight for g in groups]
    unit = "groups" if set(weights) <= {1} else "votes"
    tally = tally_keywords(keyword_sets, settings.rule, weights)
    listed = list_of(readings, tally, weights)
    radius = keyword_radius(replace(tally, retained=listed.decisive), listed.counted, settings.rule, weights)
    conflict = _conflict(keyword_sets, tally)
    if tally.retained:
        prompt = settings.final_prompt(query, listed.shown)
        aloud = sum(weight for response, weight in zip(responses, weights, strict=True) if response.aloud)
        with naming_groups(groups, responses):
            final = yield from ask_final(prompt, settings.reader.cut_replies, whole=aloud > 0, brief=said.brief)
        if aloud and final.aloud:  # a stream that did not wait for all of it may end in an error
            radius = min(radius, aloud - 1)
    else:
        final = Response(ABSTENTION)
        yield Emit(ABSTENTION)
    text = final.text or ABSTENTION
    abstained = reader.abstains(text)
    in_answer = _keywords_of_answer(text, reader, readings)
    replies = [r.text for r in responses]
    opposed = None if abstained or conflict else opposed_warning(text, replies, keyword_sets)
    standings = supports(text, in_answer, keyword_sets, tally, settings.task, replies)
    return RobustAnswer(
        text=text,
        radius=max(0, min(radius, settings.quorum.radius(responses, weights))),
        abstained=abstained,
        query=query,
        defense="keyword",
        groups=keyword_reports(groups, readings, standings),
        alternatives=()
        if abstained or settings.task != "short_answer"
        else alternatives(in_answer, keyword_sets, standings, replies, weights, min(math.ceil(tally.mu), _RIVAL)),
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, group_by),
            *_threshold_warnings(tally, len(groups), settings),
            *_agreement_warnings(keyword_sets, tally, settings, conflict, unit),
            *_support_warnings(abstained, standings),
            *([opposed] if opposed else ()),
            *truncation_warnings([r.truncated for r in responses]),
            *reply_warnings(responses),
            *(ending_warnings(final, responses) if tally.retained else ()),
            *filter(None, [final.note]),
        ),
        settings=settings.as_dict(),
        margin_unit=unit,
        evidence=_evidence(tally, listed.shown, settings) | ({"conflict": conflict} if conflict else {}),
        model_calls=len(groups) + bool(tally.retained),
        reasoning_chars=sum(r.reasoning_chars for r in (*responses, final)),
    )


def _keywords_of_answer(
    text: str, reader: KeywordReader, readings: Sequence[Reading[frozenset[str]]]
) -> frozenset[str]:
    """The answer's keywords, counted like those of a response; none for an abstention."""
    same = (r.found for r in readings if r.response.text is not None and r.response.text.strip() == text)
    found = next(same, None)
    return found or reader.keywords_of(Response(text)).found or frozenset()


def _threshold_warnings(tally: KeywordTally, groups: int, settings: KeywordSettings) -> list[str]:
    """A threshold that one group reaches; of one group or two that is said already."""
    if groups >= FEW and tally.answering and tally.mu <= 1:
        return [
            f"with {tally.answering} answering groups the threshold is {float(tally.mu):g}: one group alone decides "
            f"what is kept; {settings.rule.to_keep_less}, or retrieve more passages"
        ]
    return []


def _support_warnings(abstained: bool, standings: Sequence[Support | None]) -> list[str]:
    if abstained or any(s is not None and s.status in ("supports", "partial") for s in standings):
        return []
    return ["no group said what the answer says: none of the agreed keywords stands in it. Check it against the groups"]


def _agreement_warnings(
    keyword_sets: Sequence[frozenset[str] | None],
    tally: KeywordTally,
    settings: KeywordSettings,
    conflict: Mapping[str, int],
    unit: str,
) -> list[str]:
    """What went unread, was not agreed on, or is contradicted."""
    found = []
    answering = sum(keywords is not None for keywords in keyword_sets)
    if unread := sum(keywords is not None and not keywords for keywords in keyword_sets):
        found.append(
            f"the extractor found no keyword in the responses of {unread} of {answering} answering groups, which "
            "count for nothing; pass extractor= with one that reads their language"
        )
    if tally.answering > 1 and not tally.retained:
        likeliest = min(tally.counts.items(), key=lambda item: (-item[1], item[0]), default=None)
        said = f"; the most frequent is {printable(likeliest[0], 40)!r} with {likeliest[1]}" if likeliest else ""
        found.append(
            f"no keyword reaches the {math.ceil(tally.mu)} {unit} that it takes{said}; if the responses below say the "
            f"same, {settings.rule.to_keep_more}, or pass extractor="
        )
    if conflict:
        (one, first), (other, second) = conflict.items()
        kept = ", and both were kept" if other in tally.retained else ""
        found.append(
            f"the groups contradict each other: {printable(one, 40)!r} is said by {first} {unit} and "
            f"{printable(other, 40)!r} by {second} others{kept}"
        )
    return found


def _conflict(keyword_sets: Sequence[frozenset[str] | None], tally: KeywordTally) -> dict[str, int]:
    """The strongest retained keyword, and the strongest other one that none of the same groups say; empty if none.

    One that is not retained counts from two votes on.
    """
    different = frozenset([keywords for keywords in keyword_sets if keywords])
    if len(different) < 2:
        return {}
    retained = frozenset(tally.retained)
    known = retained.union(w for w, count in tally.counts.items() if count >= _RIVAL)
    ranked = sorted(known, key=lambda w: (-tally.counts[w], -len(w), w))[:_EVIDENCE_KEYWORDS]
    kept = [w for w in ranked if w in retained][:_CONFLICT_CANDIDATES]
    for one in kept:
        beside = frozenset[str]().union(*(keywords for keywords in different if one in keywords))
        others = (w for w in ranked if w not in beside and tally.counts[w] <= tally.counts[one])
        if other := next(others, None):
            return {one: tally.counts[one], other: tally.counts[other]}
    return {}


def _evidence(tally: KeywordTally, shown: Sequence[str], settings: KeywordSettings) -> dict[str, Any]:
    """Counts of the most frequent keywords; a hostile response may hold tens of thousands of its own."""
    ranked = sorted(tally.counts.items(), key=lambda item: (-item[1], item[0]))
    counts = dict(ranked[: max(_EVIDENCE_KEYWORDS, len(tally.retained))])
    return {
        "counts": counts,
        "distinct_keywords": len(ranked),
        "threshold": float(tally.mu),
        "rule": settings.rule.in_words,
        "retained": list(tally.retained),
        "shown": list(shown),
        "answering": tally.answering,
    }
