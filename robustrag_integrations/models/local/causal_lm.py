"""A transformers causal language model as a function: tokens in, float32 logits out, keys and values into a cache."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.local.cache import BatchKVCache
from robustrag_integrations.models.local.products import fast_products

_NO_LIMIT = 1_000_000
_SAMPLED = 1024  # numbers per weight
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory")  # on a CPU
_FIXED_FREQUENCIES = ("default", "linear", "yarn", "llama3", "proportional")  # whatever the longest row's length


class CausalLM:
    """Calls a model's forward pass the same way whatever its architecture; the model is left as it is."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.accepts = frozenset(inspect.signature(model.forward).parameters)
        self.cache_argument = "cache" if "cache" in self.accepts else "past_key_values"  # before transformers 5.24
        self._forgotten = 0

    @property
    def config(self) -> Any:
        """The configuration of the language model, without those of vision towers and the like."""
        config = self.model.config
        return config.get_text_config() if hasattr(config, "get_text_config") else config

    @property
    def device(self) -> torch.device:
        """The device for token ids."""
        device: torch.device = self.model.get_input_embeddings().weight.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        dtype: torch.dtype = self.model.get_input_embeddings().weight.dtype
        return dtype

    @property
    def window(self) -> int:
        """The largest number of tokens in a row.

        Some position encodings switch to other frequencies for the whole batch once its longest row passes the length
        the model was trained with. A passage could then move every other row, so that length is the limit.
        """
        config = self.config
        limit = int(getattr(config, "max_position_embeddings", None) or 0)
        limit = limit if limit > 0 else _NO_LIMIT
        for rope in _rope_parameters(config):
            if rope.get("rope_type", "default") not in _FIXED_FREQUENCIES:
                trained = rope.get("original_max_position_embeddings")
                limit = min(limit, int(trained or getattr(config, "original_max_position_embeddings", None) or limit))
        return limit

    def fingerprint(self) -> tuple[object, ...]:
        """Return a value that changes when weights are replaced, moved, cast or written in place, and on `forget`."""
        written = ((w.data_ptr(), -1 if w.is_inference() else w._version) for w in self.model.parameters())
        return (self._forgotten, *written)

    @torch.inference_mode()
    def sample_of_weights(self) -> str:
        """Hash some numbers of every weight: this shows changes that torch does not count, such as a merged adapter."""
        digest = hashlib.blake2b(digest_size=16)
        for weight in self.model.parameters():
            flat = weight.reshape(-1)
            some = flat[:: max(1, len(flat) // _SAMPLED)][:_SAMPLED]
            digest.update(some.float().cpu().numpy().tobytes())
        return digest.hexdigest()

    def forget(self) -> None:
        """Change the fingerprint, so that earlier results count as another model's."""
        self._forgotten += 1

    @torch.inference_mode()
    def __call__(
        self, ids: torch.Tensor, mask: Any, positions: torch.Tensor, cache: Any, *, keep: int | torch.Tensor = 1
    ) -> torch.Tensor:
        """Run a forward pass over tokens.

        Args:
            ids: [rows, columns] token ids.
            mask: an attention mask as transformers takes it; None where each token sees all before it.
            positions: [rows, columns] positions of the tokens in their own prompts.
            cache: the keys and values so far; grows by these columns.
            keep: the number of last columns to return logits for, or [K] indices of columns.

        Returns:
            [rows, keep, V] float32 logits.
        """
        given = {"position_ids": positions, "logits_to_keep": keep}
        given = {name: value for name, value in given.items() if name in self.accepts}
        with memory_explained(), fast_products(ids.numel(), self.model):
            output = self.model(
                input_ids=ids, attention_mask=mask, use_cache=True, **{self.cache_argument: cache, **given}
            )
        if isinstance(cache, BatchKVCache):
            cache.check_attended()
        logits: torch.Tensor = output.logits
        if "logits_to_keep" not in self.accepts:
            logits = logits[:, keep if isinstance(keep, torch.Tensor) else slice(-keep, None)]
        return logits.float()


@contextmanager
def memory_explained() -> Iterator[None]:
    """Say in an out-of-memory error what to lower.

    Raises:
        ModelError: in place of the library's error.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in _OUT_OF_MEMORY):
            raise ModelError(
                "out of memory: ask about fewer passages, put several into a group, or lower max_context_tokens, "
                "max_new_tokens or prefill_tokens"
            ) from error
        raise


def _rope_parameters(config: Any) -> list[dict[str, Any]]:
    """Return the settings of the rotary position encoding, one for each kind of layer."""
    found = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return [v for v in found.values() if isinstance(v, dict)] or [found]
