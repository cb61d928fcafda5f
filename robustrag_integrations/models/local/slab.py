"""Keys and values in buffers that are allocated once.

The library's growing cache copies everything it holds at every token, and more so when rows share a prefix. These have
room for the whole run from the start: a forward pass writes its columns in place and attends to a view. A `RowCache`
holds one prompt. A `Slab` holds several, each at its own length, while they are decoded together; columns that they
share stand in front of every row's own, and are kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional
from transformers.cache_utils import CacheLayerMixin

from robustrag_integrations.models.local.attention_cache import AttentionCache
from robustrag_integrations.models.local.kernels import Attention, at_least_single, attend, attention_of
from robustrag_integrations.models.local.key_values import KeyValues, Pair, Unread


class CacheLayer(CacheLayerMixin):  # type: ignore[misc]  # untyped library
    """One layer's keys and values [rows, heads, capacity, width].

    Args:
        rows: how many rows.
        capacity: columns of each.
        zeros: whether what was not written must hold zeros.
    """

    is_sliding = False  # windows are a matter of the mask: everything stays

    def __init__(self, rows: int, capacity: int, *, zeros: bool = False) -> None:
        super().__init__()
        self.rows, self.capacity, self._zeros = rows, capacity, zeros
        self.used = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate the buffers."""
        allocate = torch.zeros if self._zeros else torch.empty
        keys, values = (
            allocate((self.rows, t.shape[1], self.capacity, t.shape[3]), dtype=t.dtype, device=t.device)
            for t in (key_states, value_states)
        )
        self.use(keys, values, self.used)

    def use(self, keys: torch.Tensor, values: torch.Tensor, held: int = 0) -> None:
        """Keep keys and values in these buffers, which hold so many columns."""
        self.keys, self.values, self.is_initialized = keys, values, True
        self.used = held

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Pair:
        """Write the next columns of all rows; gives all columns so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        new = key_states.shape[2]
        self.keys.narrow(2, self.used, new).copy_(key_states)
        self.values.narrow(2, self.used, new).copy_(value_states)
        self.used += new
        return self.pair()

    def grow_to(self, capacity: int) -> None:
        """Make room for so many columns."""
        old, self.capacity = self.pair() if self.is_initialized else None, capacity
        if old is not None:
            self.lazy_initialization(*old)
            self.keys[:, :, : self.used], self.values[:, :, : self.used] = old

    def pair(self) -> Pair:
        """Keys and values [rows, heads, columns, width] of the columns in use."""
        return self.keys.narrow(2, 0, self.used), self.values.narrow(2, 0, self.used)

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last columns; their number is negative, as the library has it."""
        self.used -= abs(tokens_to_remove)

    def twin(self) -> CacheLayer:
        """A layer of the same size that holds the same."""
        new = CacheLayer(self.rows, self.capacity, zeros=self._zeros)
        self._copy_to(new)
        return new

    def _copy_to(self, new: CacheLayer) -> None:
        new.lazy_initialization(self.keys, self.values)
        new.keys.copy_(self.keys)
        new.values.copy_(self.values)
        new.used = self.used

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many columns the next pass attends to, from column 0 on."""
        return self.used + query_length, 0

    def get_seq_length(self) -> int:
        """How many columns are in use."""
        return self.used

    def get_max_length(self) -> int:
        """How many columns there are."""
        return self.capacity

    get_max_cache_shape = get_max_length  # its name in older releases


class RowCache(AttentionCache):
    """A cache of one row.

    Args:
        capacity: its columns.
        prefix: what it holds from the beginning.
    """

    def __init__(self, capacity: int, prefix: KeyValues | None = None) -> None:
        self.capacity = capacity
        super().__init__(layers=[])
        for index, pair in enumerate(prefix.layers if prefix else ()):
            self._layer(index).update(*pair)

    def written(self, key_states: torch.Tensor, value_states: torch.Tensor, layer: int) -> tuple[Pair, Attention]:
        """Write a layer's next columns; gives all columns so far."""
        pair = self._layer(layer).update(key_states, value_states)
        return pair, attention_of(pair[0], key_states.shape[2])

    def forget_last(self, columns: int) -> None:
        """Forget the last columns."""
        for layer in self.layers:
            layer.crop(-columns)

    def go_back_to(self, columns: int) -> None:
        """Forget all but so many columns, in the layers that have more."""
        for layer in self.layers:
            layer.crop(max(0, layer.used - columns))

    def pairs(self) -> list[Pair]:
        """Per layer the keys and values [1, heads, columns, width] in use, in memory shared with the cache."""
        return [layer.pair() for layer in self.layers]

    def copy(self) -> RowCache:
        """A cache of the same size that holds the same."""
        twin = RowCache(self.capacity)
        twin.layers = [layer.twin() for layer in self.layers]
        return twin

    def _layer(self, index: int) -> CacheLayer:
        while len(self.layers) <= index:
            self.layers.append(CacheLayer(1, self.capacity))
        layer: CacheLayer = self.layers[index]
        return layer


