"""One decoding step for several batches at once: products with the weights are shared, attention is each batch's own.

A step of a few rows reads all weights for little work; the rows of other questions cost next to nothing more. Every
batch keeps its cache and its prefix, and attends to them in the shapes of a step that it takes by itself. So batches
join and leave between two steps, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch.nn import functional
from transformers.cache_utils import Cache

from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.kernels import AttendedKeys

KeysAndValues = tuple[torch.Tensor, torch.Tensor]
Heard = Callable[[torch.Tensor, torch.Tensor], None]


@dataclass(frozen=True)
class Step:
    """What a forward pass needs to append a token to each row of a batch.

    Attributes:
        ids: [rows, 1] the tokens.
        places: [rows, 1] their positions.
        mask: as the model takes it.
        cache: the batch's keys and values.
    """

    ids: torch.Tensor
    places: torch.Tensor
    mask: Any
    cache: Cache

    @property
    def rows(self) -> int:
        """How many rows there are, those of padding included."""
        return len(self.ids)


@torch.inference_mode()
def step_together(lm: CausalLM, steps: Sequence[Step], rows: int) -> list[torch.Tensor]:
    """Take the steps of several batches in one forward pass.

    Args:
        lm: the model.
        steps: of different batches.
        rows: of the pass, no less than the batches have; the others are padding.

    Returns:
        Per batch [its rows, V] float32 logits of the token after it.
    """
    filling = rows - sum(step.rows for step in steps)
    ids, places = (
        torch.cat([*tensors, tensors[0].new_zeros((filling, 1))])
        for tensors in ([step.ids for step in steps], [step.places for step in steps])
    )
    logits = _pass(lm, ids, places, JointCache(steps, layer_kinds(lm)))
    return [logits[rows] for rows in _slices(steps)]


@torch.inference_mode()
def first_tokens(lm: CausalLM, ids: Sequence[int], heard: Heard) -> torch.Tensor:
    """[rows, V] logits after prompts of one token each, in one pass of a step's shape.

    Args:
        lm: the model.
        ids: a token per row.
        heard: is given the new keys and values [rows, heads, 1, width] of every layer.
    """
    column = torch.tensor(ids, device=lm.device)[:, None]
    return _pass(lm, column, torch.zeros_like(column), JointCache((), layer_kinds(lm), heard))


def _pass(lm: CausalLM, ids: torch.Tensor, places: torch.Tensor, cache: JointCache) -> torch.Tensor:
    kinds = sorted(set(cache.kinds)) or [""]
    masks = {kind: torch.zeros((len(ids), 1, 1, 1), dtype=lm.dtype, device=lm.device) for kind in kinds}
    logits = lm(ids, masks if len(masks) > 1 else masks[kinds[0]], places, cache)
    cache.check_attended()
    return logits[:, -1]


def layer_kinds(lm: CausalLM) -> tuple[str, ...]:
    """The kind of attention of each layer; empty where all are of one kind."""
    return tuple(getattr(lm.config, "layer_types", None) or ())


def _slices(steps: Sequence[Step]) -> list[slice]:
    ends = [0, *accumulate(step.rows for step in steps)]
    return [slice(start, end) for start, end in pairwise(ends)]


class JointCache(Cache):  # type: ignore[misc]  # untyped library
    """The caches of several batches as one. What the model attends to is left to `attend`.

    Args:
        steps: the batches' steps; rows behind theirs attend to themselves.
        kinds: the kind of attention of each layer; empty where all are of one kind.
        heard: is given every layer's new keys and values.
    """

    transposes = False  # products are torch's own: they are at their best with many rows

    def __init__(self, steps: Sequence[Step], kinds: Sequence[str], heard: Heard | None = None) -> None:
        super().__init__(layers=[])
        self.steps, self.kinds, self._heard = steps, kinds, heard
        self._rows = _slices(steps)
        self._layer = 0
        self._own: list[KeysAndValues] = []
        self.not_attended = False

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> KeysAndValues:
        """Write each batch's column into its cache; gives the columns themselves, and `attend` looks up the rest."""
        self.check_attended()
        self._own = [
            step.cache.update(key_states[rows], value_states[rows], layer_idx)
            for step, rows in zip(self.steps, self._rows, strict=True)
        ]
        self._layer, self.not_attended = layer_idx, True
        if self._heard is not None:
            self._heard(key_states, value_states)
        return AttendedKeys.of(key_states, self.attend), value_states

    def check_attended(self) -> None:
        """Raise a RuntimeError if a layer's attention was computed elsewhere."""
        if self.not_attended:
            raise RuntimeError("its attention is not computed by scaled_dot_product_attention")

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *args: Any,
        scale: float | None = None,
        **settings: Any,
    ) -> torch.Tensor:
        """Every batch's attention to its own keys and values.

        Args:
            query: [rows, H, Q, width]; Q is 1 but where heads that share keys stand there.
            key, value: [rows, G, 1, width], the new column.
            args, settings: not used: each batch has its own mask.
            scale: of the scores.
        """
        self.not_attended = False
        parts = []
        for step, rows, pair in zip(self.steps, self._rows, self._own, strict=True):
            keys, values = (_for_heads(query, t) for t in pair)
            mask = self._mask(step)
            parts.append(
                functional.scaled_dot_product_attention(query[rows], keys, values, attn_mask=mask, scale=scale)
            )
        filling = value[self._rows[-1].stop if self._rows else 0 :]
        parts.append(_for_heads(query, filling).expand(-1, -1, query.shape[2], -1))
        return torch.cat(parts)

    def _mask(self, step: Step) -> Any:
        return step.mask[self.kinds[self._layer]] if isinstance(step.mask, Mapping) else step.mask

    def get_mask_sizes(self, query_length: int, *args: Any) -> tuple[int, int]:
        """As for a batch that holds nothing: masks are given."""
        return query_length, 0

    def get_seq_length(self, *args: Any) -> int:
        """As for a batch that holds nothing: positions are given."""
        return 0


def _for_heads(query: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """[rows, H, columns, width]: keys or values that several heads of a query share, for each of them."""
    heads = query.shape[1] // shared.shape[1]
    return shared if heads == 1 else shared.repeat_interleave(heads, dim=1)
