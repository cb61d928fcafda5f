"""The plan of keyword aggregation (paper, section III-B, Algorithm 1).

ask every group alone                                 line 5
read the keys of each reply                           line 7, `agreement/reader.py`
count, and keep what enough groups say                lines 8-13, `counting.py`
show the reply of the only group that answers         `agreement/sole.py`; not with `final="always"`
show the kept keys in the words of the groups         `kept.py`
ask again with these alone, where they have to be     lines 14-15, `answer_of`
put together
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from robustrag_integrations._util.redaction import redacted
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.defenses.agreement.agreed import are_invented
from robustrag_integrations.defenses.agreement.asking import ask_for_keys, settled
from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.agreement.reports import (
    counts_shown,
    dissent_warnings,
    invention_warning,
    unread_warnings,
)
from robustrag_integrations.defenses.agreement.sole import sole_reply, votes_to_alone
from robustrag_integrations.defenses.agreement.statuses import group_reports
from robustrag_integrations.defenses.agreement.tally import KeywordTally
from robustrag_integrations.defenses.agreement.tiers import proven_budgets
from robustrag_integrations.defenses.keyword.counting import tally_keywords
from robustrag_integrations.defenses.keyword.kept import Kept, worded
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.errors import ModelError
from robustrag_integrations.grouping.passages import GroupBy, PassageGroup
from robustrag_integrations.grouping.warnings import FEW, grouping_warnings
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import ask_final, calls_made, naming_groups, truncation_warnings
from robustrag_integrations.plans.requests import Emit, Plan, Reply, Request
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import ending_warnings, final_answer, reply_warnings


class Wording(NamedTuple):
    """The text that words the kept keywords.

    Attributes:
        text: the text to show.
        by: its author: `agreed` words alone, the `model`, or the sole `source`.
        warning: a note on it for the reader.
    """

    text: str
    by: str
    warning: str | None = None


def keyword_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: KeywordSettings,
    *,
    group_by: GroupBy | None = None,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Run Algorithm 1: ask each group alone, keep the keys that enough of them share, and word these."""
    settings = yield from settled(settings)
    reader = settings.reader.for_question(query)
    readings = yield from ask_for_keys(groups, settings, reader, query)
    responses, replies = [r.response for r in readings], [r.found for r in readings]
    weights = [g.weight for g in groups]
    unit = "groups" if set(weights) <= {1} else "votes"
    said = [None if reply is None else reply.keys for reply in replies]
    tally = tally_keywords(said, settings.rule, weights)
    kept = Kept.of(tally.retained, replies, weights, as_counted=settings.as_counted)
    sole = sole_reply(readings, weights, tally.retained) if settings.shows_sole else None
    if sole:
        kept = replace(kept, words=sole.words if sole.text else ())
    invented = kept.words if not sole and are_invented(kept.words) else ()
    if invented:
        kept = replace(kept, words=())
    asks = not sole and settings.asks_for(len(kept.words))
    verbatim = 0 if sole or invented else kept.radius(tally, settings.rule, verbatim=True)
    radius = verbatim if asks or sole or invented else kept.radius(tally, settings.rule, verbatim=False)
    final, aloud, streamed_aloud = None, 0, False
    if sole:
        wording = Wording(sole.text or ABSTENTION, "source")
        yield Emit(wording.text)
    elif asks:
        aloud = sum(weight for response, weight in zip(responses, weights, strict=True) if response.aloud)
        prompt = settings.final_prompt(query, kept.shown)
        with naming_groups(groups, responses):
            final, wording = yield from _ask_final(prompt, settings, reader, kept, whole=aloud > 0)
        # A stream that did not wait for all of it may end in an error.
        streamed_aloud = settings.streams and aloud > 0 and final.aloud
        radius = min(radius, aloud - 1) if streamed_aloud else radius
    else:
        wording = Wording(kept.text or ABSTENTION, "agreed")
        yield Emit(wording.text)
        if settings.shows_sole and not kept.words:
            radius = min(radius, votes_to_alone(replies, weights) - 1)

    def holding(votes: TierVotes) -> Holding:
        """Tell for each budget of the votes whether the answer stays."""
        if sole or invented or (settings.shows_sole and not kept.words):  # an abstention: one group may become alone
            return votes.nothing
        holds = kept.holding(tally, settings.rule, votes, verbatim=asks)
        return holds & votes.some_left([r.aloud for r in responses]) if streamed_aloud else holds

    abstained = not kept.words or reader.abstains(wording.text)
    shown = [] if abstained else _in_answer(wording, kept, reader)
    quorum = settings.quorum.radius(responses, weights)
    reports = group_reports(groups, readings, shown, tally.counts)
    answer = RobustAnswer(
        text=wording.text,
        radius=max(0, min(radius, quorum)),
        radius_verbatim=max(0, min(radius, verbatim, quorum)),
        tier_budgets=proven_budgets(groups, weights, responses, settings.quorum, holding),
        abstained=abstained,
        query=query,
        defense="keyword",
        groups=sole.in_reports(reports) if sole else reports,
        settings=settings.as_dict(),
        margin_unit=unit,
        evidence=_evidence(tally, kept, wording, settings),
        model_calls=calls_made(readings) + asks,
        reasoning_chars=sum(r.reasoning_chars for r in (*responses, *([final] if final else []))),
    )
    warnings = (
        *model_warnings,
        *grouping_warnings(groups, group_by),
        *([] if sole else _threshold_warnings(tally, len(groups), settings)),
        *unread_warnings(replies),
        *([] if sole else _agreement_warnings(tally, settings, unit)),
        *dissent_warnings(answer.dissent, sum(reply is not None for reply in replies)),
        *([invention_warning(invented)] if invented else ()),
        *filter(None, [wording.warning]),
        *truncation_warnings([r.truncated for r in responses]),
        *reply_warnings(responses),
        *(ending_warnings(final, responses) if final else ()),
        *filter(None, [final.note if final else None]),
    )
    return answer.changed(warnings=warnings)


