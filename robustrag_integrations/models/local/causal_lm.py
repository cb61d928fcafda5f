"""A transformers causal language model as a function: tokens in, float32 logits out, keys and values into a cache."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from typing import Any

import torch

from robustrag_integrations.models.local.kernels import decoding_kernels, is_large
from robustrag_integrations.models.local.memory import memory_explained
from robustrag_integrations.models.local.slab import Slab

_ROPE_WITHOUT_SWITCH = ("default", "linear", "yarn", "llama3", "proportional")
_NO_LIMIT = 1_000_000


class CausalLM:
    """Calls a model's forward pass the same way whatever its architecture; the model is left as it is."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.accepts = frozenset(inspect.signature(model.forward).parameters)

    @property
    def config(self) -> Any:
        """The configuration of the language model, without those of vision towers and the like."""
        config = self.model.config
        return config.get_text_config() if hasattr(config, "get_text_config") else config

    @property
    def device(self) -> torch.device:
        """Where token ids go."""
        device: torch.device = self.model.get_input_embeddings().weight.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        dtype: torch.dtype = self.model.get_input_embeddings().weight.dtype
        return dtype

    @property
    def _large(self) -> bool:
        return is_large(self.model.get_input_embeddings().weight)

    @property
    def window(self) -> int:
        """How many tokens a row may have in all.

        Some position encodings switch to other frequencies for the whole batch once its longest row passes the length
        the model was trained with. A passage could then move every other row, so that length is the limit.
        """
        config = self.config
        limit = int(getattr(config, "max_position_embeddings", None) or _NO_LIMIT)
        for rope in _rope_parameters(config):
            if rope.get("rope_type", "default") not in _ROPE_WITHOUT_SWITCH:
                trained = rope.get("original_max_position_embeddings")
                limit = min(limit, int(trained or getattr(config, "original_max_position_embeddings", None) or limit))
        return limit

    def memory_explained(self, rows: int, columns: int) -> AbstractContextManager[None]:
        """Have an out-of-memory error say how many rows of how many columns would have fitted."""
        return memory_explained(self.device, rows, columns, self.bytes_per_token)

    def bytes_per_token(self) -> int:
        """Keys and values that one token of one row takes in the cache, in bytes."""
        config = self.config
        heads = int(config.num_attention_heads)
        shared = int(getattr(config, "num_key_value_heads", None) or heads)
        width = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
        return 2 * int(config.num_hidden_layers) * shared * width * int(self.dtype.itemsize)

    def fingerprint(self) -> tuple[object, ...]:
        """Changes when weights are replaced, moved, cast or written in place."""
        return tuple((p.data_ptr(), -1 if p.is_inference() else p._version) for p in self.model.parameters())

    @torch.inference_mode()
    def __call__(
        self, ids: torch.Tensor, mask: Any, positions: torch.Tensor, cache: Any, *, keep: int | torch.Tensor = 1
    ) -> torch.Tensor:
        """Read tokens.

        Args:
            ids: [rows, columns] token ids.
            mask: what transformers takes as attention mask; None where each token sees all before it.
            positions: [rows, columns] places of the tokens in their own prompts.
            cache: the keys and values so far; grows by these columns.
            keep: for how many of the last columns logits are wanted, or [K] which columns.

        Returns:
            [rows, keep, V] float32 logits.
        """
        optional = {"position_ids": positions, "logits_to_keep": keep}
        columns = getattr(cache, "capacity", 0) or cache.get_seq_length() + ids.shape[1]
        transposes = self._large and getattr(cache, "transposes", True)
        kernels = decoding_kernels(ids.numel(), keep, transposes)
        with self.memory_explained(len(ids), columns), kernels:
            output = self.model(
                input_ids=ids,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
                **{name: value for name, value in optional.items() if name in self.accepts},
            )
        if isinstance(cache, Slab):
            cache.check_all_was_read()
        logits: torch.Tensor = output.logits
        if "logits_to_keep" not in self.accepts:
            logits = logits[:, keep if isinstance(keep, torch.Tensor) else slice(-keep, None)]
        return logits.float()


def _rope_parameters(config: Any) -> list[dict[str, Any]]:
    """The settings of the rotary position encoding, one for each kind of layer."""
    found = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return [v for v in found.values() if isinstance(v, dict)] or [found]
