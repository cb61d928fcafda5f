"""Left-padded rows of prompts, each read in full, with the library's own masks."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from transformers import DynamicCache

from robustrag_integrations.models.local.batch import Opened, column_parts
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.token_tree import Stem

_CONSTANT = (0,)  # the tokens of a row of padding


class PaddedBatch:
    """Left-padded rows of one width, with at least one column of padding, as an all-ones mask would be dropped.

    Args:
        lm: the model.
        prompts: token ids per row.
        width: columns of the batch, more than the longest row has tokens.
        at_once: number of tokens that are read in one forward pass.
        padding: number of constant rows that stand behind the prompts'.
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

    def fork(self) -> PaddedBatch:
        """Return an independent copy with bit-identical numbers."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._cache = copy.deepcopy(self._cache)
        return twin

    def cached(self) -> Iterator[torch.Tensor]:
        """Yield everything in the library's cache, as tensors [rows, ...]."""
        whole = len(self._ids)
        for layer in self._cache.layers:
            kept = (value for _, value in sorted(vars(layer).items()))
            yield from (t[: self.rows] for t in kept if isinstance(t, torch.Tensor) and t.ndim and len(t) == whole)

    def stem(self) -> Stem | None:
        """Return None: the library's own masks cannot express trees."""
        return None

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        positions = (self._mask.cumsum(1) - 1).clamp(min=0)
        for part in column_parts(self._ids.shape[1], len(self._ids), self._at_once):
            stop_if_cancelled()
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
        """Return the [rows] float64 probability of a whole string after the prompt; a copy reads it."""
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
    """Return the library's cache; only layers that are not attention need a special kind."""
    kinds = set(getattr(lm.config, "layer_types", None) or ())
    return DynamicCache() if kinds <= {"full_attention", "sliding_attention"} else DynamicCache(config=lm.config)
