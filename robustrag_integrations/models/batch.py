"""Rows of prompts in a model's forward passes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from robustrag_integrations.models.encoding import Encoded
from robustrag_integrations.models.packing import Stem


class Batch:
    """Rows of one width in a model's forward pass, with a cache that grows by one token per row at a time."""

    def __init__(self, model: Any, encoded: Sequence[Encoded], width: int) -> None:
        self._model = model
        device: torch.device = model.get_input_embeddings().weight.device
        lengths = torch.tensor([len(e.ids) for e in encoded])
        ids = torch.zeros((len(encoded), width), dtype=torch.long)
        for row, e in enumerate(encoded):
            ids[row, width - len(e.ids) :] = torch.tensor(e.ids)
        columns = torch.arange(width)
        self._mask = (columns >= width - lengths[:, None]).long().to(device)
        self._ids = ids.to(device)
        self._next_position = lengths.to(device)
        self._cache = DynamicCache()
        self._accepts = set(inspect.signature(model.forward).parameters)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._ids)

    def fork(self) -> Batch:
        """A copy that can be advanced on its own."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._cache = copy.deepcopy(self._cache)
        return twin

    def stem(self) -> Stem:
        """What a tree of continuations can grow on; the batch itself stays as it is."""
        return Stem(self._model, self.fork()._cache, self._mask, self._next_position)

    @torch.inference_mode()
    def prefill(self) -> torch.Tensor:
        """[rows, V] float32 logits of the first answer token."""
        positions = (self._mask.cumsum(1) - 1).clamp(min=0)
        return self._forward(self._ids, self._mask, positions)[:, -1]

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        column = torch.tensor(tokens, device=self._ids.device)[:, None]
        self._mask = torch.cat([self._mask, torch.ones_like(column)], dim=1)
        logits = self._forward(column, self._mask, self._next_position[:, None])[:, -1]
        self._next_position = self._next_position + 1
        return logits

    @torch.inference_mode()
    def score(self, first: torch.Tensor, continuation: Sequence[int]) -> torch.Tensor:
        """[rows] float64 probability of a whole token sequence after the prompt; the batch stays as it was.

        Args:
            first: [rows, V] logits of the first answer token.
            continuation: the tokens, at least one.
        """
        logprob = first.log_softmax(-1)[:, continuation[0]].double()
        if rest := list(continuation[1:]):
            fed = torch.tensor(continuation[:-1], device=self._ids.device).repeat(self.rows, 1)
            mask = torch.cat([self._mask, torch.ones_like(fed)], dim=1)
            positions = self._next_position[:, None] + torch.arange(fed.shape[1], device=fed.device)
            logits = self._forward(fed, mask, positions, keep=fed.shape[1]).log_softmax(-1)
            self._cache.crop(-fed.shape[1])
            for t, token in enumerate(rest):
                logprob = logprob + logits[:, t, token].double()
        return logprob.exp()

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, keep: int = 1) -> torch.Tensor:
        optional = {"position_ids": positions, "logits_to_keep": keep}
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
            **{name: value for name, value in optional.items() if name in self._accepts},
        )
        logits: torch.Tensor = output.logits[:, -keep:].float()
        return logits
