"""Rows of prompts that advance together, the plain way: every row is read in full, with the library's own masks."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from transformers import DynamicCache

from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.packing import Stem

_CONSTANT = (0,)  # the tokens of a row of padding


@dataclass(frozen=True)
class Opened:
    """What a batch says once its prompts are read.

    Attributes:
        logits: [rows, V] float32, of the first answer token.
        spelled: [rows] float64, the probability that one of the asked-for strings comes next, every token of it.
    """

    logits: torch.Tensor
    spelled: torch.Tensor


class Steps(Protocol):
    """Rows of prompts that advance together.

    Attributes:
        rows: how many prompts there are; rows of padding are neither counted nor returned.
    """

    rows: int

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        ...

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        ...


class Batch(Steps, Protocol):
    """Rows of prompts that advance together, and what was read can be used elsewhere."""

    def fork(self) -> Batch:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        ...

    def cached(self) -> Iterator[torch.Tensor]:
        """Everything that is kept of what was read, as tensors [rows, ...]; they may share memory with the cache."""
        ...

    def stem(self) -> Stem | None:
        """What a tree of continuations can grow on, if the model allows it and has `known_noise`; the batch stays."""
        ...


class Apart:
    """Prompts that are read each in a batch of its own: no other one has a say in its numbers, whatever the model does.

    Args:
        batches: of one row each.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self.rows = len(batches)

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        opened = [batch.open(strings) for batch in self._batches]
        return Opened(torch.cat([o.logits for o in opened]), torch.cat([o.spelled for o in opened]))

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        return torch.cat([batch.append([token]) for batch, token in zip(self._batches, tokens, strict=True)])

    def fork(self) -> Apart:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        return Apart([batch.fork() for batch in self._batches])

    def cached(self) -> Iterator[torch.Tensor]:
        """Everything that is kept of what was read, a tensor [rows, ...] for each part of it."""
        return (torch.cat(parts) for parts in zip(*(batch.cached() for batch in self._batches), strict=True))

    def stem(self) -> Stem | None:
        """Nothing: a tree reads all rows in one pass."""
        return None


def column_parts(columns: int, rows: int, at_once: int) -> list[slice]:
    """Cut columns into parts of at most `at_once` tokens over all rows, as equal as can be."""
    parts = -(-columns * rows // max(at_once, rows)) or 1
    step = -(-columns // parts)
    return [slice(start, min(start + step, columns)) for start in range(0, columns, step)]


def in_parts(sizes: Sequence[int], most: int, count: int | None = None) -> Iterator[list[int]]:
    """Cut things of these sizes into parts, in order.

    Args:
        sizes: in tokens.
        most: how many tokens a part has at most; a longer thing is a part by itself.
        count: how many things it has at most; None for any number.

    Returns:
        The places of each part.
    """
    part: list[int] = []
    tokens = 0
    for place, size in enumerate(sizes):
        if part and (len(part) == count or tokens + size > most):
            yield part
            part, tokens = [], 0
        part.append(place)
        tokens += size
    if part:
        yield part


class PlainBatch:
    """Left-padded rows of one width. One column of padding at least, as an all-ones mask would be dropped.

    Args:
        lm: the model.
        prompts: token ids per row.
        width: columns of the batch, more than the longest row has tokens.
        at_once: how many tokens are read in one forward pass.
        padding: how many constant rows stand behind the prompts'.
    """

    def __init__(
        self, lm: CausalLM, prompts: Sequence[Sequence[int]], width: int, at_once: int, padding: int = 0
    ) -> None:
        self._lm, self._at_once = lm, at_once
        self.rows = len(prompts)
        prompts = [*prompts, *[_CONSTANT] * padding]
        lengths = torch.tensor([len(ids) for ids in prompts])
        ids = torch.zeros((len(prompts), width), dtype=torch.long)
        for row, tokens in enumerate(prompts):
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
        self._mask = (torch.arange(width) >= width - lengths[:, None]).long().to(lm.device)
        self._ids = ids.to(lm.device)
        self._next_position = lengths.to(lm.device)
        self._cache = _growing_cache(lm)

    def fork(self) -> PlainBatch:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._cache = copy.deepcopy(self._cache)
        return twin

    def cached(self) -> Iterator[torch.Tensor]:
        """Everything that the library's cache keeps of what was read, as tensors [rows, ...]."""
        whole = len(self._ids)
        for layer in self._cache.layers:
            kept = (value for _, value in sorted(vars(layer).items()))
            yield from (t[: self.rows] for t in kept if isinstance(t, torch.Tensor) and t.ndim and len(t) == whole)

    def stem(self) -> Stem | None:
        """Nothing: the library's own masks know no trees."""
        return None

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        positions = (self._mask.cumsum(1) - 1).clamp(min=0)
        for part in column_parts(self._ids.shape[1], len(self._ids), self._at_once):
            stop_if_given_up()
            logits = self._lm(self._ids[:, part], self._mask[:, : part.stop], positions[:, part], self._cache)
        first = logits[:, -1]
        spelled = torch.zeros(len(first), dtype=torch.float64, device=first.device)
        for string in strings:
            spelled += self._score(first, string)
        return Opened(first[: self.rows], spelled[: self.rows])

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        padding = [0] * (len(self._ids) - self.rows)
        column = torch.tensor([*tokens, *padding], device=self._ids.device)[:, None]
        self._mask = torch.cat([self._mask, torch.ones_like(column)], dim=1)
        logits = self._lm(column, self._mask, self._next_position[:, None], self._cache)[:, -1]
        self._next_position = self._next_position + 1
        return logits[: self.rows]

    def _score(self, first: torch.Tensor, string: Sequence[int]) -> torch.Tensor:
        """[rows] float64 probability of a whole string after the prompt; a copy reads it."""
        probability = first.softmax(-1)[:, string[0]].double()
        if rest := list(string[1:]):
            fed = torch.tensor(string[:-1], device=self._ids.device).repeat(len(first), 1)
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
