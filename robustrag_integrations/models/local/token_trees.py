"""Strings of tokens in one forward pass: a tree in which each token sees its ancestors only; and float noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from robustrag_integrations.models.local.language_model import CausalLM, why_coupled

if TYPE_CHECKING:
    from numpy.typing import NDArray


def known_noise(lm: CausalLM) -> bool:
    """Tell whether a model's float noise is of the size that the margins assume: all in full float32 precision.

    Where noise can send a token to another expert, or tokens share a scale, it grows, and not where it was measured.
    """
    return (
        torch.get_float32_matmul_precision() == "highest"
        and all(weight.dtype == torch.float32 for weight in lm.model.parameters())
        and why_coupled(lm) is None
    )


def leads(logits: torch.Tensor) -> list[float]:
    """Return per row of [rows, V] the lead of the best logit, a share of the largest (1 at least); 0 if not finite."""
    best, largest = logits.topk(2, dim=-1).values, logits.abs().amax(-1)
    lead = (best[:, 0] - best[:, 1]) / largest.clamp(min=1)
    found: list[float] = lead.masked_fill(~largest.isfinite(), 0.0).tolist()
    return found


class TokenTrie:
    """A trie of tokens. Nodes are numbered as they are added; -1 is the root, the end of the prompt."""

    def __init__(self, sequences: Iterable[Sequence[int]] = ()) -> None:
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self._parents: list[int] = []
        self._children: dict[tuple[int, int], int] = {}
        for sequence in sequences:
            self.add(sequence)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, sequence: Sequence[int]) -> None:
        """Add a sequence."""
        node = -1
        for depth, token in enumerate(sequence):
            if (node, token) not in self._children:
                self._children[node, token] = len(self)
                self.tokens.append(token)
                self.depths.append(depth)
                self._parents.append(node)
            node = self._children[node, token]

    def path(self, sequence: Sequence[int]) -> list[int]:
        """Return the nodes of a sequence that is in the trie."""
        nodes = [-1]
        for token in sequence:
            nodes.append(self._children[nodes[-1], token])
        return nodes[1:]

    def ancestry(self) -> torch.Tensor:
        """Return the mask [nodes, nodes] of what each node sees: its ancestors and itself."""
        sees = np.eye(len(self), dtype=np.bool_)
        for node, parent in enumerate(self._parents):
            if parent >= 0:
                sees[node] |= sees[parent]
        return torch.from_numpy(sees)


def as_numpy(tensor: torch.Tensor) -> NDArray[np.floating]:
    """Return a tensor's numbers."""
    array: NDArray[np.floating] = tensor.cpu().numpy()
    return array
