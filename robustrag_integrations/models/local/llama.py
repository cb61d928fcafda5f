"""The forward pass of a model of Llama's kind, operation by operation.

A small model spends as much time between its operations as in them: calls of modules, checks, options that nobody
asked for. A prompt that is read by itself pays that for a few dozen tokens. This is what `LlamaForCausalLM` computes,
and nothing besides; which products and which attention are used is decided where it is for all models.

A model that anybody has changed (a hook, an adapter, quantised or compiled layers) runs its own code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from robustrag_integrations.models.local.products import Linear, linear

_AGREES = 2.0**-12  # of the largest logit: more than float noise, less than any difference in what is computed
_IN_A_LAYER = {
    "input_layernorm": "LlamaRMSNorm",
    "self_attn": "LlamaAttention",
    "post_attention_layernorm": "LlamaRMSNorm",
    "mlp": "LlamaMLP",
}
_LINEAR = {"self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("gate_proj", "up_proj", "down_proj")}
_SILU = ("SiLU", "SiLUActivation")
_CLASSES = ("transformers.models.llama.", "transformers.activations", "torch.nn.modules.")
_LIBRARIES = ("transformers.", "torch.")

_Turn = tuple[torch.Tensor, torch.Tensor]


def is_untouched(model: Any) -> bool:
    """Whether a model is `LlamaForCausalLM` in single precision on a CPU, and nobody has changed how it computes."""
    if not _is(model, "LlamaForCausalLM") or torch.nn.modules.module._has_any_global_hook():
        return False
    inner = model.model
    config = inner.config
    return (
        config._attn_implementation == "sdpa"
        and ALL_ATTENTION_FUNCTIONS["sdpa"].__module__.startswith("transformers.")
        and not (model.training and config.attention_dropout)
        and not torch.is_autocast_enabled("cpu")
        and _is(inner, "LlamaModel")
        and _is(inner.rotary_emb, "LlamaRotaryEmbedding")
        and _is(inner.norm, "LlamaRMSNorm")
        and _is_single(inner.embed_tokens, "Embedding")
        and inner.embed_tokens.max_norm is None
        and _is_single(model.lm_head, "Linear")
        and bool(inner.layers[: config.num_hidden_layers])
        and all(map(_is_untouched_layer, inner.layers))
    )


def _is_untouched_layer(layer: Any) -> bool:
    inside = layer._modules
    return (
        _is(layer, "LlamaDecoderLayer")
        and all(_is(inside.get(name), kind) for name, kind in _IN_A_LAYER.items())
        and all(_is_single(inside[part]._modules.get(n), "Linear") for part, names in _LINEAR.items() for n in names)
        and layer.self_attn.is_causal
        and any(_is(inside["mlp"]._modules.get("act_fn"), kind) for kind in _SILU)
    )


def _is(module: Any, kind: str) -> bool:
    """Whether a module is of this class of transformers or torch, and runs its own code, as it is written."""
    made = type(module)
    if (
        made.__name__ != kind
        or not made.__module__.startswith(_CLASSES)
        or not _is_as_written(made.forward, made.__call__)
    ):
        return False
    own = module.__dict__
    return not (
        own["_forward_hooks"] or own["_forward_pre_hooks"] or "forward" in own or own.get("_compiled_call_impl")
    )


@lru_cache(maxsize=64)
def _is_as_written(*methods: Any) -> bool:
    """Whether the methods of a class are those of a library: nobody has put others there."""
    return all(method.__module__.startswith(_LIBRARIES) for method in methods)


def _is_single(module: Any, kind: str) -> bool:
    if not _is(module, kind):
        return False
    weight = module._parameters["weight"]
    return type(weight) is torch.nn.Parameter and weight.dtype == torch.float32 and weight.device.type == "cpu"


@torch.inference_mode()
def agrees_with_its_own(model: Any) -> bool:
    """Whether `forward` gives the logits of the model's own code, for a short text."""
    ids = torch.arange(8)[None] % model.config.vocab_size
    theirs = model(input_ids=ids, use_cache=False).logits
    ours = forward(model, linear, ids, None, torch.arange(8)[None], None, len(ids[0]))
    return bool((ours - theirs).abs().max() <= _AGREES * theirs.abs().max())


def forward(
    model: Any,
    product: Linear,
    ids: torch.Tensor,
    mask: torch.Tensor | None,
    positions: torch.Tensor,
    cache: Any,
    keep: int | torch.Tensor,
) -> torch.Tensor:
    """Read tokens.

    Args:
        model: untouched.
        product: how products are computed: `linear`, or as it is called.
        ids: [R, T] token ids.
        mask: [R, 1, T, columns], added to the scores; None where each token sees all before it.
        positions: [R, T] places of the tokens in their own prompts.
        cache: the keys and values so far; grows by these columns. None for none.
        keep: for how many of the last columns logits are wanted, or [K] which columns.

    Returns:
        [R, keep, V] logits.
    """
    return _Pass(product, mask, cache).read(model, ids, positions, keep)


