"""The plan of consensus aggregation: one round of isolated calls, no final one.

ask every group alone                                 `agreement/asking.py`
read the keys of each reply                           `agreement/reader.py`
count, and find what most of the strongest say        `counting.py`
show these keys as most groups write them             `agreement/agreed.py`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import Dissent, RobustAnswer
from robustrag_integrations.defenses.agreement.agreed import Worded, are_invented, deciding_keys, text_of
from robustrag_integrations.defenses.agreement.asking import ask_for_keys
from robustrag_integrations.defenses.agreement.linear_forms import Holding, Votes, largest_radius
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.agreement.reports import (
    counts_shown,
    dissent_warnings,
    invention_warning,
    unread_warnings,
)
from robustrag_integrations.defenses.agreement.sole import SoleReply, sole_reply
from robustrag_integrations.defenses.agreement.statuses import group_reports
from robustrag_integrations.defenses.agreement.tally import votes_for
from robustrag_integrations.defenses.agreement.tiers import proven_budgets
from robustrag_integrations.defenses.consensus.counting import ConsensusRadius
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.grouping.warnings import grouping_warnings
from robustrag_integrations.keywords.runs import ReplyKeys
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


def consensus_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: ConsensusSettings,
    *,
    rules: VoteRules,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask every group alone; the answer is what most of the strongest support says, in words that most share."""
    reader = settings.reader.for_question(query)

    def counted(readings: Sequence[Reading[ReplyKeys]]) -> tuple[Consensus, int, int]:
        """Return the consensus and two radii: of the answer up to its spelling, and of its letters."""
        weights, pending = votes_counted(groups, readings)
        consensus = Consensus.of(readings, settings, reader, weights)
        quorum = settings.quorum.radius([r.response for r in readings], [g.weight for g in groups])
        folded, verbatim = (consensus.radius(pending, verbatim=letters) for letters in (False, True))
        return consensus, min(folded, quorum), min(verbatim, quorum)

    def decided(readings: Sequence[Reading[ReplyKeys]]) -> int:
        _, radius, verbatim = counted(readings)
        return radius if verbatim >= 0 else -1

    early = Early.of(rules, decided)
    readings = yield from ask_for_keys(groups, settings, reader, query, early)
    responses = [reading.response for reading in readings]
    consensus, radius, verbatim = counted(readings)
    weights, pending = votes_counted(groups, readings)
    text, reports = consensus.text or ABSTENTION, group_reports(groups, readings, consensus.answer, consensus.counts)
    yield Emit(text)
    answer = RobustAnswer(
        text=text,
        radius=max(0, radius),
        radius_verbatim=max(0, verbatim),
        tier_budgets=proven_budgets(
            groups, weights, responses, settings.quorum, lambda votes: consensus.holding(votes, votes.last, pending)
        ),
        abstained=not consensus.text,
        query=query,
        defense="consensus",
        groups=consensus.sole.in_reports(reports) if consensus.sole else reports,
        settings=settings.as_dict(),
        evidence={**consensus.evidence, **early_evidence(readings, early)},
        model_calls=calls_made(readings),
        reasoning_chars=sum(r.reasoning_chars for r in responses),
    )
    warnings = (
        *model_warnings,
        *grouping_warnings(groups, rules.by),
        *early_warnings(readings),
        *_warnings(consensus, answer.dissent),
        *truncation_warnings([r.truncated for r in responses]),
        *reply_warnings(responses),
    )
    return answer.changed(warnings=warnings)


