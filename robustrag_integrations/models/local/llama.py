"""The forward pass of a model of Llama's kind, operation by operation.

A small model spends as much time between its operations as in them: calls of modules, checks, options that nobody
asked for. A prompt that is read by itself pays that for a few dozen tokens. This is what `LlamaForCausalLM` computes,
and nothing besides; which products and which attention are used is decided where it is for all models.

A model that anybody has changed runs its own code (`untouched`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn import functional
from transformers.cache_utils import Cache

from robustrag_integrations.models.local.attention_cache import written
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.kernels import for_heads
from robustrag_integrations.models.local.laid_weights import LaidWeights, Layers
from robustrag_integrations.models.local.products import Linear, linear, whole_tokens
from robustrag_integrations.models.local.turns import Turn, Turns, turned

_VECTOR = 32  # numbers of which functions of single numbers are computed at once, or a multiple of how many
_AGREES = 2.0**-12  # of the largest logit: more than float noise, less than any difference in what is computed


class Norm(NamedTuple):
    """Scales what a layer is given: torch's `rms_norm` in fewer operations.

    Attributes:
        weight: by which numbers are multiplied once their squares add up to one.
        least: what is added to the sum of the squares.
    """

    weight: torch.Tensor
    least: float

    @classmethod
    def of(cls, module: Any) -> Norm:
        """As a module has them."""
        weight = module.weight
        width = len(weight)
        return cls(weight.detach() * width**0.5, module.variance_epsilon * width)

    def scaled(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] of the same."""
        squares = (hidden * hidden).sum(-1, keepdim=True)
        return hidden.mul(squares.add_(self.least).rsqrt_()).mul_(self.weight)


class Linears(NamedTuple):
    """Linear layers that are given the same numbers.

    Attributes:
        asking: the module that has them, or the only one.
        each: weight [O, I] and bias [O] or None of each.
    """

    asking: Any
    each: tuple[tuple[torch.Tensor, torch.Tensor | None], ...]

    @classmethod
    def of(cls, asking: Any, *layers: Any) -> Linears:
        """Of these modules; `asking` itself where there are none."""
        kept = (layer._parameters for layer in layers or (asking,))
        return cls(asking, tuple((one["weight"], one["bias"]) for one in kept))

    @property
    def numbers(self) -> int:
        """Of all weights."""
        return sum(weight.numel() for weight, _ in self.each)


class Layer(NamedTuple):
    """A decoder layer: its norms, its products, and how its heads attend.

    Attributes:
        asked: queries, keys and values.
        queries, kept: the same in two, for the last layer: queries alone; keys and values.
        attended: what attention gives.
        gated: gates and what they let through.
        down: what came through.
        width: of a head.
        groups: heads of keys and of values.
        scaling: of the scores.
    """

    before_attention: Norm
    asked: Linears
    queries: Linears
    kept: Linears
    attended: Linears
    before_gates: Norm
    gated: Linears
    down: Linears
    width: int
    groups: int
    scaling: float

    @classmethod
    def of(cls, layer: Any) -> Layer:
        """As a module has them."""
        attention, mlp = layer.self_attn, layer.mlp
        queries, keys, values = attention.q_proj, attention.k_proj, attention.v_proj
        return cls(
            Norm.of(layer.input_layernorm),
            Linears.of(attention, queries, keys, values),
            Linears.of(queries),
            Linears.of(keys, keys, values),
            Linears.of(attention.o_proj),
            Norm.of(layer.post_attention_layernorm),
            Linears.of(mlp, mlp.gate_proj, mlp.up_proj),
            Linears.of(mlp.down_proj),
            attention.head_dim,
            keys.weight.shape[0] // attention.head_dim,
            attention.scaling,
        )


class Parts(NamedTuple):
    """The parts of a model, looked up once: its modules look each of theirs up at every call.

    Attributes:
        embeddings: [V, width] of tokens.
        asked: [V, sum of O] what the first layer asks of each token, before rotation; None where it is not known.
        turns: the rotations of places.
        layers: in order.
        norm: before the head.
        head: gives logits.
        largest: numbers of the largest weight of the layers.
    """

    embeddings: torch.Tensor
    asked: torch.Tensor | None
    turns: Turns
    layers: tuple[Layer, ...]
    norm: Norm
    head: Linears
    largest: int

    @classmethod
    def of(cls, model: Any, laid: LaidWeights | None = None) -> Parts:
        """As an untouched model has them, and its weights laid side by side."""
        inner = model.model
        layers = tuple(map(Layer.of, [*inner.layers][: inner.config.num_hidden_layers]))
        weight, first = inner.embed_tokens.weight, layers[0]
        asked = laid and laid.of_tokens(first.asked.asking, weight, first.before_attention)
        largest = max(each.numbers for each in (first.asked, first.attended, first.gated, first.down))
        head = Linears.of(model.lm_head)
        return cls(weight, asked, Turns(inner.rotary_emb), layers, Norm.of(inner.norm), head, largest)


