"""Edit trees (spaCy's `trainable_lemmatizer`): how a word is turned into its lemma."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from robustrag_integrations.keywords.murmur import string_id

_NO_TREE = 2**32 - 1


@dataclass(frozen=True)
class _Match:
    """Keeps the middle of a word and rewrites its ends by other trees, where there are any."""

    prefix: int
    suffix: int
    prefix_tree: int
    suffix_tree: int


@dataclass(frozen=True)
class _Swap:
    """Takes one string for another."""

    old: str
    new: str


class LemmaTrees:
    """All trees of a lemmatizer by their numbers.

    Args:
        trees: as spaCy writes them, with the ids of strings.
        strings: all strings that they name.
    """

    def __init__(self, trees: Iterable[Mapping[str, int]], strings: Sequence[str]) -> None:
        named = {string_id(string): string for string in ("", *strings)}
        self._trees = [
            _Match(tree["prefix_len"], tree["suffix_len"], tree["prefix_tree"], tree["suffix_tree"])
            if "prefix_len" in tree
            else _Swap(named[tree["orig"]], named[tree["subst"]])
            for tree in trees
        ]

    def apply(self, number: int, word: str) -> str | None:
        """The lemma of a word by a tree; None if the tree does not fit the word."""
        tree = self._trees[number]
        if isinstance(tree, _Swap):
            return tree.new if word == tree.old else None
        end = len(word) - tree.suffix
        if tree.prefix > end:
            return None
        before = "" if tree.prefix_tree == _NO_TREE else self.apply(tree.prefix_tree, word[: tree.prefix])
        after = "" if tree.suffix_tree == _NO_TREE else self.apply(tree.suffix_tree, word[end:])
        return None if before is None or after is None else before + word[tree.prefix : end] + after
