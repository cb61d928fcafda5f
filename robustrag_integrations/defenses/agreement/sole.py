"""An answer that stands in one source: exactly one group answers, and its reply is shown as it is.

Consensus and keyword aggregation share the rule. Counting decides where groups can be counted against each other. Where
exactly one group answers (the others abstained, failed, or are copies of it), there is nothing to count: its reply
is the answer, to the letter, with a radius of 0. An echo of the question has no keys, so it is never shown; beside
a reply with keys it is a second voice, so it is no silence either.

What is shown may be an attacker's words. It is unwrapped, cut at `LONGEST`, and its links are left out. No final call
is made with it.

**Radii of other answers stay right.** Say that replacing r groups, one vote each, leaves exactly one group answering,
whose reply is then shown; it was replaced itself, or is the one untouched group that answers. Let the same r groups say
a word that nobody says instead. It has r >= 1 votes, no other word more than one, and at most r + 1 groups answer: the
new word is kept or agreed on, or, if r votes are too few, nothing is. Either way the words that counting keeps are
others than before, unless there were none. So no answer that counting gives has a radius of r or more. A group of
several votes that answers alone is counted as ever, and shown as it is only if nothing is agreed on, which is another
outcome of counting, too. What is left are abstentions of which the radius counts the votes until one source is alone
(`votes_to_alone`).

**Certificates** count every text that corrupted groups can have shown: any at all if no untouched group answers, and
the reply of the one that does if they keep silent. Next to two untouched groups that answer nobody is alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from robustrag_integrations.answers.answer import GroupReport
from robustrag_integrations.answers.links import without_links
from robustrag_integrations.defenses.agreement.agreed import Worded, deciding_keys
from robustrag_integrations.keywords.runs import ReplyKeys, whole_answer
from robustrag_integrations.plans.asking import Reading

LONGEST = 1_000  # characters that are shown

ANY_REPLY = "can be the only one that answers, and have any text shown"


@dataclass(frozen=True)
class SoleReply:
    """The reply of the one group that answers.

    Attributes:
        text: the part of it that is shown; empty if nothing is left.
        words: its keys that decide, for reports.
    """

    text: str
    words: tuple[Worded, ...]

    def in_reports(self, reports: Sequence[GroupReport]) -> tuple[GroupReport, ...]:
        """Return the groups' reports, in which the one that answers says what is shown, and no more."""
        return tuple(each.changed(words=(self.text,)) if each.words else each for each in reports)


def sole_reply(
    readings: Sequence[Reading[ReplyKeys]], weights: Sequence[int], agreed: Collection[str]
) -> SoleReply | None:
    """Return the one reply that answers; None where several groups answer, none does, or one may still do.

    Args:
        readings: the reply of each group.
        weights: per group how many votes it has.
        agreed: the keys that counting keeps; a group of several votes may decide by itself.
    """
    answering = [(r, weight) for r, weight in zip(readings, weights, strict=True) if r.found is not None]
    if len(answering) != 1 or any(reading.is_open for reading in readings):
        return None
    [(reading, weight)] = answering
    said = reading.found
    if said is None or not (said.keys and said.is_grounded) or (weight > 1 and agreed):
        return None
    text = whole_answer(reading.response.text or "")
    shown = without_links(text[:LONGEST])
    shown += "…" if shown and len(text) > LONGEST else ""
    keys = (said.whole,) if said.whole is not None else deciding_keys(said.keys)
    return SoleReply(shown, tuple(Worded.of(key, [r.found for r in readings], weights) for key in keys))


def votes_to_alone(replies: Sequence[ReplyKeys | None], weights: Sequence[int]) -> int:
    """Return the least number of votes whose replacement can leave exactly one group answering."""
    answering = [(reply, weight) for reply, weight in zip(replies, weights, strict=True) if reply is not None]
    if not answering:
        return min(weights, default=1)
    spared = max((weight for reply, weight in answering if reply.keys), default=0)
    return max(1, sum(weight for _, weight in answering) - spared)
