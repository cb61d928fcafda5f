"""Lists (`task="list"`): every group's items are counted one by one, and those that most groups give are shown.

ask every group alone for a list                      the prompt `list`
read each line as an item                             `items_of`
count, and keep an item that more than half of the groups that list anything give, and `min_support` of them
show each item in its commonest wording               in the order of their keys, without a final call

Theorem. Let L votes list anything, c(i) of them item i, and i be shown if 2 c(i) - L > 0 and c(i) >= s. Replaced groups
list what the attacker likes, or nothing. Both conditions are sums over groups (`linear_forms.py`): a replaced group
takes away its own term, and adds at worst -1 to the first and 0 to the second. A shown item stays while both hold after
the worst attack. For an item that is not shown, one that nobody gives included, a replaced group adds at most 1 to
either; it stays out while one of the two cannot be reached. The set is the same up to the least of these numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from robustrag_integrations._util.json_values import plain
from robustrag_integrations.answers.answer import Claim
from robustrag_integrations.core import commonest
from robustrag_integrations.defenses.agreement.linear_forms import Counted, HoldsPerBudget, Row, Votes, largest_radius
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import AbstainingSettings
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import PlanInput, Reading, ask_groups, read_response
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.keys import key_of, whole_answer
from robustrag_integrations.text.answer_text import answer_text
from robustrag_integrations.text.keywords import extractor_fingerprint

MOST_ITEMS = 200  # of one reply
LONGEST_ITEM = 500  # characters
_MOST_LEFT_OUT = 20
_MARK = re.compile(r"\s*(?:[-*•+–‣▪]|\(?(\d{1,3})[.)])\s+(?=\S)")

Items = tuple[tuple[str, str], ...]  # the items of one reply: each key with the wording of it


@dataclass(frozen=True, kw_only=True)
class ListSettings(AbstainingSettings):
    """Everything that decides a list apart from the model: what consensus makes of its settings (`task="list"`).

    Attributes:
        min_support: the number of votes that an item needs.
    """

    method: ClassVar[Method] = METHODS["consensus"]

    min_support: int

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group."""
        return [self.prompts.isolated.render(context=g.text, query=query) for g in groups]

    def reading(self, question: str) -> Callable[[Response], Reading[Items]]:
        """Return what reads the items of a response; one without any abstains."""

        def items(text: str) -> Items | None:
            return None if self.abstention(text) else items_of(text) or None

        return lambda response: read_response(response, items, self.cut_replies)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "min_support": self.min_support,
            "task": "list",
            "quorum": self.quorum,
            "abstention": extractor_fingerprint(self.abstention),
            "cut_replies": self.cut_replies,
            "disagreement": self.disagreement,
        }


def items_of(reply: str) -> Items:
    """Return the items of a reply: its lines without list marks, each once. A line that ends in a colon is none.

    Numbers are marks where they count from 1: "2. Bundesliga" alone is an item.
    """
    lines = [line for line in answer_text(reply).splitlines() if line.strip()]
    found: dict[str, str] = {}
    number = 0
    for line in lines:
        mark = _MARK.match(line)
        if mark and mark[1]:
            if int(mark[1]) in (1, number + 1):
                number = int(mark[1])
            else:
                mark = None
        item = whole_answer(line[mark.end() :] if mark else line).strip()
        key = key_of(item) if len(item) <= LONGEST_ITEM else None
        leads = len(lines) > 1 and item.endswith((":", "："))
        if key is not None and any(map(str.isalnum, key)) and not leads and len(found) < MOST_ITEMS:
            found.setdefault(key, item)
    return tuple(found.items())


