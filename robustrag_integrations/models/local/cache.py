"""The KV cache of a batch, in buffers that are allocated once; the library's own copies all it holds at every token.

A forward pass writes its columns in place, behind those that each row has, and `advance` makes them count. It attends
to all columns there are (`fixed`), under an explicit mask that hides what a row does not have; else to the columns in
use, of one prompt. In neither way does a row's content or length choose another row's kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache

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


class BatchKVCache(Cache):  # type: ignore[misc]  # untyped library
    """A KV cache for rows of different lengths: `capacity` columns each."""

    def __init__(self, rows: int, capacity: int, *, fixed: bool = False) -> None:
        super().__init__(layers=[])
        self.rows, self.capacity, self.fixed = rows, capacity, fixed
        self.lengths = [0] * rows  # columns in use
        self._kept: list[Pair] = []  # per layer, [rows, heads, capacity, width]
        self._ends: tuple[torch.Tensor, torch.Tensor] | None = None

    def put(self, row: int, layers: Sequence[Pair]) -> None:
        """Copy the columns of a row that was read elsewhere, [1, heads, columns, width] per layer."""
        self.lengths[row] = length = layers[0][0].shape[2]
        for layer, pair in enumerate(layers):
            for kept, read in zip(self._layer(layer, pair), pair, strict=True):
                kept[row, :, :length] = read[0]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> Pair:
        """Write a layer's new columns [rows, heads, columns, width]; return the keys and values for its attention."""
        new = key_states.shape[2]
        rows, columns = self._columns(new, key_states.device)
        keys, values = self._layer(layer_idx, (key_states, value_states))
        keys[rows, :, columns] = key_states.transpose(1, 2)
        values[rows, :, columns] = value_states.transpose(1, 2)
        width = self.capacity if self.fixed else max(self.lengths) + new
        return keys[:, :, :width], values[:, :, :width]

    def advance(self, columns: int = 1) -> None:
        """Mark the columns that all layers wrote last as in use; below 0, forget the last ones of every row."""
        self.lengths = [length + columns for length in self.lengths]
        self._ends = None

    def pairs(self) -> tuple[Pair, ...]:
        """Per layer the keys and values [rows, heads, columns, width] in use, in memory shared with the cache."""
        longest = max(self.lengths)
        return tuple((keys[:, :, :longest], values[:, :, :longest]) for keys, values in self._kept)

    def last(self, rows: int) -> list[torch.Tensor]:
        """Return the keys and values [rows, heads, width] of the last column of the first rows, layer by layer."""
        ends = [length - 1 for length in self.lengths[:rows]]
        return [kept[list(range(rows)), :, ends] for pair in self._kept for kept in pair]

    def get_seq_length(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of columns in use; 0 where masks and positions are always explicit."""
        return 0 if self.fixed else max(self.lengths)

    def get_mask_sizes(self, query_length: int, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """Return the number of columns that the next pass attends to, and the first of them, 0."""
        return self.get_seq_length() + query_length, 0

    def _layer(self, layer: int, like: Pair) -> Pair:
        """Return a layer's buffers, allocated on first use: of zeros, as a hidden column must hold numbers."""
        if len(self._kept) <= layer:
            shapes = [(self.rows, t.shape[1], self.capacity, t.shape[3]) for t in like]
            keys, values = (t.new_zeros(shape) for t, shape in zip(like, shapes, strict=True))
            self._kept.append((keys, values))
        return self._kept[layer]

    def _columns(self, new: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the indices of every row's next columns, [rows, 1] and [rows, new]."""
        if self._ends is None or self._ends[1].shape[1] != new:
            rows = torch.arange(self.rows, device=device)[:, None]
            ends = torch.tensor(self.lengths, device=device)[:, None]
            self._ends = rows, ends + torch.arange(new, device=device)
        return self._ends
