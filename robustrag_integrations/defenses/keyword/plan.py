"""The plan of keyword aggregation (paper, section III-B, Algorithm 1).

ask every group alone                                 line 5
read the keywords of each reply                       line 7, `reader.py`
count, and keep what enough groups say                lines 8-13, `threshold.py`
ask again with these alone                            lines 14-15

If nothing is kept there is no answer, and no further call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.defenses.agreement.reports import dissent_warnings
from robustrag_integrations.defenses.agreement.tiers import proven_budgets
from robustrag_integrations.defenses.keyword.reader import KeywordReader
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.threshold import Tally
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import FEW, grouping_warnings
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import (
    Early,
    Reading,
    ask_final,
    ask_groups,
    calls_made,
    early_evidence,
    early_warnings,
    naming_groups,
    report,
    truncation_warnings,
    votes_counted,
)
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import ending_warnings, reply_warnings

_MOST_COUNTS = 200  # keywords in a report; a hostile reply may hold tens of thousands
_MOST_KEYWORDS = 50  # of one group


def keyword_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: KeywordSettings,
    *,
    rules: VoteRules,
    defense: str = "keyword",
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Run Algorithm 1: ask each group alone, keep the keywords that enough of them share, and let the model word these.

    The final prompt is a function of the kept keywords, and the answer of the final prompt: while the same keywords are
    kept, the answer stays to the letter.

    Args:
        defense: the method that is asked for it.
    """
    reader, quorum = settings.reader.for_question(query), settings.quorum
    votes = [group.weight for group in groups]

    def tells(tally: Tally) -> bool:
        """True if the text is what sources say, which each of them may change."""
        return settings.disagreement == "tell" and not tally.kept

    def counted(readings: Sequence[Reading[frozenset[str]]]) -> tuple[Tally, int]:
        """Return the tally of the groups that are heard, and the radius."""
        weights, pending = votes_counted(groups, readings)
        heard = [(r.found, weight) for r, weight in zip(readings, weights, strict=True) if weight]
        tally = Tally.of([found for found, _ in heard], settings.threshold, [weight for _, weight in heard])
        if tells(tally):
            return tally, -(pending > 0)
        return tally, min(tally.radius(pending), quorum.radius([r.response for r in readings], votes))

    early: Early[frozenset[str]] | None = Early.of(rules, lambda readings: counted(readings)[1])
    prompts = settings.isolated_prompts(query, groups)
    readings = yield from ask_groups(groups, prompts, quorum, reader.read, early)
    responses = [reading.response for reading in readings]
    tally, radius = counted(readings)
    weights, pending = votes_counted(groups, readings)
    asks, aloud = bool(tally.kept) and settings.final == "always", 0
    final: Response | None = None
    if asks:
        aloud = sum(weight for response, weight in zip(responses, votes, strict=True) if response.aloud)
        with naming_groups(groups, responses):
            prompt = settings.final_prompt(query, tally.kept)
            final = yield from ask_final(prompt, reader.cut_replies, whole=aloud > 0)
        if not final.aloud:
            aloud = 0
        # A stream that did not wait for all of it, as nobody reasons aloud any more, may end in an error.
        radius = min(radius, aloud - 1) if aloud else radius
        text = final.text or ABSTENTION
    else:
        text = ", ".join(tally.kept) or ABSTENTION
    heard_aloud = [response.aloud for response, weight in zip(responses, weights, strict=True) if weight]
    abstained = not tally.kept or reader.abstains(text)
    reports = _reports(groups, readings, () if abstained else _in_answer(text, tally, reader), tally)
    answer = RobustAnswer(
        text=text,
        radius=max(0, radius),
        tier_budgets=proven_budgets(
            groups,
            weights,
            responses,
            quorum,
            lambda by_tier: (
                by_tier.nothing
                if tells(tally)
                else tally.holding(by_tier, by_tier.last, pending) & (by_tier.some_left(heard_aloud) if aloud else True)
            ),
        ),
        abstained=abstained,
        query=query,
        defense=defense,
        groups=reports,
        settings=settings.as_dict(),
        margin_unit="groups" if set(votes) <= {1} else "votes",
        evidence={**_evidence(tally), **early_evidence(readings, early)},
        model_calls=calls_made(readings) + asks,
        reasoning_chars=sum(r.reasoning_chars for r in (*responses, *([final] if final else []))),
    )
    warnings = (
        *model_warnings,
        *grouping_warnings(groups, rules.by),
        *early_warnings(readings),
        *_warnings(tally, len(groups), answer.margin_unit),
        *(() if abstained else dissent_warnings(answer.dissent, sum(found is not None for found in tally.said))),
        *truncation_warnings([r.truncated for r in responses]),
        *reply_warnings(responses),
        *(ending_warnings(final, responses) if final else ()),
        *filter(None, [final.note if final else None]),
    )
    answer = answer.changed(warnings=warnings)
    answer = answer.telling("Sources agree on nothing") if tells(tally) else answer
    if not asks:
        yield Emit(answer.text)
    return answer


def _in_answer(text: str, tally: Tally, reader: KeywordReader) -> tuple[str, ...]:
    """Return the kept keywords that stand in the answer; all of them if it holds none."""
    said = reader.read(Response(text)).found or frozenset()
    return tuple(keyword for keyword in tally.kept if keyword in said) or tally.kept


def _reports(
    groups: Sequence[PassageGroup], readings: Sequence[Reading[frozenset[str]]], answer: Sequence[str], tally: Tally
) -> tuple[GroupReport, ...]:
    """One report per group: it supports the answer if it says all of its keywords, and differs if it says none.

    Args:
        answer: the kept keywords that stand in the answer; none for an abstention.
    """
    most = max((tally.counts[keyword] for keyword in answer), default=0)
    found = []
    for group, reading in zip(groups, readings, strict=True):
        if (said := reading.found) is None:
            found.append(report(group, reading.response, copy_of=reading.copy_of))
            continue
        words = tuple(keyword for keyword in answer if keyword in said)
        status = ("supports" if len(words) == len(answer) else "variant") if words else "differs"
        own = max((tally.counts.get(keyword, 0) for keyword in said), default=0)
        found.append(
            report(
                group,
                reading.response,
                status=status,
                keywords=tuple(sorted(said)[:_MOST_KEYWORDS]),
                words=words,
                margin=None if words else float(most - own),
            )
        )
    return tuple(found)


def _warnings(tally: Tally, groups: int, unit: str) -> list[str]:
    """Warn of replies without keywords, of a threshold that one group reaches, and if nothing was agreed on."""
    found = []
    answering = [keywords for keywords in tally.said if keywords is not None]
    if unread := sum(not keywords for keywords in answering):
        found.append(
            f"extractor= found no keyword in {unread} of {len(answering)} replies, which count for nothing; use one "
            "that reads their language"
        )
    if groups >= FEW and answering and tally.needed <= 1:
        found.append(
            f"with {count_of(tally.answering, 'answering group')} the threshold is {tally.needed}: one group alone "
            "decides what is kept; raise alpha= and beta=, or retrieve more passages"
        )
    if len(answering) > 1 and not tally.kept:
        likeliest = max(tally.counts, key=lambda w: (tally.counts[w], len(w), w), default="")
        most = tally.counts.get(likeliest, 0)
        found.append(
            f"no keyword has the {tally.needed} {unit} that it takes ({tally.threshold.in_words}): {likeliest[:60]!r} "
            f"has {most}"
            if most > 1
            else f"no two of the {tally.answering} answering {unit} share a keyword"
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
