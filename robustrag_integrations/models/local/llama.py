"""The forward pass of a model of Llama's kind, operation by operation.

A small model spends as much time between its operations as in them: calls of modules, checks, options that nobody
asked for. A prompt that is read by itself pays that for a few dozen tokens. This is what `LlamaForCausalLM` computes,
and nothing besides; which products and which attention are used is decided where it is for all models.

A model that anybody has changed runs its own code (`untouched`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from transformers.cache_utils import Cache

from robustrag_integrations.models.local.attention_cache import written
from robustrag_integrations.models.local.kernels import for_heads
from robustrag_integrations.models.local.laid_weights import LaidWeights, Layers
from robustrag_integrations.models.local.products import Linear, linear

_AGREES = 2.0**-12  # of the largest logit: more than float noise, less than any difference in what is computed
_Turn = tuple[torch.Tensor, torch.Tensor]


@torch.inference_mode()
def agrees_with_its_own(model: Any) -> bool:
    """Whether `forward` gives the logits of the model's own code, for a short text."""
    ids = torch.arange(8)[None] % model.config.vocab_size
    theirs = model(input_ids=ids, use_cache=False).logits
    ours = forward(model, Products(linear), ids, None, torch.arange(8)[None], None, len(ids[0]))
    return bool((ours - theirs).abs().max() <= _AGREES * theirs.abs().max())


def layers_of(model: Any) -> Layers:
    """The layers of an untouched model that are given the same numbers; those with biases and those without apart."""
    found: dict[Any, tuple[Any, ...]] = {model.lm_head: (model.lm_head,)}
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        found[attention] = attention.q_proj, attention.k_proj, attention.v_proj
        found[mlp] = mlp.gate_proj, mlp.up_proj
        found |= {last: (last,) for last in (attention.o_proj, mlp.down_proj)}
    return {asking: layers for asking, layers in found.items() if len({one.bias is None for one in layers}) == 1}


@dataclass(frozen=True)
class Products:
    """How products with a model's weights are computed.

    Attributes:
        own: `linear`, or as it is called.
        laid: the weights that are laid side by side; None for none.
        as_for: the number of rows to choose between the two for, as `linear` has it.
    """

    own: Linear
    laid: LaidWeights | None = None
    as_for: int | None = None

    def of(self, asking: Any, hidden: torch.Tensor, *layers: Any) -> torch.Tensor:
        """[R, columns, sum of O]: what layers make of the same numbers, one behind the other.

        Args:
            asking: the module that has the layers, or the only layer.
            hidden: [R, columns, I].
            layers: linear.
        """
        found = None if self.laid is None else self.laid.product(asking, hidden, self.as_for)
        if found is not None:
            return found
        each = [self.own(hidden, layer.weight, layer.bias) for layer in layers]
        return torch.cat(each, -1) if len(each) > 1 else each[0]


def forward(
    model: Any,
    products: Products,
    ids: torch.Tensor,
    mask: torch.Tensor | None,
    positions: torch.Tensor,
    cache: Cache | None,
    keep: int | torch.Tensor,
) -> torch.Tensor:
    """Read tokens.

    Args:
        model: untouched.
        products: how they are computed.
        ids: [R, T] token ids.
        mask: [R, 1, T, columns], added to the scores; None where each token sees all before it.
        positions: [R, T] places of the tokens in their own prompts.
        cache: the keys and values so far; grows by these columns. None for none.
        keep: for how many of the last columns logits are wanted, or [K] which columns.

    Returns:
        [R, keep, V] logits.
    """
    return _Pass(products, mask, cache).read(model, ids, positions, keep)


class _Pass:
    """One forward pass: what its layers have in common."""

    def __init__(self, products: Products, mask: torch.Tensor | None, cache: Cache | None) -> None:
        self._products, self._mask, self._cache = products, mask, cache

    def read(self, model: Any, ids: torch.Tensor, positions: torch.Tensor, keep: int | torch.Tensor) -> torch.Tensor:
        """[R, keep, V] logits."""
        inner, tokens = model.model, ids.shape[1]
        hidden = functional.embedding(ids, inner.embed_tokens.weight)
        turn = _turn(*inner.rotary_emb(hidden, positions))
        *before, last = [*inner.layers][: inner.config.num_hidden_layers]
        for index, layer in enumerate(before):
            hidden = self._layer(layer, hidden, turn, index)
        columns = self._last_columns(keep, tokens)
        hidden = self._layer(last, hidden, turn, len(before), columns if columns < tokens else None)
        wanted = hidden[:, keep if isinstance(keep, torch.Tensor) else slice(-keep, None)]
        return self._products.of(model.lm_head, _scaled(inner.norm, wanted), model.lm_head)

    def _last_columns(self, keep: int | torch.Tensor, tokens: int) -> int:
        """How many of the last columns the last layer is to be computed for; of the others it needs keys and values."""
        if isinstance(keep, torch.Tensor) or (self._mask is None and keep > 1):
            return tokens
        return min(keep, tokens)

    def _layer(
        self, layer: Any, hidden: torch.Tensor, turn: _Turn, index: int, columns: int | None = None
    ) -> torch.Tensor:
        """[R, columns, width]: the last columns after this layer; None for all."""
        attended = self._attention(layer.self_attn, _scaled(layer.input_layernorm, hidden), turn, index, columns)
        hidden = attended.add_(hidden if columns is None else hidden[:, -columns:])
        return self._feed_forward(layer.mlp, _scaled(layer.post_attention_layernorm, hidden)).add_(hidden)

    def _feed_forward(self, layer: Any, hidden: torch.Tensor) -> torch.Tensor:
        gate, up = self._products.of(layer, hidden, layer.gate_proj, layer.up_proj).chunk(2, -1)
        return self._products.of(layer.down_proj, functional.silu(gate).mul_(up), layer.down_proj)

    def _attention(
        self, layer: Any, hidden: torch.Tensor, turn: _Turn, index: int, columns: int | None
    ) -> torch.Tensor:
        mask, width = self._mask, layer.head_dim
        asked = self._products.of(layer, hidden, layer.q_proj, layer.k_proj, layer.v_proj)
        heads = asked.unflatten(-1, (-1, width)).transpose(1, 2)
        groups = layer.k_proj.weight.shape[0] // width
        turned = _turned(heads[:, :-groups], turn)
        query, key, value = turned[:, :-groups], turned[:, -groups:], heads[:, -groups:]
        if columns is not None:
            query, mask = query[:, :, -columns:], None if mask is None else mask[:, :, -columns:]
        (key, value), attention = written(self._cache, key, value, index)
        found = attention(
            query,
            for_heads(key, query.shape[1] // groups),
            for_heads(value, query.shape[1] // groups),
            attn_mask=mask,
            scale=layer.scaling,
            is_causal=mask is None and query.shape[2] > 1,
        )
        return self._products.of(layer.o_proj, found.transpose(1, 2).flatten(2), layer.o_proj)


def _turn(cos: torch.Tensor, sin: torch.Tensor) -> _Turn:
    """[R, 1, T, width] factors for the numbers of a head, and for those of its other half."""
    low, high = sin.chunk(2, dim=-1)
    return cos[:, None], torch.cat([-low, high], dim=-1)[:, None]


def _turned(numbers: torch.Tensor, turn: _Turn) -> torch.Tensor:
    """[R, heads, T, width] rotated by their positions."""
    cos, sin = turn
    return (numbers * cos).add_(numbers.roll(numbers.shape[-1] // 2, -1).mul_(sin))


def _scaled(norm: Any, hidden: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(hidden, norm.weight.shape, norm.weight, norm.variance_epsilon)