@torch.inference_mode()
def agrees_with_its_own(model: Any) -> bool:
    """Whether `forward` gives the logits of the model's own code, for a short text."""
    ids = torch.arange(8)[None] % model.config.vocab_size
    theirs = model(input_ids=ids, use_cache=False).logits
    [ours] = forward(Parts.of(model), [Pass(Products(linear), ids, None, torch.arange(8)[None], None, len(ids[0]))])
    return bool((ours - theirs).abs().max() <= _AGREES * theirs.abs().max())


def layers_of(model: Any) -> Layers:
    """The layers of an untouched model that are given the same numbers; those with biases and those without apart."""
    found: dict[Any, tuple[Any, ...]] = {model.lm_head: (model.lm_head,)}
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        found[attention] = attention.q_proj, attention.k_proj, attention.v_proj
        found[mlp] = mlp.gate_proj, mlp.up_proj
        found |= {last: (last,) for last in (attention.o_proj, mlp.down_proj)}
    last = model.model.layers[-1].self_attn  # of which queries are wanted for few columns, keys and values for all
    found |= {last.q_proj: (last.q_proj,), last.k_proj: (last.k_proj, last.v_proj)}
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

    def of(self, layers: Linears, hidden: torch.Tensor) -> torch.Tensor:
        """[R, columns, sum of O]: what layers make of the same numbers [R, columns, I], one behind the other."""
        found = self._of_laid(layers, hidden)
        if found is not None:
            return found
        each = self._of_each(layers, hidden)
        return torch.cat(each, -1) if len(each) > 1 else each[0]

    def apart(self, layers: Linears, hidden: torch.Tensor) -> Sequence[torch.Tensor]:
        """What each of some layers of one width makes of the same numbers, for functions of single numbers.

        Those are computed otherwise where numbers fill no vector. That must happen in the same places of every row: so
        rows of other widths are parts of longer ones, and do not stand behind each other.
        """
        found = self._of_laid(layers, hidden)
        if found is None:
            each = self._of_each(layers, hidden)
            if each[0].shape[-1] % _VECTOR == 0:
                return each
            found = torch.cat(each, -1)
        parts: Sequence[torch.Tensor] = found.chunk(len(layers.each), -1)
        return parts

    def _of_laid(self, layers: Linears, hidden: torch.Tensor) -> torch.Tensor | None:
        return None if self.laid is None else self.laid.product(layers.asking, hidden, self.as_for)

    def _of_each(self, layers: Linears, hidden: torch.Tensor) -> list[torch.Tensor]:
        return [self.own(hidden, weight, bias) for weight, bias in layers.each]


def forward(parts: Parts, passes: Sequence[Pass]) -> list[torch.Tensor]:
    """Read the tokens of some passes side by side, each in the calls and shapes in which it is read by itself.

    Half a layer serves all of them before the next half does: its weights come from memory once, then from the
    processor's cache.

    Args:
        parts: of an untouched model.
        passes: of different batches, not read yet.

    Returns:
        Per pass [R, keep, V] logits.
    """
    for one in passes:
        one.begin(parts)
    last = len(parts.layers) - 1
    for index, layer in enumerate(parts.layers):
        if len(passes) > 1:
            stop_if_given_up()
        for one in passes:
            one.attend(layer, index, last=index == last)
        for one in passes:
            one.feed_forward(layer)
    return [one.logits(parts) for one in passes]


