"""A cache that computes a model's attention itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch

from robustrag_integrations.models.local.attention_cache import AttentionCache
from robustrag_integrations.models.local.kernels import Attention
from robustrag_integrations.models.local.key_values import Pair


class AttendingCache(AttentionCache, ABC):
    """It gives a model nothing but the new columns, and attends in its place to all that a token sees.

    Args:
        kinds: the kind of attention of each layer; empty where all are of one kind.

    Attributes:
        kinds: as above.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        super().__init__(layers=[])
        self.kinds = kinds
        self._not_attended = False

    @abstractmethod
    def keep(self, new: Pair, layer: int) -> None:
        """Keep the new columns of a layer: keys and values [rows, heads, columns, width]."""

    @abstractmethod
    def attend(self, query: torch.Tensor, new: Pair, scale: float | None) -> torch.Tensor:
        """The attention of the layer whose columns were kept last.

        Args:
            query: [rows, H, Q, width].
            new: keys and values [rows, G, columns, width] of its new columns.
            scale: of the scores; 1 / sqrt(width) where there is none.

        Returns:
            [rows, H, Q, width]
        """

    def written(self, key_states: torch.Tensor, value_states: torch.Tensor, layer: int) -> tuple[Pair, Attention]:
        """Keep a layer's new columns; gives the columns themselves, and `attend` looks up the rest."""
        self.check_attended()
        self.keep((key_states, value_states), layer)
        self._not_attended = True
        return (key_states, value_states), self._attended

    def check_attended(self) -> None:
        """Raise a RuntimeError if a layer's attention was computed elsewhere."""
        if self._not_attended:
            raise RuntimeError("its attention is not computed by scaled_dot_product_attention")

    def begin_pass(self) -> None:
        """Forget a pass that broke off."""
        self._not_attended = False

    def get_mask_sizes(self, query_length: int, *args: Any) -> tuple[int, int]:
        """As for a batch that holds nothing: masks are given."""
        return query_length, 0

    def get_seq_length(self, *args: Any) -> int:
        """As for a batch that holds nothing: positions are given."""
        return 0

    def _attended(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *args: Any,
        scale: float | None = None,
        **settings: Any,
    ) -> torch.Tensor:
        """In place of torch's `scaled_dot_product_attention`; the model's masks say nothing here."""
        self._not_attended = False
        return self.attend(query, (key, value), scale)
