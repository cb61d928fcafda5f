"""The answer made of the claims that enough groups make.

The *set* of claims is what the radius promises. Order, wording and layout are for eyes: claims stand as most groups
order them, each in the words that most of its groups write, as a list where most replies are lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from robustrag_integrations.answers.answer import Claim
from robustrag_integrations.answers.links import without_links
from robustrag_integrations.defenses.agreement.agreed import Worded, stays_ahead
from robustrag_integrations.defenses.agreement.claims.rule import ClaimRule
from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes, Votes, largest_radius
from robustrag_integrations.defenses.agreement.sole import LONGEST, votes_to_alone
from robustrag_integrations.defenses.agreement.tally import votes_for
from robustrag_integrations.keywords.runs import ReplyKeys
from robustrag_integrations.keywords.statements import lines_of
from robustrag_integrations.prompts import Task

Layout = Literal["prose", "lines", "numbers", "bullets"]

_MOST_LEFT_OUT = 20
_ENDED = re.compile(r"[.!?…:。！？।؟`][\"'”’»)\]]*\Z")


@dataclass(frozen=True)
class ClaimAnswer:
    """The claims of the groups' replies, and those of them that make the answer.

    Attributes:
        replies: per group its claims in its own order; None for an abstention or a failure.
        layouts: per group how it lays them out.
        weights: per group how many votes it has.
        rule: the rule for keeping claims.
        kept: the claims that are shown, in their order.
        task: `long_form` or `list`.
        is_alone: True if they are those of the one group that answers (`agreement/sole.py`), as none is kept.
    """

    replies: tuple[ReplyKeys | None, ...]
    layouts: tuple[Layout | None, ...]
    weights: tuple[int, ...]
    rule: ClaimRule
    kept: tuple[Worded, ...]
    task: Task
    is_alone: bool = False

    @classmethod
    def of(
        cls,
        replies: Sequence[ReplyKeys | None],
        texts: Sequence[str | None],
        weights: Sequence[int],
        rule: ClaimRule,
        task: Task,
        *,
        all_heard: bool = True,
    ) -> ClaimAnswer:
        """Build the answer from the claims and texts of replies, and the groups' votes.

        Args:
            all_heard: True if no group may still say anything, so that one may be alone in answering.
        """
        said = [None if reply is None else reply.keys for reply in replies]
        kept, answering = rule.kept(said, weights), [keys for keys in said if keys is not None]
        is_alone = not kept and len(answering) == 1 and all_heard
        kept = answering[0] if is_alone else kept
        ordered = _in_order(kept, replies, weights)
        layouts = tuple(
            None if reply is None or not reply.keys & kept else _layout_of(text or "")
            for reply, text in zip(replies, texts, strict=True)
        )
        words = tuple(Worded.of(key, replies, weights) for key in ordered)
        if is_alone:
            words = tuple(_without_links(words))
        return cls(tuple(replies), layouts, tuple(weights), rule, words, task, is_alone)

    @property
    def said(self) -> list[frozenset[str] | None]:
        """Per group the claims that it makes."""
        return [None if reply is None else reply.keys for reply in self.replies]

    @property
    def layout(self) -> Layout:
        """The layout of the answer: bullets for a list, else the one that most of its groups use."""
        if self.task == "list":
            return "bullets"
        votes: dict[Layout, int] = {}
        for layout, weight in zip(self.layouts, self.weights, strict=True):
            if layout is not None:
                votes[layout] = votes.get(layout, 0) + weight
        return min(votes, key=lambda layout: (-votes[layout], layout), default="prose")

    @property
    def text(self) -> str:
        """The claims as the answer shows them; empty without any."""
        return text_of([worded.form for worded in self.kept], self.layout)

    def radius(self, pending: int = 0, *, verbatim: bool = False) -> int:
        """Return how many votes can be replaced while the same claims are kept; -1 if pending ones may change them.

        With `verbatim` the text stays to the letter: each claim's form, each order of two claims, and the layout.
        """
        votes = Votes(len(self.replies), self.weights)
        return largest_radius(lambda most: self._holding(votes, most, pending, verbatim), votes.total)

    def holding_by_tier(self, votes: TierVotes, pending: int) -> Holding:
        """Tell for each budget of the votes whether the same claims are kept.

        Nothing is replaced in an abstention and a sole source, nor where groups may still say anything.
        """
        if pending or self.is_alone or not self.kept:
            return votes.nothing
        return self._holding(votes, votes.last, 0, verbatim=False)

    def _holding(self, votes: Votes, most: int, pending: int, verbatim: bool) -> Holding:
        keys = [worded.key for worded in self.kept]
        holds = np.zeros(most + 1, bool) if self.is_alone else self.rule.holding(self.said, keys, votes, most, pending)
        if verbatim and keys:
            places = _places(keys, self.replies)
            if self.task != "list":
                holds &= stays_ahead(self.layouts, self.layout, lambda layout: (layout,), votes, most, pending)
            for place, worded in enumerate(self.kept):
                if not holds[pending == 0 :].any():
                    break
                holds &= worded.stays(votes, most, pending, verbatim=True)
                # Each pair has a strict majority now and then, so that the order is the same.
                own, later = places[place], places[place + 1 :]
                ahead = np.sign(later - own) * (own >= 0) * (later >= 0)
                holds &= (votes.leasts(ahead, -1, most, pending) > 0).all(axis=0)
        if not keys and not self.is_alone:
            holds &= np.arange(most + 1) < votes_to_alone(self.replies, self.weights)
        holds[0] |= pending == 0
        return holds

    def claims(self, names: Callable[[int], Sequence[str]], quorum: int) -> tuple[Claim, ...]:
        """Return the kept claims as users get them.

        Args:
            names: from a group's place to where its passages are from.
            quorum: number of votes whose failure still leaves an answer; no claim outlives it.
        """
        votes = Votes(len(self.replies), self.weights)
        radii = self.rule.radii(self.said, [worded.key for worded in self.kept], votes)
        radii = [max(0, min(radius, quorum)) for radius in radii]
        return tuple(self._claim(w.key, w.form, r, names) for w, r in zip(self.kept, radii, strict=True))

    def left_out(self, names: Callable[[int], Sequence[str]]) -> tuple[Claim, ...]:
        """Return the claims that too few groups make, those with most support first."""
        keys = {worded.key for worded in self.kept}
        others = {key: form for r in self.replies if r is not None for key, form in r.forms.items() if key not in keys}
        counts = votes_for(self.said, self.weights)
        ranked = sorted(others, key=lambda key: (-counts[key], key))[:_MOST_LEFT_OUT]
        return tuple(self._claim(key, others[key], None, names) for key in ranked)

    def _claim(self, key: str, form: str, radius: int | None, names: Callable[[int], Sequence[str]]) -> Claim:
        groups = tuple(i for i, reply in enumerate(self.replies) if reply is not None and key in reply.keys)
        origins = tuple(dict.fromkeys(name for i in groups for name in names(i)))
        return Claim(form, sum(self.weights[i] for i in groups), radius, origins, groups)

    @property
    def evidence(self) -> dict[str, Any]:
        """The counts that decided."""
        counts = votes_for(self.said, self.weights)
        forms = {key: form for r in self.replies if r is not None for key, form in r.forms.items()}
        forms |= {worded.key: worded.form for worded in self.kept}
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:200]
        return {
            "counts": {forms[key]: count for key, count in ranked},
            "threshold": self.rule.min_support,
            "rule": f"made by at least {self.rule.min_support}",
            "retained": [worded.form for worded in self.kept],
            "answering": sum(w for r, w in zip(self.replies, self.weights, strict=True) if r is not None),
        }


def _without_links(words: Sequence[Worded]) -> Iterator[Worded]:
    """Yield a sole source's claims as they are shown: without links, `LONGEST` characters in all."""
    left = LONGEST
    for word in words:
        form = without_links(word.form)
        if left > 0 and form.strip():
            yield replace(word, form=form if len(form) <= left else f"{form[:left]}…")
        left -= len(form)


