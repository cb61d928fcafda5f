"""Whether a model computes what its class says, so that it can be read in other ways.

A hook, an adapter, quantised or compiled layers, a class of somebody's own: such a model runs its own code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

_IN_A_LAYER = {
    "input_layernorm": "LlamaRMSNorm",
    "self_attn": "LlamaAttention",
    "post_attention_layernorm": "LlamaRMSNorm",
    "mlp": "LlamaMLP",
}
_LINEAR = {"self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("gate_proj", "up_proj", "down_proj")}
_NUMBERS = {"Linear": {"weight", "bias"}, "Embedding": {"weight"}}  # those that torch keeps as parameters
_SILU = ("SiLU", "SiLUActivation")
_CLASSES = ("transformers.models.llama.", "transformers.activations", "torch.nn.modules.")
_LIBRARIES = ("transformers.", "torch.")


def is_untouched_llama(model: Any) -> bool:
    """Whether a model is `LlamaForCausalLM` in single precision on a CPU, and nobody has changed how it computes."""
    if not _is(model, "LlamaForCausalLM") or torch.nn.modules.module._has_any_global_hook():
        return False
    inner = model.model
    config = inner.config
    return (
        config._attn_implementation == "sdpa"
        and ALL_ATTENTION_FUNCTIONS["sdpa"].__module__.startswith("transformers.")
        and not torch.is_autocast_enabled("cpu")
        and _is(inner, "LlamaModel")
        and _is(inner.rotary_emb, "LlamaRotaryEmbedding")
        and _is(inner.norm, "LlamaRMSNorm")
        and _is_single(inner.embed_tokens, "Embedding")
        and inner.embed_tokens.max_norm is None
        and _is_single(model.lm_head, "Linear")
        and bool([*inner.layers][: config.num_hidden_layers])
        and all(map(_is_untouched_layer, inner.layers))
    )


def _is_untouched_layer(layer: Any) -> bool:
    inside = layer._modules
    return (
        _is(layer, "LlamaDecoderLayer")
        and all(_is(inside.get(name), kind) for name, kind in _IN_A_LAYER.items())
        and all(_is_single(inside[part]._modules.get(n), "Linear") for part, names in _LINEAR.items() for n in names)
        and layer.self_attn.is_causal
        and not (layer.self_attn.training and layer.self_attn.attention_dropout)
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
    kept = module._parameters
    if kept.keys() != _NUMBERS[kind] or not _is_number(kept["weight"]):
        return False
    bias = kept.get("bias")
    return bias is None or _is_number(bias)


def _is_number(weight: Any) -> bool:
    """Whether this is a parameter in single precision on a CPU."""
    return type(weight) is torch.nn.Parameter and weight.dtype == torch.float32 and weight.device.type == "cpu"
