"""Passages and their isolation into groups (paper, section III-A, IsoGroup)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from functools import cached_property
from numbers import Number
from pathlib import PurePath
from typing import Any
from uuid import UUID

from robustrag_integrations._util.checks import check_at_least, unchecked
from robustrag_integrations._util.display import SELECTORS, printable
from robustrag_integrations._util.errors import INTERRUPTS
from robustrag_integrations._util.normalise import compatible
from robustrag_integrations.grouping.origins import (
    ID,
    Named,
    Origin,
    entries_in,
    label,
    names_in,
    site_extractor,
    site_of,
)

ORIGIN, SITE, PASSAGE = ("origin", "site", "passage")


@dataclass(frozen=True)
class Passage:
    """One retrieved text.

    Attributes:
        text: the text that the model reads. It is data: nothing in it is ever interpreted.
        id: a label that comes back in the answer; nothing is keyed by it.
        origin: whose the text is (a URL, a file, an author), as an entry of `metadata` may say, too. Numbers and
            paths become str; NaN, an empty text and everything else (a list, a dict) become None.
        metadata: anything else; never shown to the model.
        document_id: a framework's name of the document that the text was cut from: its origin if nothing names one.
        content: the text without what a framework has written around it, by which copies are told; None: all of it.
        origin_entry: the entry of `metadata` that names the origin before all others: the reader writes it, no author.
    """

    text: str
    id: str | None = None
    origin: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    document_id: str | None = None
    content: str | None = None
    origin_entry: str = "source"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a passage's text must be a str, got {type(self.text).__name__}: {self.text!r:.60}")
        if not isinstance(self.metadata, Mapping):
            raise TypeError(f"a passage's metadata must be a mapping, got {type(self.metadata).__name__}")
        for name, given in (("id", self.id), ("origin", self.origin), ("document_id", self.document_id)):
            if given is not None:
                object.__setattr__(self, name, label(given))

    @cached_property
    def known_origin(self) -> Origin | None:
        """The party that controls the text: from `origin` and `metadata`, else the text's document; None if unknown."""
        if self._names:
            return self._names[0][1]
        return None if self.document_id is None else Origin(self.document_id, given=self.document_id, kind=ID)

    @property
    def contradicted(self) -> tuple[Named, ...]:
        """The entry that names the origin, and those that name another one; empty without any of the latter."""
        others = tuple(named for named in self._names[1:] if not named[1].may_be(self._names[0][1]))
        return (self._names[0], *others) if others else ()

    def named(self, field: str) -> Origin | None:
        """Return the origin that this entry of the metadata names, if any; `source` is the given one's entry."""
        return next((origin for _, origin in entries_in(self._entries, (field,))), None)

    @cached_property
    def _names(self) -> list[Named]:
        return names_in(self._entries, self.origin_entry)

    @property
    def _entries(self) -> Mapping[str, Any]:
        return self.metadata if self.origin is None else {**self.metadata, "source": self.origin}


GroupBy = str | Callable[[Passage], Hashable]


@dataclass(frozen=True)
class Source:
    """Passages that share one isolated prompt: the unit of isolation and of corruption.

    Attributes:
        index: the source's place (0-based), by its first passage.
        passages: in rank order.
        keyless: why these passages have no key, one word each, in the source of those without one.
        separator: the text between two passages.
        ranks: the places (0-based) of its passages among all that were given.
        key: the name that its passages share: of their origin, site or entry, or their key; None without one.
    """

    index: int
    passages: tuple[Passage, ...]
    keyless: tuple[str, ...] = field(default=(), compare=False)
    separator: str = "\n\n"
    ranks: tuple[int, ...] = field(default=(), compare=False)
    key: Hashable = field(default=None, compare=False)

    @cached_property
    def text(self) -> str:
        """The passages' texts in rank order, each once."""
        return self.separator.join([p.text for p in self._once])

    @cached_property
    def content(self) -> str:
        """The passages' texts without what a framework has written around them."""
        return self.separator.join(_contents(self._once))

    @cached_property
    def _once(self) -> Sequence[Passage]:
        """The passages without those that repeat one of their origin, as the same page found by two retrievers does."""
        kept: dict[Hashable, Passage] = {}
        for rank, (first, passage) in enumerate(
            zip(first_of_same(_contents(self.passages)), self.passages, strict=True)
        ):
            kept.setdefault((first, passage.known_origin or rank), passage)
        return tuple(kept.values())

    @cached_property
    def origins(self) -> tuple[str, ...]:
        """The origins of the passages, as their metadata spells them, without repeats."""
        found = {p.known_origin: p.known_origin.given for p in reversed(self.passages) if p.known_origin is not None}
        return tuple(
            found[origin] for origin in dict.fromkeys(p.known_origin for p in self.passages) if origin is not None
        )

    @cached_property
    def is_empty(self) -> bool:
        """True if there is nothing to read: such a source abstains."""
        return all(is_blank(p.text) for p in self.passages)


