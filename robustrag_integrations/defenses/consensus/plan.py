"""The plan of consensus aggregation: one round of isolated calls, no final one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.agreement.alternatives import alternatives
from robustrag_integrations.defenses.agreement.asking import ask_for_keywords
from robustrag_integrations.defenses.agreement.negations import opposed_warning
from robustrag_integrations.defenses.agreement.reports import keyword_reports
from robustrag_integrations.defenses.agreement.support import supports
from robustrag_integrations.defenses.agreement.tally import KeywordTally, votes_for
from robustrag_integrations.defenses.consensus.camps import Camps, camps
from robustrag_integrations.defenses.consensus.counting import (
    Wording,
    agreed_keywords,
    shown_text,
)
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.consensus.wording import phrases_of, wordings_of
from robustrag_integrations.display import printable
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import grouping_warnings
from robustrag_integrations.lazily import kept_property
from robustrag_integrations.plans.asking import (
    Early,
    Reading,
    calls_made,
    early_evidence,
    early_warnings,
    truncation_warnings,
    votes_counted,
)
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import reply_warnings

if TYPE_CHECKING:
    from robustrag_integrations.defenses.consensus.radius import ConsensusRadius

_EVIDENCE_KEYWORDS = 200


def consensus_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: ConsensusSettings,
    *,
    rules: VoteRules,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask every group alone; the answer is what most of the strongest support says, in words that most share."""

    def radius_of(readings: Sequence[Reading[frozenset[str]]]) -> int:
        return proved(Consensus.of(readings, settings, votes_counted(groups, readings)[0]), readings)

    def proved(found: Consensus, readings: Sequence[Reading[frozenset[str]]]) -> int:
        stays = found.radius().radius(votes_counted(groups, readings)[1])
        return min(stays, settings.quorum.radius([r.response for r in readings], [g.weight for g in groups]))

    early = Early.of(rules, radius_of)
    readings = (yield from ask_for_keywords(query, groups, settings, early)).groups
    responses = [reading.response for reading in readings]
    found = Consensus.of(readings, settings, votes_counted(groups, readings)[0])
    text = found.text or ABSTENTION
    yield Emit(text)
    keyword_sets = [reading.found for reading in readings]
    replies = [response.text for response in responses]
    standings = supports(text, found.agreed, keyword_sets, found.tally, replies=replies)
    return RobustAnswer(
        text=text,
        radius=max(0, proved(found, readings)),
        abstained=not found.text,
        query=query,
        defense="consensus",
        groups=keyword_reports(groups, readings, standings),
        alternatives=alternatives(
            found.agreed, keyword_sets, standings, replies, [g.weight for g in groups], settings.rule.min_support
        )
        if found.text
        else (),
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, rules.by),
            *early_warnings(readings),
            *_warnings(found),
            *truncation_warnings([r.truncated for r in responses]),
            *reply_warnings(responses),
        ),
        settings=settings.as_dict(),
        evidence={**found.evidence, **early_evidence(readings, early)},
        model_calls=calls_made(readings),
        reasoning_chars=sum(r.reasoning_chars for r in responses),
    )


