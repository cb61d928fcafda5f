"""A level of the certification tree in one forward pass: all rows of a session, many continuations at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from robustrag_integrations.models.base import DecodingTree, Distributions
from robustrag_integrations.models.local.packing import Stem, TokenTree


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


def _distributions(logits: torch.Tensor) -> Distributions:
    """Of all groups and, last, the no-retrieval prompt, from [rows, V] logits."""
    probabilities = logits.softmax(-1).cpu().numpy()
    return Distributions(probabilities[:-1], probabilities[-1])