def _ask_final(
    prompt: Any, settings: KeywordSettings, reader: ReplyReader, kept: Kept, *, whole: bool
) -> Generator[Request, Reply, tuple[Response, Wording]]:
    """Make the final call; show its reply as it streams, or at its end if it may give way to the kept words."""
    if settings.streams:
        final = yield from ask_final(prompt, settings.reader.cut_replies, whole=whole)
        return final, answer_of(final, kept, settings, reader)
    try:
        final = yield from ask_final(prompt, settings.reader.cut_replies, shown=False)
    except ModelError as error:
        final = Response(None, error=str(error))
    wording = answer_of(final, kept, settings, reader)
    yield Emit(wording.text)
    return final, wording


def answer_of(final: Response, kept: Kept, settings: KeywordSettings, reader: ReplyReader) -> Wording:
    """Return the text of a final reply, or the kept words in its place: a function of these two alone.

    Args:
        final: the reply as it counts (`final_answer`); a failure has no text.
    """
    if settings.final == "always":
        return Wording(final.text or ABSTENTION, "model")
    if final.text is None:
        why = redacted(" ".join((final.error or "no text").split()))
        return Wording(kept.text, "agreed", f"the kept words are the answer: {why}")
    if settings.words_own:
        own = worded(final, kept, reader)
        return Wording(kept.text, "agreed") if own is None else Wording(own, "model")
    if reader.abstains(final.text):
        return Wording(kept.text, "agreed", "the kept words are the answer, as the final call abstained")
    words = reader.runs.tokens(final.text)
    if settings.task == "short_answer" and not any(words & reader.runs.tokens(each.form) for each in kept.words):
        return Wording(final.text, "model", "the final call's answer holds none of the kept words; check it")
    return Wording(final.text, "model")


def final_text(response: Response, kept: Kept, settings: KeywordSettings, reader: ReplyReader) -> str | None:
    """Return the answer that inference makes of a final response; None where it raises."""
    try:
        final = final_answer(response, settings.reader.cut_replies)
    except ModelError as error:
        if settings.streams:
            return None
        final = Response(None, error=str(error))
    return answer_of(final, kept, settings, reader).text


def _in_answer(wording: Wording, kept: Kept, reader: ReplyReader) -> list[Any]:
    """Return the kept words that stand in the answer; all of them if it holds none."""
    if wording.by != "model":
        return list(kept.words)
    said = reader.keys_of(wording.text)
    return [each for each in kept.words if said is not None and each.key in said.keys] or list(kept.words)


def _threshold_warnings(tally: KeywordTally, groups: int, settings: KeywordSettings) -> list[str]:
    """Warn of a threshold that one group reaches; of one group or two that is said already."""
    if groups >= FEW and tally.answering and tally.mu <= 1:
        return [
            f"with {count_of(tally.answering, 'answering group')} the threshold is {float(tally.mu):g}: one group "
            f"alone decides what is kept; {settings.rule.to_keep_less}, or retrieve more passages"
        ]
    return []


def _agreement_warnings(tally: KeywordTally, settings: KeywordSettings, unit: str) -> list[str]:
    """Warn if nothing was agreed on, and name the word that most groups share."""
    if tally.answering <= 1 or tally.retained:
        return []
    needed, most = math.ceil(tally.mu), max(tally.counts.values(), default=0)
    if most < 2:
        return [f"no two of the {tally.answering} answering {unit} say the same"]
    likeliest = max((w for w, c in tally.counts.items() if c == most), key=lambda w: (len(w), w))
    return [
        f"no answer reaches the {needed} {unit} that it takes: {likeliest[:60]!r} has {most}; "
        f"{settings.rule.to_keep_more}, or use aggregation='consensus'"
    ]


def _evidence(tally: KeywordTally, kept: Kept, wording: Wording, settings: KeywordSettings) -> dict[str, Any]:
    return {
        "counts": counts_shown(tally.counts, tally.retained, kept.replies),
        "distinct_keywords": len(tally.counts),
        "threshold": float(tally.mu),
        "rule": settings.rule.in_words,
        "retained": list(kept.shown) if wording.by != "source" else [wording.text] * bool(kept.words),
        "worded_by": wording.by,
        **({"support": min(tally.counts[word.key] for word in kept.words)} if kept.words else {}),
        "answering": tally.answering,
    }