@dataclass(frozen=True)
class Consensus:
    """What was agreed on. A group with several votes counts as several groups that say the same.

    Attributes:
        keyword_sets: per vote its keywords; None for an abstention or a failure.
        replies: per vote the text of its response.
        counts: c(w), how many groups say keyword w.
        agreed: the keywords that make the answer.
        phrases: those that do not run within another one.
        wordings: how each vote words them.
        settings: the settings.
        weights: how many votes each group has that has any, in the order of the votes.
    """

    keyword_sets: tuple[frozenset[str] | None, ...]
    replies: tuple[str | None, ...]
    counts: dict[str, int]
    agreed: frozenset[str]
    phrases: tuple[str, ...]
    wordings: tuple[Wording, ...]
    settings: ConsensusSettings
    weights: tuple[int, ...]

    @classmethod
    def of(
        cls,
        readings: Sequence[Reading[frozenset[str]]],
        settings: ConsensusSettings,
        weights: Sequence[int] | None = None,
    ) -> Consensus:
        """From the groups' readings, and how many votes each has (None: one)."""
        weighed = tuple(weights or [1] * len(readings))
        votes = [i for i, weight in enumerate(weighed) for _ in range(weight)]
        sets = tuple(readings[i].found for i in votes)
        replies = tuple(readings[i].response.text for i in votes)
        agreed = agreed_keywords(sets, settings.rule)
        phrases = phrases_of(agreed)
        worded = wordings_of([(r.response.text, r.found) for r in readings], agreed, phrases)
        wordings = tuple(worded[i] for i in votes)
        return cls(sets, replies, votes_for(sets), agreed, phrases, wordings, settings, tuple(filter(None, weighed)))

    @kept_property
    def strongest(self) -> int:
        """How many groups say the keyword that most of them say."""
        return max(self.counts.values(), default=0)

    @kept_property
    def text(self) -> str:
        """The answer; empty where nothing was agreed on."""
        return shown_text(self.phrases, self.wordings, self.strongest)

    @kept_property
    def tally(self) -> KeywordTally:
        """The counts, as reports read them: the smallest count that was enough, and what reached it."""
        share = self.settings.rule.share
        needed = max(int(share * self.strongest) + 1, self.settings.rule.min_support)
        answering = sum(said is not None for said in self.keyword_sets)
        return KeywordTally(self.counts, answering, Fraction(needed), tuple(sorted(self.agreed)))

    def radius(self) -> ConsensusRadius:
        """What proves how many groups could have said something else."""
        from robustrag_integrations.defenses.consensus.radius import ConsensusRadius

        return ConsensusRadius(
            self.keyword_sets, self.agreed, self.phrases, self.wordings, self.settings.rule, self.weights
        )

    def camps(self) -> Camps | None:
        """Two camps that share a part of the answer and differ in the rest, if there are."""
        least = self.settings.rule.min_support
        return camps(self.text, self.agreed, self.phrases, self.counts, self.keyword_sets, self.replies, least)

    @property
    def evidence(self) -> dict[str, Any]:
        """Counts of the most frequent keywords; a hostile response may hold tens of thousands of its own."""
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return {
            "counts": dict(ranked[: max(_EVIDENCE_KEYWORDS, len(self.agreed))]),
            "distinct_keywords": len(ranked),
            "retained": sorted(self.agreed),
            "answering": self.tally.answering,
        }


def _warnings(found: Consensus) -> list[str]:
    said = []
    answering = found.tally.answering
    if unread := sum(keywords is not None and not keywords for keywords in found.keyword_sets):
        said.append(
            f"the extractor found no keyword in the responses of {unread} of {answering} answering groups, which count "
            "for nothing; pass extractor= with one that reads their language"
        )
    if answering and not found.agreed:
        best = min(found.counts.items(), key=lambda item: (-item[1], item[0]), default=None)
        shown = f"; the most frequent keyword is {printable(best[0], 40)!r} with {best[1]}" if best else ""
        said.append(
            f"no keyword is said by min_support={found.settings.rule.min_support} groups{shown}; retrieve more sources"
        )
    if rival := _rival(found):
        said.append(
            f"the groups contradict each other: {printable(rival, 40)!r} is said by {found.counts[rival]} groups that "
            "say nothing of the answer"
        )
    if found.text and (two := found.camps()):
        (one, other), (many, others) = [printable(phrase, 40) for phrase in two.phrases], two.counts
        said.append(
            f"the groups contradict each other: {other!r} is said by {others} groups that do not say {one!r}"
            if two.answered
            else "the answer is what the groups share, beyond which they differ: "
            f"{many} say {one!r}, and {others} others {other!r}"
        )
    if found.text and not rival and (opposed := opposed_warning(found.text, found.replies, found.keyword_sets)):
        said.append(opposed)
    return said


def _rival(found: Consensus) -> str | None:
    """The strongest keyword of groups that say nothing of the answer, where it would be enough for an answer."""
    others = [said for said in found.keyword_sets if said and not said & found.agreed]
    counts = votes_for(others)
    enough = [w for w, count in counts.items() if count >= found.settings.rule.min_support and found.agreed]
    return min(enough, key=lambda w: (-counts[w], -len(w), w), default=None)