class Pass:
    """One forward pass over so many tokens in each row: what its layers have in common, and how far it has come.

    One row is filled up with tokens of which nothing is seen or kept, as `whole_tokens` says.

    Args:
        products: how they are computed.
        ids: [R, T] token ids.
        mask: [R, 1, T, columns], added to the scores; None where each token sees all before it.
        positions: [R, T] places of the tokens in their own prompts.
        cache: the keys and values so far; grows by these columns. None for none.
        keep: for how many of the last columns logits are wanted, or [K] which columns.
    """

    def __init__(
        self,
        products: Products,
        ids: torch.Tensor,
        mask: torch.Tensor | None,
        positions: torch.Tensor,
        cache: Cache | None,
        keep: int | torch.Tensor,
    ) -> None:
        self._products, self._mask, self._cache = products, mask, cache
        self._ids, self._positions, self._keep = ids, positions, keep
        self._tokens: int = ids.shape[1]
        self._hidden: torch.Tensor
        self._first: torch.Tensor | None
        self._turn: Turn

    def begin(self, parts: Parts) -> None:
        """Look up what the first layer is given."""
        filling = whole_tokens(self._tokens, parts.largest) - self._tokens if len(self._ids) == 1 else 0
        ids = functional.pad(self._ids, (0, filling)) if filling else self._ids
        self._hidden, self._first = functional.embedding(ids, parts.embeddings), parts.asked
        self._turn = parts.turns.of(self._hidden, self._positions)

    def attend(self, layer: Layer, index: int, *, last: bool) -> None:
        """The first half of a layer; the last one only for those of the last columns that count."""
        columns = self._last_columns() if last else self._tokens
        only = columns if columns < self._tokens else None
        attended = self._attention(layer, *self._heads(layer, index, only), index)
        seen = self._hidden if only is None else self._hidden[:, self._tokens - columns : self._tokens]
        self._hidden = attended.add_(seen)

    def feed_forward(self, layer: Layer) -> None:
        """The second half."""
        gate, up = self._products.apart(layer.gated, layer.before_gates.scaled(self._hidden))
        self._hidden = self._products.of(layer.down, functional.silu(gate).mul_(up)).add_(self._hidden)

    def logits(self, parts: Parts) -> torch.Tensor:
        """[R, keep, V] logits, once all layers are through."""
        keep, hidden = self._keep, self._hidden[:, : self._tokens]
        wanted = hidden[:, keep if isinstance(keep, torch.Tensor) else slice(-keep, None)]
        return self._products.of(parts.head, parts.norm.scaled(wanted))

    def _last_columns(self) -> int:
        """How many of the last columns the last layer is to be computed for; of the others it needs keys and values."""
        keep = self._keep
        if isinstance(keep, torch.Tensor) or (self._mask is None and keep > 1):
            return self._tokens
        return min(keep, self._tokens)

    def _heads(self, layer: Layer, index: int, columns: int | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """[R, heads, T, width] queries of so many last columns, None for all; keys and values. Two are rotated."""
        groups, known = layer.groups, self._first is not None and index == 0
        if columns is None or known:
            heads = _of_width(self._asked(layer, known=known), layer.width)
            asking = turned(heads[:, :-groups], self._turn)
            query, key = asking[:, :-groups], asking[:, -groups:]
            return query if columns is None else query[:, :, -columns:], key, heads[:, -groups:]
        given, end = layer.before_attention.scaled(self._hidden), self._tokens
        kept = _of_width(self._products.of(layer.kept, given)[:, :end], layer.width)
        query = _of_width(self._products.of(layer.queries, given[:, end - columns : end]), layer.width)
        cos, sin = (factors[:, :, -columns:] for factors in self._turn)
        return turned(query, (cos, sin)), turned(kept[:, :groups], self._turn), kept[:, groups:]

    def _asked(self, layer: Layer, *, known: bool) -> torch.Tensor:
        """[R, T, sum of O] queries, keys and values before rotation; those of the first layer follow from the token."""
        if known:
            return functional.embedding(self._ids, self._first)
        return self._products.of(layer.asked, layer.before_attention.scaled(self._hidden))[:, : self._tokens]

    def _attention(
        self, layer: Layer, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, index: int
    ) -> torch.Tensor:
        mask, count = self._mask, query.shape[2]
        if mask is not None and count < self._tokens:
            mask = mask[:, :, -count:]
        (key, value), attention = written(self._cache, key, value, index)
        each = query.shape[1] // layer.groups
        found = attention(
            query,
            for_heads(key, each),
            for_heads(value, each),
            attn_mask=mask,
            scale=layer.scaling,
            is_causal=mask is None and count > 1,
        )
        joined, filling = found.transpose(1, 2).flatten(2), self._hidden.shape[1] - self._tokens
        if filling and count == self._tokens:
            joined = functional.pad(joined, (0, 0, 0, filling))
        return self._products.of(layer.attended, joined)


def _of_width(numbers: torch.Tensor, width: int) -> torch.Tensor:
    """[R, heads, T, width] of [R, T, heads * width]."""
    return numbers.view(*numbers.shape[:-1], -1, width).transpose(1, 2)
