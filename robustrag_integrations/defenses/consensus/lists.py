"""Lists (`task="list"`): every source's items are counted one by one, and those that most sources give are shown.

ask every source alone for a list                      the prompt `list`
read each line as an item                             `replies/keys.py`
count, and keep an item that more than half of the sources that list anything give, and `min_support` of them
show each item in its commonest wording               in the order of the source that lists most of them

Theorem. Let L votes list anything, c(i) of them item i, and i be shown if 2 c(i) - L > 0 and c(i) >= s. Replaced
sources list what the attacker likes, or nothing. Both conditions are sums over sources (`counting.py`): a replaced
source takes away its own term, and adds at worst -1 to the first and 0 to the second. A shown item stays while both
hold after the worst attack. For an item that is not shown, one that nobody gives included, a replaced source adds at
most 1 to either; it stays out while one of the two cannot be reached. The set is the same up to the least of these
numbers.

The certificate (docs/internals/proofs.md) makes no model call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations, product
from math import factorial, prod
from typing import Any, ClassVar

import numpy as np

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import plain
from robustrag_integrations._util.words import count_of, some_of
from robustrag_integrations.answers.answer import Claim
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.certification.isolated import TooManyTexts, Unbounded, certify_sizes, without_calls
from robustrag_integrations.core import commonest
from robustrag_integrations.counting import Counted, Holds, Row, largest_radius, worst_case_sums
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.plans.asking import PlanInput, Reading, ask_sources
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.replies.keys import Items
from robustrag_integrations.text.prompts import ABSTENTION

_MOST_LEFT_OUT, _MOST_NAMED = 20, 3
_MOST_TEXTS = 1 << 14  # of a certificate


@dataclass(frozen=True)
class CountedList(Counted):
    """The items of the sources' replies; if it `tells`, the text says what sources say where none is shown."""

    said: tuple[Items | None, ...]
    min_support: int
    tells: bool = False
    has_wordings: ClassVar[bool] = True

    @cached_property
    def _items(self) -> list[Mapping[str, str]]:
        return [dict(items or ()) for items in self.said]

    @cached_property
    def _lists(self) -> Row:
        """1 for each source that lists anything."""
        return np.array([items is not None for items in self.said], np.int64)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The votes of each item."""
        counts: Counter[str] = Counter()
        for items in self._items:
            counts.update(items.keys())
        return counts

    @cached_property
    def answering(self) -> int:
        """The votes of sources that list anything."""
        return int(self._lists.sum())

    @cached_property
    def shown(self) -> Mapping[str, str]:
        """The items that are shown, in their order: each key with its commonest wording."""
        kept = (k for k, count in self.counts.items() if 2 * count > self.answering and count >= self.min_support)
        return {key: self.wording(key) for key in self.ordered(kept)}

    def ordered(self, keys: Iterable[str]) -> list[str]:
        """Return items in the order of the source that lists most of them, then of the one that lists most of the rest.

        Of sources with as many the first counts. So whoever lists all of them may choose the order.
        """
        left, found = {*keys} & self.counts.keys(), []
        while left:
            source = max(self._items, key=lambda items: sum(key in left for key in items))
            found += [key for key in source if key in left]
            left -= source.keys()
        return found

    def wording(self, key: str) -> str:
        """Return the wording of an item that most votes write; among equals the shortest, then the smallest one."""
        return commonest(self.wordings(key))

    def wordings(self, key: str) -> Counter[str]:
        """Return the votes of each wording of an item."""
        return Counter(items[key] for items in self._items if key in items)

    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        """Tell for each r whether the same items are shown; with `verbatim`, in the same wordings.

        What sources are told to say in place of an answer, each of them may change.
        """
        holds: Holds = np.full(most + 1, bool(self.shown) or not self.tells)
        for key in self.shown:
            holds &= self._stays(key, most, pending)
        # Of items that are not shown, and of wordings, the one with most votes needs as few more as any.
        rivals = [key for key in self.counts if key not in self.shown]
        gives = self._gives(max(rivals, key=self.counts.__getitem__)) if rivals else 0 * self._lists
        half = -worst_case_sums(self._lists - 2 * gives, -1, most, pending) <= 0
        few = -worst_case_sums(-gives, -1, most, pending) < self.min_support
        holds &= half | few
        if verbatim and len(self.shown) > 1:
            holds[1:] = False  # a source may choose the order
        for key, form in self.shown.items() if verbatim else ():
            votes = {"": 0, **self.wordings(key)}  # "": a wording that nobody writes
            behind = {
                other: other != "" and (len(form), form) < (len(other), other) for other in votes if other != form
            }
            other = max(behind, key=lambda other: (votes[other], not behind[other]))
            lead = self._writes(key, form) - self._writes(key, other)
            holds &= worst_case_sums(lead, -1, most, pending) + behind[other] > 0
        holds[0] |= pending == 0
        return holds

    def claims(self, keys: Collection[str], names: Callable[[int], Sequence[str]], quorum: int) -> tuple[Claim, ...]:
        """Return items as users get them, each with its own radius; that of one that is not shown is None.

        `names`: from a source's place to where its passages are from; `quorum`: number of votes whose failure still
        leaves an answer, which no item outlives.
        """
        found = []
        for key in keys:
            sources = tuple(place for place, items in enumerate(self._items) if key in items)
            origins = tuple(dict.fromkeys(name for place in sources for name in names(place)))
            radius = None
            if key in self.shown:
                radius = max(0, min(largest_radius(partial(self._stays, key), len(self.said)), quorum))
            found.append(Claim(self.wording(key), self.counts[key], radius, origins, sources))
        return tuple(found)

    def _stays(self, key: str, most: int, pending: int = 0) -> Holds:
        gives = self._gives(key)
        stays: Holds = worst_case_sums(2 * gives - self._lists, -1, most, pending) > 0
        return stays & (worst_case_sums(gives, 0, most, pending) >= self.min_support)

    def _gives(self, key: str) -> Row:
        return np.array([key in items for items in self._items], np.int64)

    def _writes(self, key: str, form: str) -> Row:
        return np.array([items.get(key) == form for items in self._items], np.int64)


def text_of(forms: Collection[str]) -> str:
    """Lay out items as text; empty without any."""
    return "\n".join(f"- {form}" for form in forms) if len(forms) > 1 else "".join(forms)


def list_plan(inputs: PlanInput, settings: ConsensusSettings) -> Steps[Draft]:
    """Ask every source alone; the answer is the items that more than half of the sources give."""
    tells = settings.disagreement == "tell"

    def count(found: Sequence[Items | None], pending: int) -> CountedList:
        return CountedList(tuple(found), settings.min_support, tells)

    prompts, read = settings.isolated_prompts(inputs.query, inputs.sources), settings.reading(inputs.query)
    heard = yield from ask_sources(inputs, prompts, read, settings.quorum, count)
    made = count(heard.found, heard.pending)

    def said(items: Items) -> dict[str, Any]:
        words = tuple(form for key, form in items if key in made.shown)
        return {
            "status": "supports" if words else "differs",
            "keywords": tuple(key for key, _ in items),
            "words": words,
        }

    def names(place: int) -> Sequence[str]:
        source = inputs.sources[place]
        return source.origins or tuple(p.id or f"source {place + 1}" for p in source.passages)

    others = sorted(made.counts.keys() - made.shown.keys(), key=lambda key: (-made.counts[key], key))
    answer = inputs.answer(
        text_of(made.shown.values()),
        sources=heard.reports(said),
        claims=made.claims(made.shown, names, heard.spare),
        warnings=_warnings(made, others),
        evidence={
            "counts": {made.wording(key): made.counts[key] for key in [*made.shown, *others][:200]},
            "threshold": max(made.answering // 2 + 1, settings.min_support),
            "rule": f"given by more than half of those that list anything, {settings.min_support} at least",
            "retained": list(made.shown.values()),
            "answering": made.answering,
            **({"support": min(made.counts[key] for key in made.shown)} if made.shown else {}),
            "left_out": plain(made.claims(others[:_MOST_LEFT_OUT], names, heard.spare)),
        },
    )
    return Draft(answer.telling() if tells else answer, heard, made)


def _warnings(made: CountedList, others: Sequence[str]) -> tuple[str, ...]:
    if not others:
        return ()
    if not made.shown:
        why = f"no item is given by more than half of the {made.answering} sources that list anything"
        why = f"{why}, and by" if made.answering > 1 else "one source alone lists anything, and an item takes"
        return (f"{why} {made.min_support} (min_support); retrieve from more sources",)
    named = some_of((repr(printable(made.wording(key), 60)) for key in others), len(others), _MOST_NAMED)
    are = "is" if len(others) == 1 else "are"
    return (f"{count_of(len(others), 'item')} given by too few sources {are} left out: {named}",)


def list_certification_plan(
    question: Question, settings: ConsensusSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""
    prompts_of, read = partial(settings.isolated_prompts, question.query), settings.reading(question.query)
    step = without_calls(partial(_possible, settings))
    return certify_sizes(question, settings.quorum, prompts_of, read, step, same_batches=same_batches)


def possible_items(made: CountedList, corrupted: int) -> dict[str, list[str | None]]:
    """Return the wordings in which items can stand next to m' corrupted sources; None among them: it may be missing.

    Raises:
        Unbounded: the corrupted sources alone can bring about any text.
    """
    if corrupted > made.answering and corrupted >= made.min_support:
        raise Unbounded("can have any item shown")
    found: dict[str, list[str | None]] = {}
    for key, count in sorted(made.counts.items()):
        most, listing = count + corrupted, made.answering + corrupted
        if 2 * most <= listing or most < made.min_support:
            continue
        votes = made.wordings(key)
        ahead = max(votes.values())
        if corrupted >= ahead:
            raise Unbounded("can decide how an item is written")
        is_shown = 2 * count > listing and count >= made.min_support
        wordings = [form for form in votes if votes[form] + corrupted >= ahead] if corrupted else [made.wording(key)]
        found[key] = [*wordings, *([] if is_shown else [None])]
    return found


def _possible(
    settings: ConsensusSettings, readings: Sequence[Reading[Items]], case: BenignCase, found: Findings
) -> dict[str, str]:
    min_support = settings.min_support
    made = CountedList(tuple(reading.found for reading in readings), min_support)
    choices = possible_items(made, case.corrupted)
    if not found.evidence:
        contested = [key for key, wordings in choices.items() if None in wordings]
        found.evidence = {
            "threshold": max((made.answering + case.corrupted) // 2 + 1, min_support),
            "corrupted_sources": case.corrupted,
            "untouched_sources": len(case.sources),
            "always_kept": [made.wording(key) for key in choices if key not in contested],
            "contested": [made.wording(key) for key in contested],
        }
    is_told = settings.disagreement == "tell" and (case.corrupted or made.counts or any(r.is_cut for r in readings))
    if is_told and all(None in wordings for wordings in choices.values()):
        raise Unbounded("can keep every item out, and people are told who says what")
    orders = factorial(len(choices)) if case.corrupted else 1
    if orders * prod(map(len, choices.values())) > _MOST_TEXTS:
        raise TooManyTexts(
            f"the attacker decides on {count_of(len(choices), 'item')} and their order, more than {_MOST_TEXTS:,} "
            "texts; raise min_support, or ask a narrower question"
        )
    texts: dict[str, str] = {}
    for chosen in product(*choices.values()):
        forms = {key: form for key, form in zip(choices, chosen, strict=True) if form is not None}
        for keys in permutations(forms) if case.corrupted else [made.ordered(forms)]:
            texts.setdefault(text_of([forms[key] for key in keys]) or ABSTENTION, "items that enough sources can give")
    return texts
