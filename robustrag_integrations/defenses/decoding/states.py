"""States of one decoding session's tree of prefixes: which session or tree has read which prefix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from robustrag_integrations.defenses.decoding.requests import Branch
from robustrag_integrations.models.base import DecodingSession, DecodingTree, Distributions, Opening, noise_bound

_Prefix = tuple[int, ...]


class PrefixStates:
    """Scores prefixes of one session.

    As long as there is one prefix at a time, it runs through the shapes of inference. Where the prefixes fork, a tree
    takes over, if the model has one and its numbers are those of inference but for float noise.

    Args:
        opening: opens the session (again).
        counts: the counters of scored prefixes, by kind.
    """

    def __init__(self, opening: Callable[[], DecodingSession], counts: Counter[str]) -> None:
        self._open, self._counts = opening, counts
        self._states: dict[_Prefix, DecodingSession] = {(): opening()}
        self._tree: DecodingTree | None = None
        self._root: _Prefix = ()  # where the tree begins
        self._no_tree = False
        self.measured = 0.0  # how far the tree's probabilities were from those of inference
        self.noise = 0.0  # the bound that is assumed

    @property
    def opening(self) -> Opening:
        """The session's opening reply."""
        return self._states[()].opening

    def grow(self, branches: Sequence[Branch], *, exact: bool) -> list[Distributions]:
        """Return the distributions after these prefixes, all of one length."""
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
        self._no_tree = True
        parents = {b.prefix[:-1] for b in branches}
        self._root = parents.pop()
        state = self._states.get(self._root)
        tree = state.tree() if state is not None and not parents else None
        if tree is None:
            return [self._exact(b) for b in branches]
        grown = tree.grow([b.prefix[len(self._root) :] for b in branches])
        last = self._exact(branches[-1])
        self.measured = _distance(grown[-1], last)
        noise = noise_bound(self.measured)
        if noise is None:
            return [*(self._exact(b) for b in branches[:-1]), last]
        self._tree, self.noise = tree, noise
        self._counts["packed"] += len(branches) - 1
        return [*(replace(t, noise=noise) for t in grown[:-1]), last]

    def _level(self, tree: DecodingTree, branches: Sequence[Branch]) -> list[Distributions]:
        self._counts["packed"] += len(branches)
        grown = tree.grow([b.prefix[len(self._root) :] for b in branches])
        return [replace(t, noise=self.noise) for t in grown]

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
        """Return a session that has read this prefix and may be advanced."""
        if used_up and prefix and prefix in self._states:
            return self._states.pop(prefix)
        known = next(n for n in range(len(prefix), -1, -1) if prefix[:n] in self._states)
        copied = self._states[prefix[:known]].fork()
        session, read = (copied, known) if copied is not None else (self._open(), 0)
        for token in prefix[read:]:
            session.append(token)
        return session


def _distance(packed: Distributions, exact: Distributions) -> float:
    """Return the largest difference between two distributions; infinite if they hold NaN."""
    pairs = ((packed.groups, exact.groups), (packed.no_retrieval, exact.no_retrieval))
    gap = np.max([np.max(np.abs(a - b), initial=0.0) for a, b in pairs])
    return float(np.nan_to_num(gap, nan=np.inf))
