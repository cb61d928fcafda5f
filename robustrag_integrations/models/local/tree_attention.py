"""Attention of a tree's nodes: a block of them reads no column that none of them sees.

The library's kernels compute all scores and hide those that the mask hides. In a tree of many prompts these are most of
what the prompts do not share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from robustrag_integrations.models.local.kernels import Attention
from robustrag_integrations.models.local.products import linear

BLOCK = 128  # nodes that attend together
_COLUMNS = 64  # a block reads a multiple of these, so that there are few shapes: kernels are compiled for each


@dataclass(frozen=True)
class _Block:
    """Nodes that attend together.

    Attributes:
        nodes: which of those that are read.
        columns: [C] what at least one of them sees, and some more.
        mask: [nodes, C], added to the scores.
    """

    nodes: slice
    columns: torch.Tensor
    mask: torch.Tensor


class TreeAttention:
    """Takes the place of torch's `scaled_dot_product_attention` in one pass over one row."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[torch.Tensor, list[_Block]]] = {}  # by mask: the layers of a pass have few

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        scale: float | None = None,
        **settings: Any,
    ) -> torch.Tensor:
        """Attend.

        Args:
            query: [1, heads, Q, width].
            key, value: [1, heads, columns, width].
            attn_mask: [1, 1, Q, columns], added to the scores.
            scale: of the scores; 1 / sqrt(width) by default.
            settings: of `scaled_dot_product_attention`.

        Returns:
            [1, heads, Q, width]
        """
        attention: Attention = functional.scaled_dot_product_attention
        _, heads, nodes, width = query.shape
        shape = (1, 1, nodes, key.shape[2])
        ours = attn_mask is not None and attn_mask.dtype == query.dtype and attn_mask.shape == shape
        if attn_mask is None or not ours or nodes < BLOCK or key.shape[1] != heads:
            return attention(query, key, value, attn_mask=attn_mask, scale=scale, **settings)
        scaled = query[0] * (width**-0.5 if scale is None else scale)
        found = query.new_empty(1, heads, nodes, value.shape[3])
        for block in self._blocks(attn_mask):
            for head, asking in enumerate(scaled):
                keys, values = (t[0, head].index_select(0, block.columns) for t in (key, value))
                scores = linear(asking[block.nodes], keys).add_(block.mask)
                found[0, head, block.nodes] = linear(scores.softmax(-1), values.T)
        return found

    def _blocks(self, mask: torch.Tensor) -> list[_Block]:
        """Of a mask or a view of it; it is kept, so that no other comes to stand in its place."""
        where = mask.data_ptr(), mask.shape
        if where not in self._known:
            self._known[where] = mask, _blocks_of(mask[0, 0])
        return self._known[where][1]


def _blocks_of(mask: torch.Tensor) -> list[_Block]:
    """Blocks of as many nodes each, from the mask [nodes, columns] of all; the last one overlaps the one before."""
    found = []
    for start in range(0, len(mask), BLOCK):
        first = min(start, len(mask) - BLOCK)
        nodes = slice(first, first + BLOCK)
        seen = (mask[nodes] > torch.finfo(mask.dtype).min / 2).any(0)
        count = min(len(seen), -(-int(seen.sum()) // _COLUMNS) * _COLUMNS)
        columns = seen.to(torch.uint8).sort(descending=True, stable=True).indices[:count]
        found.append(_Block(nodes, columns, mask[nodes, columns]))
    return found
