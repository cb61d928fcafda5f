"""The KV cache of a batch, in buffers that are allocated once.

The library's growing cache copies everything it holds at every token. A `BatchKVCache` has room for the whole run from
the start: a forward pass writes its columns in place, behind those that each row has, and `advance` makes them count.

A pass attends in one of three ways, and none lets a row's content or length choose another row's kernel:

1. `row_by_row`: a decoding step computes each row's attention by itself, over the columns that it has;
2. `fixed`: it attends to all columns there are, under an explicit mask that hides what a row does not have;
3. else to the columns in use, which are as many in all rows: one prompt, or a tree of tokens behind rows that were
   `filled_up` to one length.

Row by row, torch's own attention is not enough: the keys that the model is given carry their own attention function
(`AttendedKeys`). The model itself is left as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from transformers.cache_utils import Cache

Attention = Callable[..., torch.Tensor]  # called as torch's `scaled_dot_product_attention`
Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values

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


class AttendedKeys(torch.Tensor):  # type: ignore[misc]  # untyped library
    """Keys that carry their own attention function, as do tensors derived from them alone.

    Attributes:
        attention: takes the place of torch's `scaled_dot_product_attention`; called with plain tensors.
    """

    attention: Attention

    @classmethod
    def of(cls, keys: torch.Tensor, attention: Attention) -> torch.Tensor:
        """Attach an attention function to keys; return them as they are while a model is compiled, which ignores it."""
        if torch.compiler.is_compiling():
            return keys
        told: AttendedKeys = keys.as_subclass(cls)
        told.attention = attention
        return told

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run a torch function on these keys."""
        given = [value for value in (*args, *(kwargs or {}).values()) if isinstance(value, torch.Tensor)]
        keys = next((value for value in given if isinstance(value, cls)), None)
        if func is functional.scaled_dot_product_attention and keys is not None:
            args = [_plain(value) for value in args]
            return keys.attention(*args, **{name: _plain(value) for name, value in (kwargs or {}).items()})
        result = super().__torch_function__(func, types, args, kwargs or {})
        if keys is None or len(given) > 1:
            return _plain(result)
        if isinstance(result, cls):
            result.attention = keys.attention
        return result


def _plain(value: Any) -> Any:
    if not isinstance(value, AttendedKeys):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def attend_row_by_row(
    rows: Sequence[Pair],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    **settings: Any,
) -> torch.Tensor:
    """Compute each row's attention over its own columns, whatever the other rows have.

    Scores, weights and sums are in single precision at least, and rounded once at the end: half would round each score,
    and its kernels are slow for one query.

    Args:
        rows: per prompt, its own keys and values [1, G, columns, width]. Rows of padding come after them and get zeros.
        query: [R, H, Q, width]; H * Q is a multiple of G.
        key, value: not used; `rows` has them.
        attn_mask: [R, 1, Q, columns], added to the scores; what a row does not have stands at the end.
        scale: of the scores; 1 / sqrt(width) by default.
        settings: not used; the mask replaces them.

    Returns:
        [R, H, Q, width].
    """
    precise = torch.promote_types(query.dtype, torch.float32)
    folded = query.reshape(len(query), rows[0][0].shape[1], -1, query.shape[-1]).to(precise)
    mask = None if attn_mask is None else attn_mask.to(precise)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    result = torch.zeros_like(folded)
    for row, pair in enumerate(rows):
        keys, values = (t.to(precise) for t in pair)
        seen = None if mask is None else mask[row : row + 1, :, :, : keys.shape[2]]
        result[row] = functional.scaled_dot_product_attention(
            folded[row : row + 1], keys, values, attn_mask=seen, scale=scale
        )[0]
    return result.reshape(query.shape).to(query.dtype)


class BatchKVCache(Cache):  # type: ignore[misc]  # untyped library
    """A KV cache for rows of different lengths.

    Args:
        rows: the number of rows, padding included.
        capacity: columns of each row; more are added where a pass writes more.
        prompts: rows that are not padding; None for all.
        row_by_row, fixed: how a step attends, as above.

    Attributes:
        lengths: per row, its columns in use.
    """

    def __init__(
        self,
        rows: int,
        capacity: int,
        *,
        prompts: int | None = None,
        row_by_row: bool = False,
        fixed: bool = False,
    ) -> None:
        super().__init__(layers=[])
        self.rows, self.capacity = rows, capacity
        self.prompts = rows if prompts is None else prompts
        self.row_by_row, self.fixed = row_by_row, fixed
        self.lengths = [0] * rows
        self._kept: list[Pair] = []  # per layer, [rows, heads, capacity, width]
        self._ends: tuple[torch.Tensor, torch.Tensor] | None = None
        self._unattended = False

    @property
    def width(self) -> int:
        """The most columns of a row that a decoding step reads."""
        return self.capacity if self.fixed else 1 + max(self.lengths)

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
        self.check_attended()
        new = key_states.shape[2]
        rows, columns = self._columns(new, key_states.device)
        keys, values = self._layer(layer_idx, (key_states, value_states))
        keys[rows, :, columns] = key_states.transpose(1, 2)
        values[rows, :, columns] = value_states.transpose(1, 2)
        if self.row_by_row:
            own = [
                (keys[row : row + 1, :, : length + new], values[row : row + 1, :, : length + new])
                for row, length in enumerate(self.lengths[: self.prompts])
            ]
            return self._told(key_states, partial(attend_row_by_row, own)), value_states
        width = self.capacity if self.fixed else max(self.lengths) + new
        return keys[:, :, :width], values[:, :, :width]

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
            raise RuntimeError("its attention does not read each row by itself")

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
        twin = BatchKVCache(self.prompts, longest)
        twin._kept = [tuple(kept[: self.prompts, :, :longest].clone() for kept in pair) for pair in self._kept]
        for row, length in enumerate(self.lengths[: self.prompts]):
            for pair in twin._kept:
                for kept in pair:
                    kept[row, :, length:] = 0
        twin.lengths = [longest] * self.prompts
        return twin

    def copy(self) -> BatchKVCache:
        """Return an independent copy."""
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
