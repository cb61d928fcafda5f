"""The KV cache of a batch, in buffers that are allocated once.

The library's growing cache copies everything it holds at every token, and more so when rows share a prefix. A
`BatchKVCache` has room for the whole run from the start: a forward pass writes its columns in place, behind those that
each row has, and `advance` makes them count. Columns that rows share stand in front of their own and are kept once.

A pass attends in one of three ways, and none lets a row's content or length choose another row's kernel:

1. `row_by_row`: a decoding step computes each row's attention by itself, over the columns that it has;
2. `fixed`: it attends to all columns there are, under an explicit mask that hides what a row does not have;
3. else to the columns in use, which are as many in all rows: one prompt, or a tree of tokens behind rows that were
   `filled_up` to one length.

Where torch's own attention to the keys is not enough (1, and wherever columns are shared), the keys that the model is
given carry their own attention function (`AttendedKeys`). The model itself is left as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers.cache_utils import Cache

from robustrag_integrations.models.local.attention import (
    AttendedKeys,
    Attention,
    Pair,
    at_least_single,
    attend_row_by_row,
    attend_with_shared,
)

_ROOM = 256  # columns that a full cache grows by at least


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
    """A KV cache for rows of different lengths.

    Args:
        rows: the number of rows, padding included.
        capacity: own columns of each row; more are added where a pass writes more.
        shared: a prefix that is kept once, in front of the rows' own columns.
        prompts: rows that are not padding; None for all.
        row_by_row, fixed: how a step attends, as above.

    Attributes:
        lengths: per row, its own columns in use.
    """

    def __init__(
        self,
        rows: int,
        capacity: int,
        shared: KeyValues | None = None,
        *,
        prompts: int | None = None,
        row_by_row: bool = False,
        fixed: bool = False,
    ) -> None:
        super().__init__(layers=[])
        self.rows, self.capacity, self.shared = rows, capacity, shared
        self.prompts = rows if prompts is None else prompts
        self.row_by_row, self.fixed = row_by_row, fixed
        self.lengths = [0] * rows
        self._kept: list[Pair] = []  # per layer, [rows, heads, capacity, width]
        self._precise = [_precise(pair) for pair in shared.layers] if shared else []
        self._ends: tuple[torch.Tensor, torch.Tensor] | None = None
        self._unattended = False

    @property
    def width(self) -> int:
        """The most own columns of a row that a decoding step reads."""
        return self.capacity if self.fixed else 1 + max(self.lengths)

    def put(self, row: int, layers: Sequence[Pair], first: int = 0) -> None:
        """Copy the columns of a row that was read elsewhere, [1, heads, columns, width] per layer, from `first` on."""
        self.lengths[row] = length = layers[0][0].shape[2] - first
        for layer, pair in enumerate(layers):
            for kept, read in zip(self._layer(layer, pair), pair, strict=True):
                kept[row, :, :length] = read[0, :, first:]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> Pair:
        """Write a layer's new columns [rows, heads, columns, width]; return the keys and values for its attention."""
        self.check_attended()
        new = key_states.shape[2]
        rows, columns = self._columns(new, key_states.device)
        keys, values = self._layer(layer_idx, (key_states, value_states))
        keys[rows, :, columns] = key_states.transpose(1, 2)
        values[rows, :, columns] = value_states.transpose(1, 2)
        shared = self._precise[layer_idx] if self.shared else None
        if self.row_by_row:
            own = [
                (keys[row : row + 1, :, : length + new], values[row : row + 1, :, : length + new])
                for row, length in enumerate(self.lengths[: self.prompts])
            ]
            return self._told(key_states, partial(attend_row_by_row, shared, own)), value_states
        width = self.capacity if self.fixed else max(self.lengths) + new
        keys, values = keys[:, :, :width], values[:, :, :width]
        return (keys if shared is None else self._told(keys, partial(attend_with_shared, shared))), values

    def advance(self, columns: int = 1) -> None:
        """Mark the columns that all layers wrote last as in use."""
        self.lengths = [length + columns for length in self.lengths]
        self._ends = None

    def crop(self, columns: int) -> None:
        """Forget the last columns of every row."""
        self.advance(-columns)

    def check_attended(self) -> None:
        """Raise a RuntimeError if a layer ignored the attention function of its keys."""
        if self._unattended:
            self._unattended = False
            raise RuntimeError("its attention does not read what rows share, or each row by itself")

    def pairs(self) -> list[Pair]:
        """Per layer the keys and values [rows, heads, columns, width] in use, in memory shared with the cache."""
        longest = max(self.lengths)
        return [(keys[:, :, :longest], values[:, :, :longest]) for keys, values in self._kept]

    def last(self) -> list[torch.Tensor]:
        """Return the keys and values [prompts, heads, width] of every row's last column, layer by layer."""
        rows, ends = list(range(self.prompts)), [length - 1 for length in self.lengths[: self.prompts]]
        return [kept[rows, :, ends] for pair in self._kept for kept in pair]

    def filled_up(self) -> BatchKVCache:
        """Return a copy without rows of padding, with zeros at the end of rows shorter than the longest."""
        longest = max(self.lengths[: self.prompts])
        twin = BatchKVCache(self.prompts, longest, self.shared)
        twin._kept = [tuple(kept[: self.prompts, :, :longest].clone() for kept in pair) for pair in self._kept]
        for row, length in enumerate(self.lengths[: self.prompts]):
            for pair in twin._kept:
                for kept in pair:
                    kept[row, :, length:] = 0
        twin.lengths = [longest] * self.prompts
        return twin

    def copy(self) -> BatchKVCache:
        """Return an independent copy; the prefix that rows share is not copied."""
        twin = copy.copy(self)
        twin._kept = [(keys.clone(), values.clone()) for keys, values in self._kept]
        twin.lengths = list(self.lengths)
        return twin

    def get_seq_length(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of columns in use; 0 where masks and positions are always explicit."""
        return 0 if self.row_by_row or self.fixed else max(self.lengths)

    def get_mask_sizes(self, query_length: int, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """Return the number of columns that the next pass attends to, and the first of them, 0."""
        return self.get_seq_length() + query_length, 0

    def _layer(self, layer: int, like: Pair) -> Pair:
        """Return a layer's buffers, allocated on first use."""
        if len(self._kept) <= layer:
            allocate = torch.empty if self.row_by_row else torch.zeros  # a hidden column must hold numbers
            keys, values = (
                allocate((self.rows, t.shape[1], self.capacity, t.shape[3]), dtype=t.dtype, device=t.device)
                for t in like
            )
            self._kept.append((keys, values))
        return self._kept[layer]

    def _columns(self, new: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the indices of every row's next columns, [rows, 1] and [rows, new]; grow the buffers if need be."""
        if self._ends is None or self._ends[1].shape[1] != new:
            if (end := max(self.lengths) + new) > self.capacity:
                self._grow_to(end + max(_ROOM, end // 2))
            rows = torch.arange(self.rows, device=device)[:, None]
            ends = torch.tensor(self.lengths, device=device)[:, None]
            self._ends = rows, ends + torch.arange(new, device=device)
        return self._ends

    def _grow_to(self, capacity: int) -> None:
        more, self.capacity = capacity - self.capacity, capacity
        for layer, pair in enumerate(self._kept):
            keys, values = (torch.nn.functional.pad(kept, (0, 0, 0, more)) for kept in pair)
            self._kept[layer] = keys, values

    def _told(self, keys: torch.Tensor, attention: Attention) -> torch.Tensor:
        """Attach an attention function to keys, and note whether it gets called."""

        def attend(*args: Any, **kwargs: Any) -> torch.Tensor:
            self._unattended = False
            return attention(*args, **kwargs)

        self._unattended = True
        return AttendedKeys.of(keys, attend)


def _precise(pair: Pair) -> Pair:
    keys, values = (t.to(at_least_single(t.dtype)) for t in pair)
    return keys, values
