"""A level of the certification tree in one forward pass: all rows of a session, many continuations at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from robustrag_integrations.models.base import DecodingTree, Distributions
from robustrag_integrations.models.local.packing import Stem, TokenTree
from robustrag_integrations.models.local.step_sharing import Joined


class LocalTree(DecodingTree):
    """Continuations of a local model's session; the last row is the no-retrieval prompt."""

    def __init__(self, stem: Stem) -> None:
        self._tree = TokenTree(stem)
        self._nodes: dict[tuple[int, ...], int] = {(): -1}

    def grow(self, prefixes: Sequence[tuple[int, ...]]) -> list[Distributions]:
        """The distributions after each of these continuations, in one forward pass."""
        first = self._tree.size
        parents = [self._nodes[prefix[:-1]] for prefix in prefixes]
        logits = self._tree.extend(parents, [prefix[-1] for prefix in prefixes])
        self._nodes.update((prefix, first + i) for i, prefix in enumerate(prefixes))
        return [_distributions(logits[:, i]) for i in range(len(prefixes))]


class SteppedTree(DecodingTree):
    """Continuations of a session in steps that they share, with the numbers of inference to the bit, in any precision.

    Each has a copy of what the rows have read; those of the last two levels are kept.
    """

    def __init__(self, batch: Joined) -> None:
        self._root = batch
        self._batches: dict[tuple[int, ...], Joined] = {(): batch}

    def grow(self, prefixes: Sequence[tuple[int, ...]]) -> list[Distributions]:
        """The distributions after each of these continuations, all of one length."""
        depth = len(prefixes[0])
        self._batches = {p: b for p, b in self._batches.items() if not p or len(p) >= depth - 1}
        forks = [self._batches[prefix[:-1]].fork() for prefix in prefixes]
        logits = self._root.append_to_forks(forks, [prefix[-1] for prefix in prefixes])
        self._batches.update(zip(prefixes, forks, strict=True))
        return [_distributions(of_one) for of_one in logits]


def _distributions(logits: torch.Tensor) -> Distributions:
    """Of all groups and, last, the no-retrieval prompt, from [rows, V] logits."""
    probabilities = logits.softmax(-1).cpu().numpy()
    return Distributions(probabilities[:-1], probabilities[-1])
