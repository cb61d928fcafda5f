"""Caches that know how attention to what they hold is computed. The model itself is left as it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional
from transformers.cache_utils import Cache

from robustrag_integrations.models.local.kernels import Attention
from robustrag_integrations.models.local.key_values import Pair


class AttentionCache(Cache, ABC):  # type: ignore[misc]  # untyped library
    """A cache that says how attention to a layer's columns is computed."""

    @abstractmethod
    def written(self, key_states: torch.Tensor, value_states: torch.Tensor, layer: int) -> tuple[Pair, Attention]:
        """Write a layer's next columns.

        Args:
            key_states, value_states: [rows, heads, columns, width].
            layer: its number.

        Returns:
            The keys and values that the layer's attention is given, and what computes it.
        """

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> Pair:
        """`written` for a model's own code: the keys themselves know how attention to them is computed."""
        (keys, values), attention = self.written(key_states, value_states, layer_idx)
        return AttendedKeys.of(keys, attention), values


def written(
    cache: Cache | None, key_states: torch.Tensor, value_states: torch.Tensor, layer: int
) -> tuple[Pair, Attention]:
    """`AttentionCache.written` for any cache; None holds nothing, and keeps nothing."""
    if isinstance(cache, AttentionCache):
        return cache.written(key_states, value_states, layer)
    pair: Pair = (key_states, value_states) if cache is None else cache.update(key_states, value_states, layer)
    return pair, functional.scaled_dot_product_attention


class AttendedKeys(torch.Tensor):  # type: ignore[misc]  # untyped library
    """Keys that know how attention to them is computed; what is made of them alone knows it, too.

    Attributes:
        attention: takes the place of torch's `scaled_dot_product_attention`; is given plain tensors.
    """

    attention: Attention

    @classmethod
    def of(cls, keys: torch.Tensor, attention: Attention) -> torch.Tensor:
        """The same numbers, attended to in this way.

        Plain keys where that is torch's own way, and while a model is compiled: it chooses for itself.
        """
        if attention is functional.scaled_dot_product_attention or torch.compiler.is_compiling():
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
        """One call of a function of torch with such keys."""
        given = [value for value in (*args, *(kwargs or {}).values()) if isinstance(value, torch.Tensor)]
        keys = next((value for value in given if isinstance(value, cls)), None)
        if func is functional.scaled_dot_product_attention and keys is not None:
            args = [_plain(value) for value in args]
            return keys.attention(*args, **{name: _plain(value) for name, value in (kwargs or {}).items()})
        found = super().__torch_function__(func, types, args, kwargs or {})
        if keys is None or len(given) > 1:
            return _plain(found)
        if isinstance(found, cls):
            found.attention = keys.attention
        return found


def _plain(value: Any) -> Any:
    if not isinstance(value, AttendedKeys):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)