@dataclass(frozen=True)
class CountedList(Counted):
    """The items of the groups' replies, and those that are shown.

    Attributes:
        replies: per group its items; None for one that abstained or failed.
        weights: per group how many votes it has.
        min_support: the number of votes that an item needs.
        tells: True if the text says what sources say where no item is shown.
    """

    replies: tuple[Items | None, ...]
    weights: tuple[int, ...]
    min_support: int
    tells: bool = False
    has_wordings: ClassVar[bool] = True

    @cached_property
    def _said(self) -> list[Mapping[str, str]]:
        return [dict(items or ()) for items in self.replies]

    @cached_property
    def _lists(self) -> Row:
        """1 for each group that lists anything."""
        return np.array([items is not None for items in self.replies], np.int64)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The votes of each item."""
        counts: dict[str, int] = {}
        for items, weight in zip(self._said, self.weights, strict=True):
            for key in items:
                counts[key] = counts.get(key, 0) + weight
        return counts

    @cached_property
    def answering(self) -> int:
        """The votes of groups that list anything."""
        return sum(weight for items, weight in zip(self.replies, self.weights, strict=True) if items is not None)

    @cached_property
    def shown(self) -> Mapping[str, str]:
        """The items that are shown, in their order: each key with its commonest wording."""
        kept = (k for k, count in self.counts.items() if 2 * count > self.answering and count >= self.min_support)
        return {key: self.wording(key) for key in sorted(kept)}

    def wording(self, key: str) -> str:
        """Return the wording of an item that most votes write; among equals the shortest, then the smallest one."""
        return commonest(self.wordings(key))

    def wordings(self, key: str) -> dict[str, int]:
        """Return the votes of each wording of an item."""
        votes: dict[str, int] = {}
        for items, weight in zip(self._said, self.weights, strict=True):
            if key in items:
                votes[items[key]] = votes.get(items[key], 0) + weight
        return votes

    def holding(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> HoldsPerBudget:
        """Tell for each r from 0 to `most`, or each budget of the votes, whether the same items are shown.

        With `verbatim` the same letters: of each item the wording stays ahead of all others. What sources are told to
        say in place of an answer, each of them may change.
        """
        holds: HoldsPerBudget = np.ones(most + 1, bool)
        if self.tells and not self.shown:
            holds[:] = False
        for key in self.shown:
            holds &= self._stays(key, votes, most, pending)
        makers = {bytes(row): row for key in self.counts if key not in self.shown for row in [self._gives(key)]}
        absent = np.array([0 * self._lists, *makers.values()])
        half = -votes.worst_case_sums(self._lists - 2 * absent, -1, most, pending) <= 0
        few = -votes.worst_case_sums(-absent, -1, most, pending) < self.min_support
        holds &= (half | few).all(axis=0)
        for key, form in self.shown.items() if verbatim else ():
            for other in ["", *self.wordings(key)]:  # "": a wording that nobody writes
                if other != form:
                    lead = self._writes(key, form) - self._writes(key, other)
                    first = other != "" and (len(form), form) < (len(other), other)
                    holds &= votes.worst_case_sums(lead, -1, most, pending) + first > 0
        holds[0] |= pending == 0
        return holds

    def claims(self, keys: Collection[str], names: Callable[[int], Sequence[str]], quorum: int) -> tuple[Claim, ...]:
        """Return items as users get them, each with its own radius; that of one that is not shown is None.

        Args:
            keys: the items.
            names: from a group's place to where its passages are from.
            quorum: number of votes whose failure still leaves an answer; no item outlives it.
        """
        votes, found = Votes(self.weights), []
        for key in keys:
            groups = tuple(place for place, items in enumerate(self._said) if key in items)
            origins = tuple(dict.fromkeys(name for place in groups for name in names(place)))
            radius = None
            if key in self.shown:
                stays = largest_radius(lambda most, key=key: self._stays(key, votes, most), votes.total)  # type: ignore[misc]
                radius = max(0, min(stays, quorum))
            found.append(Claim(self.wording(key), self.counts[key], radius, origins, groups))
        return tuple(found)

    def _stays(self, key: str, votes: Votes, most: int, pending: int = 0) -> HoldsPerBudget:
        """Tell for each r whether a shown item stays."""
        gives = self._gives(key)
        stays: HoldsPerBudget = votes.worst_case_sums(2 * gives - self._lists, -1, most, pending) > 0
        return stays & (votes.worst_case_sums(gives, 0, most, pending) >= self.min_support)

    def _gives(self, key: str) -> Row:
        return np.array([key in items for items in self._said], np.int64)

    def _writes(self, key: str, form: str) -> Row:
        return np.array([items.get(key) == form for items in self._said], np.int64)


def text_of(forms: Collection[str]) -> str:
    """Lay out items as text; empty without any."""
    return "\n".join(f"- {form}" for form in forms) if len(forms) > 1 else "".join(forms)


def list_plan(inputs: PlanInput, settings: ListSettings) -> Steps[Draft]:
    """Ask every group alone; the answer is the items that more than half of the groups give."""
    tells = settings.disagreement == "tell"

    def count(found: Sequence[Items | None], votes: Sequence[int]) -> CountedList:
        return CountedList(tuple(found), tuple(votes), settings.min_support, tells)

    prompts, read = settings.isolated_prompts(inputs.query, inputs.groups), settings.reading(inputs.query)
    heard = yield from ask_groups(inputs, prompts, read, settings.quorum_rule, count, by_letter=True)
    made = count(heard.found, heard.votes)

    def said(items: Items) -> dict[str, Any]:
        """A group supports the items of the answer that it gives, whatever others it gives."""
        words = tuple(form for key, form in items if key in made.shown)
        status = "supports" if words else "differs"
        return {"status": status, "keywords": tuple(key for key, _ in items), "words": words}

    def names(place: int) -> Sequence[str]:
        group = inputs.groups[place]
        return group.origins or tuple(p.id or f"group {place + 1}" for p in group.passages)

    others = sorted(made.counts.keys() - made.shown.keys(), key=lambda key: (-made.counts[key], key))
    quorum = settings.quorum_rule.radius(heard.responses, [g.weight for g in inputs.groups])
    answer = inputs.answer(
        text_of(made.shown.values()),
        groups=heard.reports(said),
        claims=made.claims(made.shown, names, quorum),
        warnings=_warnings(made),
        evidence={
            "counts": {made.wording(key): made.counts[key] for key in [*made.shown, *others][:200]},
            "threshold": max(made.answering // 2 + 1, settings.min_support),
            "rule": f"given by more than half of those that list anything, {settings.min_support} at least",
            "retained": list(made.shown.values()),
            "answering": made.answering,
            **({"support": min(made.counts[key] for key in made.shown)} if made.shown else {}),
            "left_out": plain(made.claims(others[:_MOST_LEFT_OUT], names, quorum)),
        },
    )
    return Draft(answer.telling("Sources agree on no item") if tells else answer, heard, made)


def _warnings(made: CountedList) -> tuple[str, ...]:
    """Say why there is no answer."""
    if made.shown or not made.answering:
        return ()
    return (
        f"no item is given by more than half of the {made.answering} groups that list anything, and "
        f"by {made.min_support} of them (min_support); evidence['left_out'] has who gives what",
    )