@dataclass(frozen=True)
class Consensus:
    """The keys that groups agree on, with the replies and votes behind them.

    Attributes:
        replies: per group what it says; None for an abstention or a failure.
        weights: per group how many votes it has.
        counts: the votes of each key.
        agreed: the keys that are agreed on; empty where there is no answer, or one group alone answers.
        answer: those that are part of no other one, as they are shown.
        text: the answer; empty if there is none.
        sole: the reply of the one group that answers; None where several do, or none.
        invented: the words that were agreed on, where they are withheld as an invention.
        settings: the settings.
        reader: the reader of the replies.
    """

    replies: tuple[ReplyKeys | None, ...]
    weights: tuple[int, ...]
    counts: Mapping[str, int]
    agreed: frozenset[str]
    answer: tuple[Worded, ...]
    text: str
    sole: SoleReply | None
    invented: tuple[Worded, ...]
    settings: ConsensusSettings
    reader: ReplyReader

    @classmethod
    def of(
        cls,
        readings: Sequence[Reading[ReplyKeys]],
        settings: ConsensusSettings,
        reader: ReplyReader,
        weights: Sequence[int] | None = None,
    ) -> Consensus:
        """Build the consensus from readings and votes (None: one each); groups without a vote are left out."""
        votes = list(weights) if weights is not None else [1] * len(readings)
        heard = [(r.found, weight) for r, weight in zip(readings, votes, strict=True) if weight]
        replies, own = tuple(reply for reply, _ in heard), tuple(weight for _, weight in heard)
        said = [None if reply is None else reply.keys for reply in replies]
        echoes = sum(w for reply, w in zip(replies, own, strict=True) if reply is not None and reply.is_echo)
        agreed = settings.rule.agreed(said, own, echoes)
        answer = tuple(Worded.of(key, replies, own) for key in deciding_keys(agreed))
        invented = answer if are_invented(answer) else ()
        if invented:
            agreed, answer = frozenset(), ()
        text = text_of(answer)
        sole = sole_reply(readings, votes, agreed)
        if sole:
            agreed, text, answer = frozenset(), sole.text, sole.words if sole.text else ()
        return cls(replies, own, votes_for(said, own), agreed, answer, text, sole, invented, settings, reader)

    def radius(self, pending: int = 0, *, verbatim: bool = False) -> int:
        """Return how many votes can be replaced while the answer stays the same; -1 if pending ones may change it."""
        votes = Votes(len(self.replies), self.weights)
        return largest_radius(lambda most: self.holding(votes, most, pending, verbatim=verbatim), votes.total)

    def holds(self, pending: int) -> bool:
        """True if the answer stays, to the letter, whatever so many further votes say."""
        return bool(self.holding(Votes(len(self.replies), self.weights), 0, pending, verbatim=True)[0])

    def holding(self, votes: Votes, most: int, pending: int, *, verbatim: bool = False) -> Holding:
        """Tell for each r up to `most`, or each budget of the votes, whether the answer stays the same."""
        said = [None if reply is None else reply.keys for reply in self.replies]
        echoes = [reply is not None and reply.is_echo for reply in self.replies]
        rule, comes_with = self.settings.rule, self.reader.comes_with
        holds = ConsensusRadius(said, echoes, self.agreed, rule, votes, comes_with).holding(most, pending)
        for worded in self.answer:
            holds &= worded.stays(votes, most, pending, verbatim=verbatim)
        holds[0] |= pending == 0
        return holds

    @property
    def evidence(self) -> dict[str, Any]:
        """Counts of the most frequent keys; a hostile response may hold tens of thousands of its own."""
        return {
            "counts": counts_shown(self.counts, self.agreed, self.replies),
            "retained": [worded.form for worded in self.answer] if self.agreed else [self.text] * bool(self.text),
            **({"support": min(self.counts[word.key] for word in self.answer)} if self.answer else {}),
            "answering": sum(w for reply, w in zip(self.replies, self.weights, strict=True) if reply is not None),
        }


def _warnings(consensus: Consensus, dissent: Sequence[Dissent]) -> list[str]:
    warnings = unread_warnings(consensus.replies)
    answering = [reply for reply in consensus.replies if reply is not None]
    echoes = sum(reply.is_echo for reply in answering)
    if answering and not consensus.answer and not consensus.sole:
        most = max(consensus.counts.values(), default=0)
        if consensus.invented:
            warnings.append(invention_warning(consensus.invented))
        elif echoes and echoes >= most >= consensus.settings.rule.min_support:
            warnings.append(f"as many replies only repeat the question as agree on an answer: {echoes}")
        else:
            each = ", each in other words" if len(answering) > 1 else ""
            warnings.append(
                f"no answer is given by {count_of(consensus.settings.rule.min_support, 'group')} (min_support): "
                f"{len(answering)} answered{each}"
            )
    return [*warnings, *dissent_warnings(dissent, len(answering))]
