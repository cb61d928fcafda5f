"""A transformers causal language model as a function, its attention masks, and what couples rows in it by design."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from robustrag_integrations._util.errors import ModelError

_NO_LIMIT = 1_000_000
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory")  # on a CPU
_FIXED_FREQUENCIES = ("default", "linear", "yarn", "llama3", "proportional")  # whatever the longest row's length
_KINDS = ("full_attention", "sliding_attention")
_SLIDING_THROUGHOUT = ("mistral", "mixtral", "phi3", "starcoder2")  # no list of layer kinds: a window holds for all
_IMPLEMENTATIONS = ("sdpa", "eager")
_DYNAMIC_QUANTISATION = ("torch.ao.nn.quantized.dynamic", "torch.ao.nn.intrinsic.quantized.dynamic")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


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
    def _embeddings(self) -> Any:
        return self.model.get_input_embeddings().weight

    @property
    def device(self) -> torch.device:
        """The device for token ids."""
        return self._embeddings.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        return self._embeddings.dtype

    @property
    def window(self) -> int:
        """The largest number of tokens in a row.

        Some position encodings switch to other frequencies for the whole batch once its longest row passes the length
        the model was trained with: a passage could then move every other row.
        """
        config = self.config
        limit = int(getattr(config, "max_position_embeddings", None) or 0)
        limit = limit if limit > 0 else _NO_LIMIT
        ropes = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
        for rope in [v for v in ropes.values() if isinstance(v, dict)] or [ropes]:  # one for each kind of layer
            if rope.get("rope_type", "default") not in _FIXED_FREQUENCIES:
                trained = rope.get("original_max_position_embeddings")
                limit = min(limit, int(trained or getattr(config, "original_max_position_embeddings", None) or limit))
        return limit

    def fingerprint(self) -> tuple[object, ...]:
        """Return a value that changes when weights are replaced, moved, cast or written in place, and on `forget`."""
        written = ((w.data_ptr(), -1 if w.is_inference() else w._version) for w in self.model.parameters())
        return (self._forgotten, *written)

    def forget(self) -> None:
        """Change the fingerprint, so that earlier results count as another model's."""
        self._forgotten += 1

    @torch.inference_mode()
    def __call__(
        self, ids: torch.Tensor, mask: Any, positions: torch.Tensor, cache: Any, *, keep: int = 1
    ) -> torch.Tensor:
        """Run a forward pass over [rows, columns] token ids at these positions in their own prompts.

        Args:
            ids, positions: the tokens.
            mask: an attention mask as transformers takes it; None where each token sees all before it.
            cache: the keys and values so far; grows by these columns.
            keep: the number of last columns to return logits for.

        Returns:
            [rows, keep, V] float32 logits.
        """
        given = {"position_ids": positions, "logits_to_keep": keep}
        given = {name: value for name, value in given.items() if name in self.accepts}
        with memory_explained():
            output = self.model(
                input_ids=ids, attention_mask=mask, use_cache=True, **{self.cache_argument: cache, **given}
            )
        logits: torch.Tensor = output.logits
        if "logits_to_keep" not in self.accepts:
            logits = logits[:, -keep:]
        return logits.float()


@contextmanager
def memory_explained() -> Iterator[None]:
    """Say in an out-of-memory error what to lower."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in _OUT_OF_MEMORY):
            raise ModelError(
                "out of memory: ask about fewer passages, put several into a source, or lower max_context_tokens, "
                "max_new_tokens or prefill_tokens"
            ) from error
        raise


class NoExplicitMasks(Exception):
    """A mask cannot determine which tokens the model's attention sees; the message says why."""


@dataclass(frozen=True)
class MaskRules:
    """Attention masks in the form that a model takes."""

    windows: Mapping[str, int | None]  # per kind of attention layer, how far back it sees, in tokens; None: no limit
    dtype: torch.dtype

    @property
    def plain(self) -> bool:
        """True if every layer sees all tokens before a token, however far back."""
        return not any(self.windows.values())

    @classmethod
    def of(cls, lm: CausalLM) -> MaskRules:
        """Derive the rules from a model's configuration."""
        config = lm.config
        implementation = getattr(config, "_attn_implementation", None)
        if implementation not in _IMPLEMENTATIONS:
            raise NoExplicitMasks(f"attention implementation {implementation!r} takes no explicit mask")
        if missing := {"position_ids", lm.cache_argument, "attention_mask"} - lm.accepts:
            raise NoExplicitMasks(f"its forward pass takes no {' and no '.join(sorted(missing))}")
        windows = {kind: config.sliding_window if kind == "sliding_attention" else None for kind in _kinds(config)}
        return cls(windows, lm.dtype)

    def mask(self, queries: torch.Tensor, keys: torch.Tensor, visible: torch.Tensor | None = None) -> Any:
        """Build an attention mask as the model takes it; always explicit, whatever the rows hold.

        Args:
            queries: [rows, Q] positions of the tokens that are read now.
            keys: [rows, K] positions of everything in the cache, those tokens last.
            visible: [C, C], which of the last C columns each of the last C tokens may see, apart from their order.
        """
        ahead = queries[:, :, None] - keys[:, None, :]
        seen = ahead >= 0
        if visible is not None:
            seen[:, queries.shape[1] - len(visible) :, keys.shape[1] - len(visible) :] &= visible
        shown = {kind: seen if w is None else seen & (ahead < w) for kind, w in self.windows.items()}
        least = torch.finfo(self.dtype).min
        masks = {k: torch.zeros_like(s, dtype=self.dtype).masked_fill_(~s, least)[:, None] for k, s in shown.items()}
        return masks if len(masks) > 1 else next(iter(masks.values()))


def _kinds(config: Any) -> tuple[str, ...]:
    listed = getattr(config, "layer_types", None)
    if listed:
        if unknown := sorted(set(listed) - set(_KINDS)):
            raise NoExplicitMasks(f"it has layers of the kind {unknown[0]!r}")
        return tuple(sorted(set(listed)))
    if "local" in (getattr(config, "attention_layers", None) or ()):
        raise NoExplicitMasks("it has layers that see a window of columns, wherever its tokens stand in them")
    if getattr(config, "sliding_window", None) is None:
        return ("full_attention",)
    if config.model_type not in _SLIDING_THROUGHOUT:
        raise NoExplicitMasks("it has a sliding window and does not say in which layers")
    return ("sliding_attention",)


def why_coupled(lm: CausalLM) -> str | None:
    """Return the reason why a model's rows depend on each other's content by design; None if none is known.

    The isolation probe may miss such coupling: its neighbours need not hold the largest activation of a batch, nor send
    their tokens to the target's experts.
    """
    kinds = {type(module) for module in lm.model.modules()}
    if any(kind.__module__.startswith(_DYNAMIC_QUANTISATION) or kind.__name__ == "Linear8bitLt" for kind in kinds):
        return "it quantises activations by looking at all rows"
    if any((getattr(lm.config, field, None) or 0) > 1 for field in _EXPERTS):
        return "it is a mixture of experts: which tokens an expert reads together depends on all rows"
    return None
