"""The keys and values that a tree of tokens grows behind: written in place, so that a pass copies nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from robustrag_integrations.models.local.attention_cache import AttentionCache
from robustrag_integrations.models.local.kernels import Attention, attend, attention_of
from robustrag_integrations.models.local.key_values import Pair, Unread
from robustrag_integrations.models.local.slab import CacheLayer

_ROOM = 256  # columns that are added at least when there is no more room


class TreeCache(AttentionCache):
    """A cache of rows that grows; columns stand in the order in which they were read.

    Args:
        read: per layer what the rows have read, [rows, heads, columns, width]; it is copied once.
        shared: per layer what stands in front of that and is the same in all rows, [1, heads, columns, width]; it is
            not copied. Empty where rows share nothing.
    """

    def __init__(self, read: Sequence[Pair] = (), shared: Sequence[Pair] = ()) -> None:
        super().__init__(layers=[])
        self._shared = shared
        for index, (keys, values) in enumerate(read):
            self.written(keys, values, index)

    def written(self, key_states: torch.Tensor, value_states: torch.Tensor, layer: int) -> tuple[Pair, Attention]:
        """Write a layer's next columns; gives all columns so far, but for those that rows share."""
        kept, new = self._layer(layer, len(key_states)), key_states.shape[2]
        if kept.used + new > kept.capacity:
            kept.grow_to(kept.used + new + max(_ROOM, kept.used // 2))
        keys, values = kept.update(key_states, value_states)
        if self._shared:
            return (keys, values), partial(attend, Unread(self._shared[layer], None))
        return (keys, values), attention_of(keys, new)

    def crop(self, columns: int) -> None:
        """Forget the last columns; their number is negative, as the library has it."""
        for layer in self.layers:
            layer.crop(columns)

    def _layer(self, index: int, rows: int) -> CacheLayer:
        while len(self.layers) <= index:
            self.layers.append(CacheLayer(rows, 0))
        layer: CacheLayer = self.layers[index]
        return layer
