"""Keys and values of common prefixes of prompts, computed once and kept for the next question."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from robustrag_integrations.models.local.cache import KeyValues
from robustrag_integrations.models.local.causal_lm import CausalLM

Weights = tuple[object, ...]  # a model's fingerprint


class PrefixStore:
    """The most recently used prefixes of one model, in a bounded number of bytes. Safe to use from several threads.

    The prefixes are dropped as soon as the model's weights change.

    Args:
        lm: the model.
        limit: bytes of keys and values to keep; 0 keeps none.
    """

    def __init__(self, lm: CausalLM, limit: int) -> None:
        self._lm, self._limit = lm, limit
        self._kept: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._weights: Weights = ()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values that are kept."""
        with self._lock:
            return sum(kept.nbytes for kept in self._kept.values())

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def of_one_batch(self) -> BatchPrefixes:
        """Return the prefixes of prompts that are read together, with the weights as they are now."""
        weights = self._lm.fingerprint()
        with self._lock:
            if weights != self._weights:
                self._kept.clear()
                self._weights = weights
        return BatchPrefixes(self, weights)

    def get(self, tokens: tuple[int, ...], compute: Callable[[], KeyValues], weights: Weights) -> KeyValues:
        """Return the keys and values of these tokens; newly computed ones are kept if the weights did not change.

        Args:
            tokens: the prefix.
            compute: reads it, maybe behind another prefix of the batch.
            weights: those that the batch began with.
        """
        with self._lock:
            if weights == self._weights and tokens in self._kept:
                self._kept.move_to_end(tokens)
                return self._kept[tokens]
        computed = compute()
        unchanged = weights == self._lm.fingerprint()
        with self._lock:
            if unchanged and weights == self._weights:
                self._keep(tokens, computed)
        return computed

    def _keep(self, tokens: tuple[int, ...], computed: KeyValues) -> None:
        self._kept[tokens] = computed
        self._kept.move_to_end(tokens)
        size = sum(kept.nbytes for kept in self._kept.values())
        while size > self._limit:
            size -= self._kept.popitem(last=False)[1].nbytes


class BatchPrefixes:
    """The prefixes of one batch's prompts, each read once; those that other weights had a part in are not kept.

    Args:
        store: the prefixes that are kept.
        weights: those that the batch began with.
    """

    def __init__(self, store: PrefixStore, weights: Weights) -> None:
        self._store, self._weights = store, weights
        self._read: dict[tuple[int, ...], KeyValues] = {}

    def get(self, tokens: tuple[int, ...], compute: Callable[[], KeyValues]) -> KeyValues:
        """Return the keys and values of these tokens; `compute` may start from those of this batch."""
        if tokens not in self._read:
            self._read[tokens] = self._store.get(tokens, compute, self._weights)
        return self._read[tokens]