def _contents(passages: Iterable[Passage]) -> list[str]:
    return [p.text if p.content is None else p.content for p in passages]


def is_blank(text: str) -> bool:
    """True if a text has no character that can be seen."""
    return all(c.isspace() or unicodedata.category(c) in ("Cc", "Cf") or SELECTORS.match(c) for c in text)


def first_of_same(texts: Sequence[str]) -> list[int]:
    """Per text the place of the first one that differs in case, width, whitespace and invisible characters alone.

    Texts with nothing in them are their own.
    """
    known: dict[str, int] = {}
    return [known.setdefault(text, place) if text else place for place, text in enumerate(map(_comparable, texts))]


def _comparable(text: str) -> str:
    if text.isascii():
        return " ".join(text.lower().split())
    folded = compatible(SELECTORS.sub("", text)).casefold()
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())


def is_named(passage: Passage) -> bool:
    """True if something other than a framework's id names the passage's origin."""
    return passage.known_origin is not None and passage.known_origin.kind != ID


def as_passages(passages: Iterable[str | Passage], name: str = "passages") -> tuple[Passage, ...]:
    """Return passages with an id each: strings are wrapped, missing ids become `p0`, `p1`, ... by rank."""
    if isinstance(passages, (str, bytes, Passage, Mapping)) or not isinstance(passages, Iterable):
        raise TypeError(f"{name} must be a list of str or Passage, got {type(passages).__name__}: {passages!r:.60}")
    found = []
    for rank, item in enumerate(passages):
        if not isinstance(item, (str, Passage)):
            raise TypeError(f"{name}[{rank}] must be a str or a Passage, got {type(item).__name__}: {item!r:.60}")
        passage = Passage(item) if isinstance(item, str) else item
        found.append(passage if passage.id is not None else unchecked(passage, id=f"p{rank}"))
    return tuple(found)


