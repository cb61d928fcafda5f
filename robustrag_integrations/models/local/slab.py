"""Keys and values in buffers that are allocated once.

The library's growing cache copies everything it holds at every token, and more so when rows share a prefix. A slab has
room for the whole run from the start: a forward pass writes its columns in place and attends to a view. Columns that
rows share stand in front of every row's own, and are kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin


@dataclass(frozen=True)
class KeyValues:
    """Keys and values of some tokens of one row: per layer a pair of [1, heads, tokens, width]."""

    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    tokens: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return sum(t.nbytes for pair in self.layers for t in pair)


class _SlabLayer(CacheLayerMixin):  # type: ignore[misc]  # untyped library
    """One layer's keys and values: the columns that rows share, then each row's own; of these, from `used` on are free.

    Args:
        rows: how many rows.
        capacity: own columns of each.
        shared: keys and values [1, heads, columns, width], or None.
    """

    is_sliding = False  # windows are a matter of the mask: everything stays

    def __init__(self, rows: int, capacity: int, shared: tuple[torch.Tensor, torch.Tensor] | None) -> None:
        super().__init__()
        self.rows, self.capacity, self.shared = rows, capacity, shared
        self.used = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate the buffers. Zeros, as columns that a mask hides still must not hold NaN."""
        self.keys, self.values = (
            torch.zeros((self.rows, t.shape[1], self.capacity, t.shape[3]), dtype=t.dtype, device=t.device)
            for t in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the next columns of the first rows, or of all.

        Gives all columns so far of these rows, or behind a single new one those that rows do not share.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        rows, end = len(key_states), self.used + key_states.shape[2]
        if end > self.capacity:
            self._grow(end)
        self.keys[:rows, :, self.used : end] = key_states
        self.values[:rows, :, self.used : end] = value_states
        self.used = end
        if key_states.shape[2] == 1:
            return self.keys[:rows, :, :end], self.values[:rows, :, :end]
        return self.pair(rows, end)

    def pair(self, rows: int, own: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [rows, heads, columns, width] of the shared columns and of so many own ones."""
        keys, values = self.keys[:rows, :, :own], self.values[:rows, :, :own]
        if self.shared is None:
            return keys, values
        shared_keys, shared_values = (t.expand(rows, -1, -1, -1) for t in self.shared)
        return torch.cat([shared_keys, keys], dim=2), torch.cat([shared_values, values], dim=2)

    def own(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [rows, heads, columns, width] of each row's own columns in use."""
        return self.keys[:rows, :, : self.used], self.values[:rows, :, : self.used]

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last columns; their number is negative, as the library has it."""
        self.used -= abs(tokens_to_remove)

    def _grow(self, needed: int) -> None:
        """Trees of tokens outgrow what a run needs."""
        keys, values, used = self.keys, self.values, self.used
        self.capacity = max(needed, self.capacity * 3 // 2)
        self.lazy_initialization(keys, values)
        self.keys[:, :, :used] = keys[:, :, :used]
        self.values[:, :, :used] = values[:, :, :used]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many columns the next pass attends to, from column 0 on."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """How many columns are in use."""
        return self.used + (self.shared[0].shape[2] if self.shared else 0)

    def get_max_length(self) -> int:
        """How many columns there are."""
        return self.get_seq_length() - self.used + self.capacity

    get_max_cache_shape = get_max_length  # its name in older releases


class Slab(Cache):  # type: ignore[misc]  # untyped library
    """A cache of [rows, capacity] columns, and those of `shared` in front of them.

    Args:
        rows: how many rows.
        capacity: columns for each of them.
        shared: a prefix that is kept once for all rows. The columns of a pass of one column are attended to by
            `DecodingKernels`, which read it once as well; for longer passes it is repeated in front of each row.
    """

    def __init__(self, rows: int, capacity: int, shared: KeyValues | None = None) -> None:
        self.rows, self.capacity, self.shared = rows, capacity, shared
        self._unread: tuple[torch.Tensor, torch.Tensor] | None = None
        super().__init__(layers=[])

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write a layer's next columns; gives those that its attention is to read."""
        layer = self._layer(layer_idx)
        if key_states.shape[2] == 1:
            self.check_shared_columns_were_read()
            self._unread = layer.shared
        return layer.update(key_states, value_states)

    def load(self, prefixes: Sequence[KeyValues | None], columns: int) -> None:
        """Write each row's prefix from its first own column on, and go on at column `columns`."""
        known = next((p for p in prefixes if p is not None), self.shared)
        if known is None:
            return
        for index, pair in enumerate(known.layers):
            layer = self._layer(index)
            layer.lazy_initialization(*pair)
            layer.used = columns
            for row, prefix in enumerate(prefixes):
                if prefix is not None:
                    keys, values = prefix.layers[index]
                    layer.keys[row, :, : prefix.tokens] = keys[0]
                    layer.values[row, :, : prefix.tokens] = values[0]

    def take_unread(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The shared keys and values that the attention of the layer just updated has to read too."""
        shared, self._unread = self._unread, None
        return shared

    def check_shared_columns_were_read(self) -> None:
        """Raise a RuntimeError if a layer's attention went past them."""
        if self.take_unread() is not None:
            raise RuntimeError("its attention does not read a shared prefix once")

    def forget_last(self, columns: int) -> None:
        """Forget the last columns."""
        for layer in self.layers:
            layer.crop(-columns)

    def copy(self) -> Slab:
        """A slab of the same size that holds the same."""
        twin = Slab(self.rows, self.capacity, self.shared)
        for index, layer in enumerate(self.layers):
            new = twin._layer(index)
            new.lazy_initialization(layer.keys, layer.values)
            new.used = layer.used
            new.keys[:, :, : layer.used] = layer.keys[:, :, : layer.used]
            new.values[:, :, : layer.used] = layer.values[:, :, : layer.used]
        return twin

    def pairs(self, rows: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Per layer, of the first rows, the keys and values [rows, heads, columns, width] of the columns in use.

        They may share memory with the slab.
        """
        return [layer.pair(rows, layer.used) for layer in self.layers]

    def _layer(self, index: int) -> _SlabLayer:
        while len(self.layers) <= index:
            shared = self.shared.layers[len(self.layers)] if self.shared else None
            self.layers.append(_SlabLayer(self.rows, self.capacity, shared))
        layer: _SlabLayer = self.layers[index]
        return layer
