"""Keys and values in buffers that are allocated once.

The library's growing cache copies everything it holds at every token, and more so when rows share a prefix. A slab has
room for the whole run from the start: a forward pass writes its columns in place and attends to a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
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
    """One layer's keys and values; columns from `length` on are free."""

    is_sliding = False  # windows are a matter of the mask: everything stays

    def __init__(self, capacity: int, rows: int) -> None:
        super().__init__()
        self.capacity, self.rows, self.length = capacity, rows, 0

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
        """Write the next columns; gives all columns so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[2]
        if end > self.capacity:
            self._grow(end)
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last columns; their number is negative, as the library has it."""
        self.length -= abs(tokens_to_remove)

    def _grow(self, needed: int) -> None:
        """Trees of tokens outgrow what a run needs."""
        keys, values, length = self.keys, self.values, self.length
        self.capacity = max(needed, self.capacity * 3 // 2)
        self.lazy_initialization(keys, values)
        self.keys[:, :, :length] = keys[:, :, :length]
        self.values[:, :, :length] = values[:, :, :length]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many columns the next pass attends to, from column 0 on."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """How many columns are in use."""
        return self.length

    def get_max_length(self) -> int:
        """How many columns there are."""
        return self.capacity

    get_max_cache_shape = get_max_length  # its name in older releases


class Slab(Cache):  # type: ignore[misc]  # untyped library
    """A cache of [rows, capacity] columns."""

    def __init__(self, rows: int, capacity: int) -> None:
        self.capacity = capacity
        self._new_layer = partial(_SlabLayer, capacity, rows)
        super().__init__(layer_class_to_replicate=self._new_layer)

    def load(self, prefixes: Sequence[KeyValues | None], columns: int) -> None:
        """Write each row's prefix from column 0 on, and go on at column `columns`."""
        known = next((p for p in prefixes if p is not None), None)
        if known is None:
            return
        for index, pair in enumerate(known.layers):
            layer = self._layer(index)
            layer.lazy_initialization(*pair)
            layer.length = columns
            for row, prefix in enumerate(prefixes):
                if prefix is not None:
                    keys, values = prefix.layers[index]
                    layer.keys[row, :, : prefix.tokens] = keys[0]
                    layer.values[row, :, : prefix.tokens] = values[0]

    def rewind(self, length: int) -> None:
        """Forget the columns from `length` on."""
        for layer in self.layers:
            layer.length = min(layer.length, length)

    def copy(self) -> Slab:
        """A slab of the same size that holds the same."""
        twin = Slab(0, self.capacity)
        twin._new_layer = self._new_layer
        twin.layer_class_to_replicate = self._new_layer
        for index, layer in enumerate(self.layers):
            new = twin._layer(index)
            new.lazy_initialization(layer.keys, layer.values)
            new.length = layer.length
            new.keys[:, :, : layer.length] = layer.keys[:, :, : layer.length]
            new.values[:, :, : layer.length] = layer.values[:, :, : layer.length]
        return twin

    def pairs(self, columns: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Per layer the keys and values [rows, heads, columns, width] of the first columns; shares memory."""
        return [(layer.keys[:, :, :columns], layer.values[:, :, :columns]) for layer in self.layers]

    def _layer(self, index: int) -> _SlabLayer:
        while len(self.layers) <= index:
            self.layers.append(self._new_layer())
        layer: _SlabLayer = self.layers[index]
        return layer