def text_of(forms: Sequence[str], layout: Layout) -> str:
    """Lay out claims as text."""
    if layout == "bullets":
        return "\n".join(f"- {form}" for form in forms) if len(forms) > 1 else "".join(forms)
    ended = [form if _ENDED.search(form) else f"{form}." for form in forms]
    if layout == "numbers" and len(forms) > 1:
        return "\n".join(f"{number}. {form}" for number, form in enumerate(ended, 1))
    return ("\n" if layout == "lines" or any("\n" in form for form in ended) else " ").join(ended)


def _layout_of(text: str) -> Layout:
    lines = list(lines_of(text))
    if sum(line.is_step for line in lines) > 1:
        return "numbers"
    return "lines" if sum(not line.is_title for line in lines) > 1 else "prose"


def _places(keys: Sequence[str], replies: Sequence[ReplyKeys | None]) -> Any:
    """Return [claims, groups]: the place of each claim in each reply; -1 where it is not made."""
    found = np.full((len(keys), len(replies)), -1, np.int64)
    for group, reply in enumerate(replies):
        if reply is not None:
            own = {key: place for place, key in enumerate(reply.forms)}
            found[:, group] = [own.get(key, -1) for key in keys]
    return found


def _in_order(
    kept: Sequence[str] | frozenset[str], replies: Sequence[ReplyKeys | None], weights: Sequence[int]
) -> list[str]:
    """Return the claims as most groups order them; where groups do not tell, the one with more support first.

    Next comes always a claim that the fewest of the remaining ones precede in most groups that make both. Of those the
    one with most support does, then the one that stands earlier in its replies.
    """
    keys = sorted(kept)
    places = _places(keys, replies)
    made = places >= 0
    support = made @ np.array(weights, np.int64)
    leads = np.zeros((len(keys), len(keys)), np.int64)
    for own, votes in zip(places.T, weights, strict=True):
        at = np.flatnonzero(own >= 0)
        leads[np.ix_(at, at)] += votes * np.sign(own[at] - own[at][:, None])
    before = leads > 0  # [i, j]: most groups that make both have i before j
    sums = (np.where(made, places, 0) * np.array(weights, np.int64)).sum(axis=1)
    ranked = sorted(
        range(len(keys)),
        # No row without groups, and none of no group.
        key=lambda i: (-support[i], Fraction(int(sums[i]), int(support[i])), int(made[i].argmax()), keys[i]),
    )
    rank = np.argsort(ranked)
    next_first = before.sum(axis=0) * len(keys) + rank
    ordered = []
    for _ in keys:
        chosen = int(next_first.argmin())
        ordered.append(keys[chosen])
        next_first -= before[chosen] * len(keys)
        next_first[chosen] = np.iinfo(np.int64).max
    return ordered
