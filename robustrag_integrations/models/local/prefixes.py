"""Keys and values of what prompts have in common, computed once and kept for the next question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from robustrag_integrations.forks import lock_held_over_forks
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.key_values import KeyValues


class PrefixStore:
    """The most recently used prefixes of one model, in a bounded number of bytes. Safe to use from several threads.

    What is kept is dropped as soon as the model's weights are others than those it was computed with.

    Args:
        lm: the model.
        limit: bytes of keys and values to keep; 0 keeps none.
    """

    def __init__(self, lm: CausalLM, limit: int) -> None:
        self._lm, self._limit = lm, limit
        self._kept: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._weights: tuple[object, ...] = ()
        self._lock = lock_held_over_forks()

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values that are kept."""
        with self._lock:
            return sum(kept.nbytes for kept in self._kept.values())

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def get(self, tokens: Sequence[int], compute: Callable[[], KeyValues]) -> KeyValues:
        """The keys and values of these tokens: kept ones, or computed and kept."""
        key, weights = tuple(tokens), self._lm.fingerprint()
        with self._lock:
            if weights != self._weights:
                self._kept.clear()
                self._weights = weights
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        computed = compute()
        with self._lock:
            self._kept[key] = computed
            self._kept.move_to_end(key)
            size = sum(kept.nbytes for kept in self._kept.values())
            while size > self._limit:
                size -= self._kept.popitem(last=False)[1].nbytes
        return computed
