"""Rows of prompts that advance together, the plain way: every row is read in full, with the library's own masks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from transformers import DynamicCache

from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.packing import Stem


@dataclass(frozen=True)
class Opened:
    """What a batch says once its prompts are read.

    Attributes:
        logits: [rows, V] float32, of the first answer token.
        spelled: [rows] float64, the probability that one of the asked-for strings comes next, every token of it.
    """

    logits: torch.Tensor
    spelled: torch.Tensor


class Batch(Protocol):
    """Rows of prompts; no row's numbers depend on what another row holds."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        ...

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        ...

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        ...

    def fork(self) -> Batch:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        ...

    def stem(self) -> Stem | None:
        """What a tree of continuations can grow on, if the model allows it; the batch itself stays as it is."""
        ...


def column_parts(columns: int, rows: int, at_once: int, tile: int = 1) -> list[slice]:
    """Cut columns into parts of at most `at_once` tokens over all rows, as equal as can be in whole tiles."""
    parts = -(-columns * rows // max(at_once, rows)) or 1
    step = -(-columns // (parts * tile)) * tile
    return [slice(start, min(start + step, columns)) for start in range(0, columns, step)]


class PlainBatch:
    """Left-padded rows of one width. One column of padding at least, as an all-ones mask would be dropped.

    Args:
        lm: the model.
        prompts: token ids per row.
        width: columns of the batch, more than the longest row has tokens.
        at_once: how many tokens are read in one forward pass.
    """

    def __init__(self, lm: CausalLM, prompts: Sequence[Sequence[int]], width: int, at_once: int) -> None:
        self._lm, self._at_once = lm, at_once
        lengths = torch.tensor([len(ids) for ids in prompts])
        ids = torch.zeros((len(prompts), width), dtype=torch.long)
        for row, tokens in enumerate(prompts):
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
        self._mask = (torch.arange(width) >= width - lengths[:, None]).long().to(lm.device)
        self._ids = ids.to(lm.device)
        self._next_position = lengths.to(lm.device)
        self._cache = _growing_cache(lm)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._ids)

    def fork(self) -> PlainBatch:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._cache = copy.deepcopy(self._cache)
        return twin

    def stem(self) -> Stem | None:
        """Nothing: the library's own masks know no trees."""
        return None

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        positions = (self._mask.cumsum(1) - 1).clamp(min=0)
        for part in column_parts(self._ids.shape[1], self.rows, self._at_once):
            logits = self._lm(self._ids[:, part], self._mask[:, : part.stop], positions[:, part], self._cache)
        first = logits[:, -1]
        spelled = torch.zeros(self.rows, dtype=torch.float64, device=first.device)
        for string in strings:
            spelled += self._score(first, string)
        return Opened(first, spelled)

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        column = torch.tensor(tokens, device=self._ids.device)[:, None]
        self._mask = torch.cat([self._mask, torch.ones_like(column)], dim=1)
        logits = self._lm(column, self._mask, self._next_position[:, None], self._cache)[:, -1]
        self._next_position = self._next_position + 1
        return logits

    def _score(self, first: torch.Tensor, string: Sequence[int]) -> torch.Tensor:
        """[rows] float64 probability of a whole string after the prompt; a copy reads it."""
        probability = first.softmax(-1)[:, string[0]].double()
        if rest := list(string[1:]):
            fed = torch.tensor(string[:-1], device=self._ids.device).repeat(self.rows, 1)
            mask = torch.cat([self._mask, torch.ones_like(fed)], dim=1)
            positions = self._next_position[:, None] + torch.arange(fed.shape[1], device=fed.device)
            logits = self._lm(fed, mask, positions, self.fork()._cache, keep=fed.shape[1]).softmax(-1)
            for t, token in enumerate(rest):
                probability = probability * logits[:, t, token].double()
        return probability


def _growing_cache(lm: CausalLM) -> DynamicCache:
    """The library's cache. Only layers that are not attention need a kind of their own."""
    kinds = set(getattr(lm.config, "layer_types", None) or ())
    return DynamicCache() if kinds <= {"full_attention", "sliding_attention"} else DynamicCache(config=lm.config)
