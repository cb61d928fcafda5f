"""The states of one decoding session's tree of prefixes: which session or tree has read what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from robustrag_integrations.certification.requests import Branch
from robustrag_integrations.models.base import DecodingSession, DecodingTree, Distributions

_Prefix = tuple[int, ...]
TRUSTED = 1 / 8  # share of a tree's noise that may be met where it is compared with inference


class PrefixStates:
    """Scores prefixes of one session.

    As long as there is one prefix at a time, it runs through the shapes of inference. Where the prefixes fork, a tree
    takes over, if the model has one and its numbers are within its noise of those of inference.

    Args:
        opening: opens the session (again).
        counts: where prefixes scored are counted, by kind.
    """

    def __init__(self, opening: Callable[[], DecodingSession], counts: Counter[str]) -> None:
        self._open, self._counts = opening, counts
        self._states: dict[_Prefix, DecodingSession] = {(): opening()}
        self._tree: DecodingTree | None = None
        self._root: _Prefix = ()  # where the tree begins
        self._no_tree = False
        self.noise = 0.0  # the largest difference met between a tree and inference
        self.allowed = 0.0  # what is reckoned with

    @property
    def root(self) -> DecodingSession:
        """The session as it was opened."""
        return self._states[()]

    def grow(self, branches: Sequence[Branch], *, exact: bool) -> list[Distributions]:
        """The distributions after these prefixes, all of one length."""
        self._forget(min(len(b.prefix) for b in branches) - 1)
        if exact:
            return [self._exact(b) for b in branches]
        if self._tree is None and len(branches) > 1 and not self._no_tree:
            return self._plant(branches)
        if self._tree is None:
            return [self._exact(b) for b in branches]
        return self._level(self._tree, branches)

    def _plant(self, branches: Sequence[Branch]) -> list[Distributions]:
        """Begin a tree above these prefixes. Its last one is scored both ways: a tree that strays is not used."""
        parents = {b.prefix[:-1] for b in branches}
        self._root = parents.pop()
        if not parents and (state := self._states.get(self._root)) is not None and (tree := state.tree()) is not None:
            told = self._level(tree, branches)
            last = self._exact(branches[-1])
            self.noise = max(self.noise, _distance(told[-1], last))
            if self.noise <= tree.noise * TRUSTED:
                self._tree, self.allowed = tree, tree.noise
                return [*told[:-1], last]
        self._no_tree = True
        return [self._exact(b) for b in branches]

    def _level(self, tree: DecodingTree, branches: Sequence[Branch]) -> list[Distributions]:
        self._counts["packed"] += len(branches)
        return tree.grow([b.prefix[len(self._root) :] for b in branches])

    def _forget(self, depth: int) -> None:
        kept = ((), self._root) if self._tree else ((),)
        for prefix in [p for p in self._states if len(p) < depth and p not in kept]:
            del self._states[prefix]

    def _exact(self, branch: Branch) -> Distributions:
        self._counts["alone"] += 1
        *parent, token = branch.prefix
        state = self._state(tuple(parent), used_up=branch.only_child and self._tree is None)
        reply = state.append(token)
        self._states[branch.prefix] = state
        return reply

    def _state(self, prefix: _Prefix, *, used_up: bool) -> DecodingSession:
        """A session that has read this prefix, and that may be advanced."""
        if used_up and prefix and prefix in self._states:
            return self._states.pop(prefix)
        known = next(n for n in range(len(prefix), -1, -1) if prefix[:n] in self._states)
        copied = self._states[prefix[:known]].fork()
        session, read = (copied, known) if copied is not None else (self._open(), 0)
        for token in prefix[read:]:
            session.append(token)
        return session


def _distance(told: Distributions, exact: Distributions) -> float:
    """The largest difference between two distributions; infinite if they are no numbers."""
    pairs = ((told.groups, exact.groups), (told.no_retrieval, exact.no_retrieval))
    gap = np.max([np.max(np.abs(a - b), initial=0.0) for a, b in pairs])
    return float(np.nan_to_num(gap, nan=np.inf))
