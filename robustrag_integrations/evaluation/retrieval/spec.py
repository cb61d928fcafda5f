"""What is measured of the retrieval, checked at the front door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

from robustrag_integrations.checks import is_whole_number
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE, SITE

BM25 = "bm25"
RULES = (PASSAGE, ORIGIN, SITE)
MOST_PLANTED = 1000  # documents


@dataclass(frozen=True)
class RetrievalSpec:
    """How passages are retrieved from a corpus that an attacker plants into, and what counts as one vote.

    Attributes:
        retrievers: `bm25`, or `module:function` (see `searchers.searcher_of`).
        plant: m, numbers of documents that the attacker plants; each is measured.
        rules: what one vote is: `passage`, `origin`, `site`, or a metadata key such as `author`.
        sites: on how many sites the planted documents stand; each site is another author, each document another page.
        per_source: at most this many passages of one origin are kept, and more are fetched in the place of the others;
            None for the plain top k.
        corpus: files and folders, or `module:function` that gives passages; None for the data set's own.
        chunk_size: the longest passage, in characters; longer documents are cut, planted ones as well.

    Raises:
        ValueError: a setting is invalid; the message names it and the fix.
    """

    retrievers: tuple[str, ...] = (BM25,)
    plant: tuple[int, ...] = tuple(range(1, 11))
    rules: tuple[str, ...] = RULES
    sites: int = 1
    per_source: int | None = None
    corpus: tuple[str, ...] | None = None
    chunk_size: int = 600

    def __post_init__(self) -> None:
        for name in self.retrievers:
            if name != BM25 and ":" not in name:
                raise ValueError(f"retrievers: {name!r:.80} must be {BM25!r}, or module:function for one of yours")
        for value in self.plant:
            if not is_whole_number(value, 1, MOST_PLANTED):
                raise ValueError(f"plant: {value!r:.80} must be a whole number from 1 to {MOST_PLANTED:,}")
        for rule in self.rules:
            if not rule.strip():
                raise ValueError("rules: a rule is empty; use passage, origin, site, or a metadata key")
        for name, least in (("sites", 1), ("per_source", 1), ("chunk_size", 50)):
            value = getattr(self, name)
            if not (value is None and name == "per_source") and not is_whole_number(value, least, 100_000):
                raise ValueError(f"{name}: {value!r:.80} must be a whole number from {least} to 100,000")
        for name in ("retrievers", "plant", "rules"):
            if not getattr(self, name):
                raise ValueError(f"{name} is an empty list; give at least one value")

    def certifiable(self, rule: str) -> bool:
        """Whether a certificate of answers can cover what is retrieved where this is one vote.

        The rule must need no more than a passage's source, and a planted passage must push out one clean passage: so
        it is in the plain top k, and with one passage per vote.
        """
        return rule == PASSAGE or (rule in RULES and self.per_source in (None, 1))

    @property
    def certified_rules(self) -> tuple[str, ...]:
        """The rules by which answers are certified."""
        installed = find_spec("tldextract") is not None
        return tuple(rule for rule in self.rules if self.certifiable(rule) and (rule != SITE or installed))

    @classmethod
    def of(cls, given: object) -> RetrievalSpec:
        """From what a configuration says: `true` for the defaults, or keys and values; lists may be single values.

        Raises:
            ValueError: a key is unknown, or a setting is invalid.
        """
        if given is True:
            return cls()
        if not isinstance(given, Mapping):
            raise ValueError(f"{given!r:.80} must be true or keys and values, such as {{plant: [1, 5, 10]}}")
        names = {f.name for f in fields(cls)}
        if unknown := [key for key in given if key not in names]:
            raise ValueError(f"unknown key {unknown[0]!r:.60}; known are {', '.join(sorted(names))}")
        return cls(**{name: _value(name, value) for name, value in given.items() if value is not None})


def _value(name: str, value: Any) -> Any:
    """The value with a tuple where there may be several; the order is kept, repeats are dropped."""
    if name not in ("retrievers", "plant", "rules", "corpus"):
        return value
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    kind = int if name == "plant" else str
    if wrong := [v for v in listed if not isinstance(v, kind) or isinstance(v, bool)]:
        raise ValueError(f"{name}: {wrong[0]!r:.80} must be {'a whole number' if kind is int else 'a text'}")
    return tuple(sorted(set(listed))) if name == "plant" else tuple(dict.fromkeys(listed))
