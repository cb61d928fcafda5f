"""A transformers causal language model as a function: tokens in, float32 logits out, keys and values into a cache."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import torch

from robustrag_integrations.models.local import llama
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.laid_weights import LaidWeights
from robustrag_integrations.models.local.memory import memory_explained
from robustrag_integrations.models.local.products import Linear, linear, products
from robustrag_integrations.models.local.slab import Slab
from robustrag_integrations.models.local.turns import WITHOUT_SWITCH
from robustrag_integrations.models.local.untouched import is_untouched_llama

_NO_LIMIT = 1_000_000
_SAMPLED = 1024  # numbers of a weight

_Llama = tuple[llama.Parts, LaidWeights]


class Reading(NamedTuple):
    """What is read in one pass, as `CausalLM` is given it."""

    ids: torch.Tensor
    mask: Any
    positions: torch.Tensor
    cache: Any
    keep: int | torch.Tensor = 1

    @property
    def columns(self) -> int:
        """How many there will be in the cache."""
        if isinstance(self.mask, torch.Tensor):
            return int(self.mask.shape[-1])
        return getattr(self.cache, "capacity", 0) or self.cache.get_seq_length() + self.ids.shape[1]

    @property
    def is_plain(self) -> bool:
        """Whether the mask is what is added to the scores, or there is none."""
        return self.mask is None or (isinstance(self.mask, torch.Tensor) and self.mask.dim() == 4)

    @property
    def as_for(self) -> int | None:
        """The number of rows to choose the kernels of products for, as its cache says; None for their own."""
        return getattr(self.cache, "as_for", None)

    @property
    def product(self) -> Linear:
        """How products with weights are computed."""
        return getattr(self.cache, "product", None) or partial(linear, as_for=self.as_for)

    def as_llama(self, laid: LaidWeights) -> llama.Pass:
        """For a model that is read operation by operation."""
        ways = llama.Products(self.product, laid, self.as_for)
        return llama.Pass(ways, self.ids, self.mask, self.positions, self.cache, self.keep)


class CausalLM:
    """Calls a model's forward pass the same way whatever its architecture; the model is left as it is."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.accepts = frozenset(inspect.signature(model.forward).parameters)
        self.cache_argument = "cache" if "cache" in self.accepts else "past_key_values"  # before transformers 5.24
        self._llama_agrees: bool | None = None
        self._laid: LaidWeights | None = None
        self._unseen_changes = 0  # of weights, that torch did not count
        self._now: tuple[_Llama | None] | None = None

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
    def window(self) -> int:
        """How many tokens a row may have in all.

        Some position encodings switch to other frequencies for the whole batch once its longest row passes the length
        the model was trained with. A passage could then move every other row, so that length is the limit.
        """
        config = self.config
        limit = int(getattr(config, "max_position_embeddings", None) or 0)
        limit = limit if limit > 0 else _NO_LIMIT
        for rope in _rope_parameters(config):
            if rope.get("rope_type", "default") not in WITHOUT_SWITCH:
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
        """Changes when weights are replaced, moved, cast or written in place, or a question saw others."""
        return (self._unseen_changes, *self._counted())

    def _counted(self) -> tuple[object, ...]:
        """The places of the weights, and how often torch saw them written to."""
        return tuple((w.data_ptr(), -1 if w.is_inference() else w._version) for w in weights_of(self.model))

    @torch.inference_mode()
    def sample_of_weights(self) -> str:
        """A hash of some numbers of every weight: it sees what torch does not count, such as merging an adapter."""
        digest = hashlib.blake2b(digest_size=16)
        for weight in weights_of(self.model):
            flat = weight.reshape(-1)
            some = flat[:: max(1, len(flat) // _SAMPLED)][:_SAMPLED]
            digest.update(some.float().cpu().numpy().tobytes())
        return digest.hexdigest()

    def forget(self) -> None:
        """Forget what was found out about the model; what it said before counts as another model's."""
        self._unseen_changes += 1
        self._llama_agrees = self._laid = None

    def as_it_is(self) -> CausalLM:
        """This model for one question: what somebody does to it meanwhile counts from the next question on."""
        found = copy.copy(self)
        found._now = (self._as_llama(),)
        return found

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
        [logits] = self.each([Reading(ids, mask, positions, cache, keep)])
        return logits

    @torch.inference_mode()
    def each(self, readings: Sequence[Reading]) -> list[torch.Tensor]:
        """Read the tokens of each in a pass of its own, with the bits that it has by itself.

        Args:
            readings: of different batches.

        Returns:
            Per pass [rows, keep, V] float32 logits.
        """
        with self.memory_explained(sum(len(one.ids) for one in readings), max(one.columns for one in readings)):
            ours = self._as_llama() if all(one.is_plain for one in readings) else None
            if ours is not None:
                parts, laid = ours
                found = llama.forward(parts, [one.as_llama(laid) for one in readings])
            else:
                found = []
                for one in readings:
                    if len(readings) > 1:
                        stop_if_given_up()
                    found.append(self._by_its_own_code(one))
        for one in readings:
            if isinstance(one.cache, Slab):
                one.cache.check_all_was_read()
        return [logits.float() for logits in found]

    def _as_llama(self) -> _Llama | None:
        """The parts of a model that `llama.forward` can read, and its weights; None if it runs its own code."""
        if self._now is not None:
            return self._now[0]
        if not is_untouched_llama(self.model):
            return None
        agrees = self._llama_agrees
        if agrees is None:
            self._llama_agrees = agrees = llama.agrees_with_its_own(self.model)
        if not agrees:
            return None
        layers, weights, laid = llama.layers_of(self.model), self._counted(), self._laid
        if laid is None or not laid.hold(layers, weights):
            self._unseen_changes += laid is not None
            self._laid = laid = LaidWeights(self.model, layers, weights)
        return llama.Parts.of(self.model, laid), laid

    def _by_its_own_code(self, one: Reading) -> torch.Tensor:
        keep = one.keep
        optional = {"position_ids": one.positions, "logits_to_keep": keep}
        given = {name: value for name, value in optional.items() if name in self.accepts}
        embeddings = self.model.get_input_embeddings().weight
        with products(one.product, one.as_for or one.ids.numel(), keep, embeddings):
            output = self.model(
                input_ids=one.ids,
                attention_mask=one.mask,
                use_cache=True,
                **{self.cache_argument: one.cache, **given},
            )
        logits: torch.Tensor = output.logits
        if "logits_to_keep" not in self.accepts:
            logits = logits[:, keep if isinstance(keep, torch.Tensor) else slice(-keep, None)]
        return logits


def weights_of(model: Any) -> list[torch.Tensor]:
    """As `parameters` of torch gives them, in a third of the time: this is asked for every question."""
    kept = (weight for module in modules_of(model) for weight in module._parameters.values())
    return [weight for weight in kept if weight is not None]


def modules_of(model: Any) -> list[Any]:
    """As `modules` of torch gives them, in another order."""
    modules, seen = [model], {None, model}
    for module in modules:
        for inner in module._modules.values():
            if inner not in seen:
                seen.add(inner)
                modules.append(inner)
    return modules


def _rope_parameters(config: Any) -> list[dict[str, Any]]:
    """The settings of the rotary position encoding, one for each kind of layer."""
    found = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return [v for v in found.values() if isinstance(v, dict)] or [found]
