"""One prompt in a batch of its own, read with the library's own masks and cache, for models that share no prefixes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from transformers import DynamicCache

from robustrag_integrations.models.local.batch import Opened
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.causal_lm import CausalLM


class PlainPrompt:
    """A batch of one prompt, without padding.

    Args:
        lm: the model.
        ids: the prompt's tokens, read in one forward pass: not every layer of the library reads on in parts.
    """

    rows = 1

    def __init__(self, lm: CausalLM, ids: Sequence[int]) -> None:
        self._lm, self._ids = lm, tuple(ids)
        self._tokens = 0
        kinds = set(getattr(lm.config, "layer_types", None) or ())  # layers that are not attention need a special kind
        attends = kinds <= {"full_attention", "sliding_attention"}
        self._cache = DynamicCache() if attends else DynamicCache(config=lm.config)

    def fork(self) -> PlainPrompt:
        """Return an independent copy with bit-identical numbers."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._cache = copy.deepcopy(self._cache)
        return twin

    def stem(self) -> None:
        """Return None: the library's own masks cannot express trees."""

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompt, and score strings that may follow, given as tokens."""
        stop_if_cancelled()
        logits = self._read(self._ids, keep=1)
        spelled = torch.zeros(1, dtype=torch.float64, device=logits.device)
        for string in strings:
            rest = [self.fork()._read(string[:-1], keep=len(string) - 1)] if len(string) > 1 else []
            probabilities = torch.cat([logits, *rest], dim=1).softmax(-1)[0].double()
            spelled += probabilities[range(len(string)), list(string)].prod()
        return Opened(logits[:, -1], spelled)

    @torch.inference_mode()
    def behind(self, strings: Sequence[Sequence[int]]) -> Iterator[torch.Tensor]:
        """Read the prompt, and strings behind it; per string, the [1 + length, V] logits as of a `SinglePrompt`."""
        stop_if_cancelled()
        first = self._read(self._ids, keep=1)[0]
        for string in strings:
            stop_if_cancelled()
            yield torch.cat([first, self.fork()._read(string, keep=len(string))[0]])

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token; return the [1, V] float32 logits of the one after it."""
        return self._read(tokens, keep=1)[:, -1]

    def _read(self, tokens: Sequence[int], *, keep: int) -> torch.Tensor:
        """Read tokens; return the [1, keep, V] float32 logits behind the last ones."""
        device, count = self._lm.device, len(tokens)
        positions = torch.arange(self._tokens, self._tokens + count, device=device)[None]
        ids = torch.tensor([list(tokens)], device=device)
        self._tokens += count
        mask = torch.ones((1, self._tokens), dtype=torch.long, device=device)
        return self._lm(ids, mask, positions, self._cache, keep=keep)
