"""Keys and values that were computed: of a layer, of all layers, and what a layer's attention reads besides its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values


@dataclass(frozen=True)
class KeyValues:
    """Keys and values of some tokens of one row: per layer a pair of [1, heads, tokens, width]."""

    layers: tuple[Pair, ...]
    tokens: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return sum(t.nbytes for pair in self.layers for t in pair)


@dataclass(frozen=True)
class Unread:
    """What the attention of a layer has to read besides the keys and values that it is given.

    Attributes:
        shared: keys and values [1, heads, columns, width] that all rows share; None if they share none.
        rows: per prompt, its own keys and values [1, heads, columns, width], to be read in place of those given; None:
            those given are each row's own.
    """

    shared: Pair | None
    rows: Sequence[Pair] | None