class _SlabLayer(CacheLayer):
    """A layer of rows that may share columns.

    Args:
        rows: how many rows.
        capacity: own columns of each.
        shared: keys and values [1, heads, columns, width], or None; kept in the precision that attention has.
        zeros: whether what was not written must hold zeros.
    """

    def __init__(self, rows: int, capacity: int, shared: Pair | None, *, zeros: bool) -> None:
        super().__init__(rows, capacity, zeros=zeros)
        self.shared = None if shared is None else _precise(shared)
        self._rows: tuple[Pair, ...] = ()

    def write(self, columns: torch.Tensor, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Write [rows, heads, 1, width] to these of all columns, [rows * heads]."""
        for kept, new in ((self.keys, key_states), (self.values, value_states)):
            width = kept.shape[-1]
            kept.view(-1, width).index_copy_(0, columns, new.reshape(-1, width))

    def rows_up_to(self, lengths: Sequence[int]) -> list[Pair]:
        """Per row its keys and values [1, heads, columns, width], the column behind these lengths included."""
        if not self._rows:
            self._rows = tuple(zip(self.keys.split(1), self.values.split(1), strict=True))
        return [
            (keys.narrow(2, 0, length + 1), values.narrow(2, 0, length + 1))
            for (keys, values), length in zip(self._rows, lengths, strict=False)
        ]

    def twin(self) -> _SlabLayer:
        """A layer of the same size that holds the same."""
        new = _SlabLayer(self.rows, self.capacity, self.shared, zeros=self._zeros)
        self._copy_to(new)
        return new


def _precise(pair: Pair) -> Pair:
    keys, values = (t.to(at_least_single(t.dtype)) for t in pair)
    return keys, values


class Slab(AttentionCache):
    """A cache of rows that were read one by one and take decoding steps together.

    Each row's columns begin at the first; those that it has not written are hidden by the mask, or not read.

    Args:
        rows: how many rows, those of padding included.
        capacity: own columns of each; no row decides it.
        shared: a prefix that is kept once, in front of the rows' own columns.
        row_by_row: whether each row's attention is computed by itself, over the columns that it has; or over all
            columns in every step, so that steps have one shape.

    Attributes:
        lengths: per row, its own columns in use.
    """

    def __init__(
        self,
        rows: int,
        capacity: int,
        shared: KeyValues | None = None,
        *,
        row_by_row: bool = False,
    ) -> None:
        self.rows, self.capacity, self.shared = rows, capacity, shared
        self.row_by_row = row_by_row
        self.lengths = [0] * rows
        self.prompts = 0
        self._ends: dict[int, torch.Tensor] = {}
        self._unread: Unread | None = None
        super().__init__(layers=[])

    def put(self, row: int, read: Sequence[Pair], first: int) -> None:
        """Copy the columns of a row that was read, from `first` on; rows come in order, those of padding never."""
        if not self.layers:
            self._make_room(read)
        self.lengths[row] = length = read[0][0].shape[2] - first
        self.prompts = row + 1
        for layer, (keys, values) in zip(self.layers, read, strict=True):
            layer.keys[row, :, :length] = keys[0, :, first:]
            layer.values[row, :, :length] = values[0, :, first:]

    def _make_room(self, read: Sequence[Pair]) -> None:
        """Allocate all layers, for rows like this one."""
        for index, pair in enumerate(read):
            self._layer(index).lazy_initialization(*pair)

    def written(self, key_states: torch.Tensor, value_states: torch.Tensor, layer: int) -> tuple[Pair, Attention]:
        """Write the next column [rows, heads, 1, width] of all rows; gives what a layer's attention is to read.

        Where it has to read more, or other columns, `take_unread` says so.
        """
        self.check_all_was_read()
        kept = self._layer(layer)
        if not kept.is_initialized:
            kept.lazy_initialization(key_states, value_states)
        kept.write(self._ends_of_rows(kept.keys), key_states, value_states)
        if self.row_by_row:
            self._unread = Unread(kept.shared, kept.rows_up_to(self.lengths[: self.prompts]))
            return (key_states, value_states), self._attend
        pair = kept.keys[:, :, : self.width], kept.values[:, :, : self.width]
        if kept.shared is None:
            return pair, functional.scaled_dot_product_attention
        self._unread = Unread(kept.shared, None)
        return pair, self._attend

    def _attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **settings: Any) -> torch.Tensor:
        """The attention of the layer just updated."""
        unread = self.take_unread()
        if unread is None:
            found: torch.Tensor = functional.scaled_dot_product_attention(query, key, value, **settings)
            return found
        return attend(unread, query, key, value, **settings)

    def advance(self) -> None:
        """The columns that all layers wrote last are in use."""
        self.lengths = [length + 1 for length in self.lengths]
        self._ends = {}

    @property
    def width(self) -> int:
        """Own columns that the next step reads of a row at most."""
        return 1 + max(self.lengths) if self.row_by_row else self.capacity

    def take_unread(self) -> Unread | None:
        """What the attention of the layer just updated has to read besides what it is given."""
        unread, self._unread = self._unread, None
        return unread

    def check_all_was_read(self) -> None:
        """Raise a RuntimeError if a layer's attention went past what it had to read."""
        if self.take_unread() is not None:
            raise RuntimeError("its attention does not read what rows share, or each row by itself")

    def last(self) -> list[torch.Tensor]:
        """The keys and values [prompts, heads, width] of every row's last column, layer by layer."""
        rows, ends = range(self.prompts), [length - 1 for length in self.lengths[: self.prompts]]
        return [kept[list(rows), :, ends] for layer in self.layers for kept in (layer.keys, layer.values)]

    def pairs(self) -> list[Pair]:
        """Per layer the keys and values [prompts, heads, columns, width] of all rows' own columns.

        What a row does not have is zero.
        """
        count, most = self.prompts, max(self.lengths[: self.prompts])
        found = []
        for layer in self.layers:
            keys, values = layer.keys[:count, :, :most].clone(), layer.values[:count, :, :most].clone()
            for row, length in enumerate(self.lengths[:count]):
                keys[row, :, length:] = 0
                values[row, :, length:] = 0
            found.append((keys, values))
        return found

    def shared_pairs(self) -> list[Pair]:
        """Per layer the keys and values [1, heads, columns, width] that all rows share; none where they share none."""
        return [layer.shared for layer in self.layers if layer.shared is not None]

    def copy(self) -> Slab:
        """A slab of the same size that holds the same."""
        twin = Slab(self.rows, self.capacity, self.shared, row_by_row=self.row_by_row)
        twin.layers = [layer.twin() for layer in self.layers]
        twin.lengths, twin.prompts = list(self.lengths), self.prompts
        return twin

    def _ends_of_rows(self, kept: torch.Tensor) -> torch.Tensor:
        """[rows * heads] where the next column of every row's heads is, among all of [rows, heads, capacity, width]."""
        heads = kept.shape[1]
        if heads not in self._ends:
            first = torch.arange(self.rows * heads, device=kept.device).view(self.rows, heads) * self.capacity
            ends = torch.tensor(self.lengths, device=kept.device)[:, None]
            self._ends[heads] = (first + ends).flatten()
        return self._ends[heads]

    def _layer(self, index: int) -> _SlabLayer:
        while len(self.layers) <= index:
            shared = self.shared.layers[len(self.layers)] if self.shared else None
            self.layers.append(_SlabLayer(self.rows, self.capacity, shared, zeros=not self.row_by_row))
        layer: _SlabLayer = self.layers[index]
        return layer
