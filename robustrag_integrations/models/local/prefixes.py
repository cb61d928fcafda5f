"""Keys and values of common prefixes of prompts, and of whole prompts, computed once and kept for the next call."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from robustrag_integrations.models.local.cache import KeyValues
from robustrag_integrations.models.local.causal_lm import CausalLM

Weights = tuple[object, ...]  # a model's fingerprint


class PrefixStore:
    """The most recently used prefixes of one model, and the last prompts in the room that these leave.

    Safe to use from several threads. All of it is dropped as soon as the model's weights change.

    Args:
        lm: the model.
        limit: bytes of keys and values to keep; 0 keeps none.
    """

    def __init__(self, lm: CausalLM, limit: int) -> None:
        self._lm, self._limit = lm, limit
        self._kept: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._prompts: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._weights: Weights = ()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values that are kept."""
        with self._lock:
            return self._size()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._forget()

    def of_one_batch(self) -> BatchPrefixes:
        """Return the prefixes of prompts that are read together, with the weights as they are now."""
        weights = self._lm.fingerprint()
        with self._lock:
            if weights != self._weights:
                self._forget()
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

    def prompt(self, tokens: tuple[int, ...], weights: Weights) -> KeyValues | None:
        """Return the keys and values of a whole prompt, if they were kept."""
        with self._lock:
            return self._prompts.get(tokens) if weights == self._weights else None

    def keep_prompt(self, tokens: tuple[int, ...], read: KeyValues, weights: Weights) -> None:
        """Keep a copy of a prompt's keys and values, unless the weights changed while it was read."""
        if read.nbytes > self._limit or weights != self._lm.fingerprint():
            return
        copied = KeyValues(tuple((keys.clone(), values.clone()) for keys, values in read.layers), read.tokens)
        with self._lock:
            if weights == self._weights:
                self._prompts[tokens] = copied
                self._prompts.move_to_end(tokens)
                self._shrink()

    def _keep(self, tokens: tuple[int, ...], computed: KeyValues) -> None:
        self._kept[tokens] = computed
        self._kept.move_to_end(tokens)
        self._shrink()

    def _shrink(self) -> None:
        """Drop what was used longest ago, prompts first."""
        size = self._size()
        while size > self._limit:
            size -= (self._prompts or self._kept).popitem(last=False)[1].nbytes

    def _size(self) -> int:
        return sum(kept.nbytes for kept in (*self._kept.values(), *self._prompts.values()))

    def _forget(self) -> None:
        self._kept.clear()
        self._prompts.clear()


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

    def prompt(self, tokens: tuple[int, ...]) -> KeyValues | None:
        """Return the keys and values of a whole prompt, if they were kept."""
        return self._store.prompt(tokens, self._weights)

    def keep_prompt(self, tokens: tuple[int, ...], read: KeyValues) -> None:
        """Keep the keys and values of a whole prompt."""
        self._store.keep_prompt(tokens, read, self._weights)
