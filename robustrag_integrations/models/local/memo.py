"""What was measured on a model, remembered as long as it holds."""

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
        lm: the model; values are forgotten once its weights are others.
    """

    def __init__(self, lm: CausalLM) -> None:
        self._lm = lm
        self._values: dict[Hashable, T] = {}
        self._weights: Hashable = ()
        self._lock = threading.Lock()

    @property
    def values(self) -> list[T]:
        """Everything that is remembered."""
        with self._lock:
            return list(self._values.values())

    def get(self, key: Hashable, measure: Callable[[], T]) -> T:
        """The value of a key, measured if need be; whoever asks at the same time waits."""
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
    """What decides which kernels run, besides shapes."""
    return (
        str(lm.device),
        str(lm.dtype),
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.backends.mkldnn.enabled,
    )