class _Pass:
    """One forward pass: what its layers have in common."""

    def __init__(self, product: Linear, mask: torch.Tensor | None, cache: Any) -> None:
        self._product_of, self._mask, self._cache = product, mask, cache

    def read(self, model: Any, ids: torch.Tensor, positions: torch.Tensor, keep: int | torch.Tensor) -> torch.Tensor:
        """[R, keep, V] logits."""
        inner = model.model
        hidden = functional.embedding(ids, inner.embed_tokens.weight)
        turn = _turn(*inner.rotary_emb(hidden, positions))
        *before, last = inner.layers[: model.config.num_hidden_layers]
        for index, layer in enumerate(before):
            hidden = self._layer(layer, hidden, turn, index, ids.shape[1])
        hidden = self._layer(last, hidden, turn, len(before), self._last_columns(keep, ids.shape[1]))
        wanted = hidden[:, keep if isinstance(keep, torch.Tensor) else slice(-keep, None)]
        return self._product(model.lm_head, _scaled(inner.norm, wanted))

    def _last_columns(self, keep: int | torch.Tensor, tokens: int) -> int:
        """How many of the last columns the last layer is to be computed for; of the others it needs keys and values."""
        if isinstance(keep, torch.Tensor) or (self._mask is None and keep > 1):
            return tokens
        return min(keep, tokens)

    def _layer(self, layer: Any, hidden: torch.Tensor, turn: _Turn, index: int, columns: int) -> torch.Tensor:
        """[R, columns, width]: the last columns after this layer."""
        attended = self._attention(layer.self_attn, _scaled(layer.input_layernorm, hidden), turn, index, columns)
        hidden = hidden[:, -columns:] + attended
        return hidden + self._feed_forward(layer.mlp, _scaled(layer.post_attention_layernorm, hidden))

    def _product(self, layer: Any, hidden: torch.Tensor) -> torch.Tensor:
        return self._product_of(hidden, layer.weight, layer.bias)

    def _feed_forward(self, layer: Any, hidden: torch.Tensor) -> torch.Tensor:
        gate = functional.silu(self._product(layer.gate_proj, hidden))
        return self._product(layer.down_proj, gate.mul_(self._product(layer.up_proj, hidden)))

    def _attention(self, layer: Any, hidden: torch.Tensor, turn: _Turn, index: int, columns: int) -> torch.Tensor:
        asking = hidden[:, -columns:]
        query, key, value = (
            self._product(part, of).view(*of.shape[:2], -1, layer.head_dim).transpose(1, 2)
            for part, of in ((layer.q_proj, asking), (layer.k_proj, hidden), (layer.v_proj, hidden))
        )
        query, key = _turned(query, _of_last(turn, columns)), _turned(key, turn)
        if self._cache is not None:
            key, value = self._cache.update(key, value, index)
        found = functional.scaled_dot_product_attention(
            query,
            _for_heads(key, query.shape[1]),
            _for_heads(value, query.shape[1]),
            attn_mask=None if self._mask is None else self._mask[:, :, -columns:],
            scale=layer.scaling,
            is_causal=self._mask is None and columns > 1,
        )
        return self._product(layer.o_proj, found.transpose(1, 2).reshape(*asking.shape[:2], -1))


def _turn(cos: torch.Tensor, sin: torch.Tensor) -> _Turn:
    """[R, 1, T, width] factors for the numbers of a head, and for those of its other half."""
    low, high = sin.chunk(2, dim=-1)
    return cos[:, None], torch.cat([-low, high], dim=-1)[:, None]


def _of_last(turn: _Turn, columns: int) -> _Turn:
    cos, sin = turn
    return cos[:, :, -columns:], sin[:, :, -columns:]


def _turned(numbers: torch.Tensor, turn: _Turn) -> torch.Tensor:
    """[R, heads, T, width] rotated by their positions."""
    cos, sin = turn
    return numbers * cos + numbers.roll(numbers.shape[-1] // 2, -1) * sin


def _scaled(norm: Any, hidden: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(hidden, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _for_heads(shared: torch.Tensor, heads: int) -> torch.Tensor:
    """[R, heads, columns, width]: keys or values that several heads of a query share, for each of them."""
    rows, groups, columns, width = shared.shape
    if groups == heads:
        return shared
    return shared[:, :, None].expand(rows, groups, heads // groups, columns, width).reshape(rows, heads, columns, width)
