"""A memo of measurements on a model, kept as long as they hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import torch

from robustrag_integrations.models.local.cancellation import uncancelled
from robustrag_integrations.models.local.causal_lm import CausalLM

T = TypeVar("T")


class ModelMemo(Generic[T]):
    """Values by key, for the weights, device, precision and number of threads they came from; safe to use from threads.

    Args:
        lm: the model; values are forgotten once its weights change.
    """

    def __init__(self, lm: CausalLM) -> None:
        self._lm = lm
        self._values: dict[Hashable, T] = {}
        self._weights: Hashable = ()
        self._lock = threading.Lock()

    @property
    def values(self) -> list[T]:
        """All remembered values."""
        with self._lock:
            return list(self._values.values())

    def get(self, key: Hashable, measure: Callable[[], T]) -> T:
        """Return the value of a key, measured if need be; concurrent callers wait."""
        weights, whole = self._lm.fingerprint(), (key, *_machine(self._lm))
        with self._lock:
            if weights != self._weights:
                self._values.clear()
                self._weights = weights
            if whole not in self._values:
                with uncancelled():
                    self._values[whole] = measure()
            return self._values[whole]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()


def _machine(lm: CausalLM) -> tuple[Hashable, ...]:
    """Return the settings that select kernels, besides shapes."""
    return (
        str(lm.device),
        str(lm.dtype),
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.backends.mkldnn.enabled,
    )