def isolate(
    passages: Iterable[str | Passage], passages_per_source: int = 1, *, by: GroupBy | None = None
) -> tuple[Source, ...]:
    """Cut the ranked passages into disjoint groups (IsoGroup).

    Args:
        passages: k passages, best first.
        passages_per_source: omega, how many adjacent passages share a source; m = ceil(k / omega).
        by: the criterion that the passages of a source share, wherever they rank, so that one document cut into many
            passages has one vote:

            - `"origin"` (default): the file, page or document that they are from (`Passage.known_origin`).
            - `"site"`: the registrable domain of their address, else their origin. Needs tldextract.
            - `"passage"` (default with a `passages_per_source` above 1): the paper's isolation, by rank alone.
            - any other text: this entry of their metadata, such as `"author"`.
            - a function from a `Passage` to a key: a text, a number, a date, or a tuple of these. Anything else is no
              key, as are None and NaN; where it raises, that passage has none.

            Passages without an origin, entry or key share one source, since leaving it out must not gain votes; so do
            those of which only a framework's id of the document is known, beside others with an origin. Where no
            passage at all has an origin or site (bare texts), each document or passage is a source instead.

    Returns:
        The sources in order of their first passage; a source's `index` is its place in that order.

    Raises:
        TypeError: a passage is not text.
        ValueError: `passages_per_source` is below 1, is not a whole number, or is combined with `by`; or `by` names an
            entry that no passage has had in this process, or is a function that raises for every passage.
        ImportError: `"site"` without tldextract.
    """
    by = grouping_of(passages_per_source, by)
    items = as_passages(passages)
    keys = passage_keys(items, by)
    members: dict[int, list[int]] = {}
    for rank, place in enumerate(keys.places):
        members.setdefault(rank // passages_per_source if by == PASSAGE else place, []).append(rank)
    sources = []
    for index, ranks in enumerate(members.values()):
        within = tuple(items[rank] for rank in ranks)
        reasons = tuple(reason for rank in ranks if (reason := keys.missing[rank]))
        sources.append(Source(index, within, reasons, ranks=tuple(ranks), key=keys.keys[ranks[0]]))
    return tuple(sources)


def grouping_of(passages_per_source: int, by: GroupBy | None) -> GroupBy:
    """Return the grouping criterion: `by`, and where that is None by origin, or with a source size by passage."""
    check_at_least(1, passages_per_source=passages_per_source)
    if by is None:
        return ORIGIN if passages_per_source == 1 else PASSAGE
    if not callable(by) and (not isinstance(by, str) or not by.strip()):
        raise ValueError(
            f"group_by={by!r}: use 'origin', 'site', 'passage', the name of a metadata entry such as 'author', or a "
            "function from a Passage to a key"
        )
    if passages_per_source != 1 and by != PASSAGE:
        raise ValueError(
            f"passages_per_source={passages_per_source} and group_by={by!r} exclude each other: "
            "adjacent passages share a source by rank alone; leave one out"
        )
    if by == SITE:
        site_extractor()
    return by


@dataclass(frozen=True)
class Keys:
    """The assignment of passages to sources, per passage.

    `places` is the number of its source, by first appearance; all without a key share one. `keys` is its key, None
    without one, and `missing` then why (`None`, or the name of an exception).
    """

    places: tuple[int, ...]
    keys: tuple[Hashable, ...]
    missing: tuple[str | None, ...]


_ENTRIES_MET: set[str] = set()  # names of entries by which passages were grouped
_ENTRIES_NAMED = 8


def passage_keys(passages: Sequence[Passage], by: GroupBy) -> Keys:
    """Assign the passages to sources; a passage's key depends on that passage alone, and on whether any has an origin.

    Metadata is untrusted: a passage whose key cannot be made or used has none, and raises no error.

    Raises:
        ValueError: `by` names an entry that no passage has had in this process, or raises for every passage.
    """
    ranks = tuple(range(len(passages)))
    if by == PASSAGE:
        return Keys(ranks, (None,) * len(ranks), (None,) * len(ranks))
    named = by in (ORIGIN, SITE) and any(map(is_named, passages))
    known: dict[Hashable, int] = {}
    places, keys, missing = [], [], []
    raised: list[BaseException] = []
    for passage in passages:
        found, reason = None, "None"
        try:
            found = _key(passage, by, named)
        except INTERRUPTS:
            raise
        except BaseException as error:
            reason = type(error).__name__
            raised.append(error)
        places.append(known.setdefault(found, len(known)))
        keys.append(found)
        missing.append(reason if found is None else None)
    if callable(by) and raised and len(raised) == len(passages):
        kinds = ", ".join(sorted({type(error).__name__ for error in raised}))
        raise ValueError(
            f"group_by is a function that raises for every passage ({kinds}); it is given a Passage, whose metadata is "
            "passage.metadata, and returns a text, a number, a date, a tuple of these, or None"
        ) from raised[0]
    if None not in missing and by in (ORIGIN, SITE):
        places = list(ranks)
    elif isinstance(by, str) and by not in (ORIGIN, SITE):
        if None in missing:
            _ENTRIES_MET.add(by)
        elif passages and by not in _ENTRIES_MET:
            names = dict.fromkeys(key for p in passages for key in p.metadata if isinstance(key, str))
            there = printable(", ".join(map(repr, list(names)[:_ENTRIES_NAMED])), 400) or "none"
            if by not in names:
                raise ValueError(f"group_by={by!r}: no passage has an entry of that name; there are {there}")
    return Keys(tuple(places), tuple(keys), tuple(missing))


def _key(passage: Passage, by: GroupBy, named: bool) -> Hashable:
    """Return the key of a passage; `named`: other passages name their origin, so that an id alone is none."""
    if callable(by):
        return _usable(by(passage))
    if by not in (ORIGIN, SITE):
        return found.name if (found := passage.named(by)) else None
    origin = passage.known_origin
    if origin is None or (named and origin.kind == ID):
        return None
    return site_of(origin) if by == SITE else origin.key


def _usable(key: object) -> Hashable:
    """The key, None in place of NaN; raise TypeError for a kind that need not be equal to another one like it."""
    if key is None or type(key) is str:
        return key
    if isinstance(key, (tuple, frozenset)):
        return (tuple if isinstance(key, tuple) else frozenset)(map(_usable, key))
    if not isinstance(key, (str, bytes, Number, date, Enum, PurePath, UUID)):
        raise TypeError(f"{type(key).__name__} is no key")
    hash(key)
    return key if key == key else None
