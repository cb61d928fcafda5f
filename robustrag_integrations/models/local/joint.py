"""One forward pass for several batches at once: products with the weights are shared, attention is each batch's own.

A decoding step of a few rows reads all weights for little work; the rows of other questions cost next to nothing more.
Every batch keeps its cache and its prefix, and attends to them in the shapes of a step that it takes by itself. So
batches join and leave between two steps, and nothing is copied. In the same way short prompts are read together: the
batches stand below each other in a step, behind each other in a pass that reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch

from robustrag_integrations.models.local.attending import AttendingCache
from robustrag_integrations.models.local.attention_cache import AttentionCache
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.kernels import Attention, for_heads
from robustrag_integrations.models.local.key_values import Pair

Heard = Callable[[torch.Tensor, torch.Tensor], None]


@dataclass(frozen=True)
class Step:
    """What a forward pass needs to append tokens to each row of a batch: one, but where a prompt is read.

    Attributes:
        ids: [rows, columns] the tokens.
        places: [rows, columns] their positions.
        mask: as the model takes it.
        cache: the batch's keys and values.
    """

    ids: torch.Tensor
    places: torch.Tensor
    mask: Any
    cache: AttentionCache

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
    logits = attended_pass(lm, ids, places, JointCache(steps, layer_kinds(lm)))[:, -1]
    return [logits[rows] for rows in _slices([step.rows for step in steps])]


@torch.inference_mode()
def read_together(
    lm: CausalLM, steps: Sequence[Step], tokens: int, logits: int, each: Sequence[int]
) -> list[torch.Tensor]:
    """Read several prompts in one forward pass, behind each other.

    Args:
        lm: the model.
        steps: of different batches, of one row each.
        tokens: of the pass, no less than the prompts have; the others are padding.
        logits: that are computed, no fewer than are wanted.
        each: per prompt, of how many of its last tokens they are wanted.

    Returns:
        Per prompt [1, wanted, V] float32 logits.
    """
    filling = tokens - sum(step.ids.shape[1] for step in steps)
    ids, places = (
        torch.cat([*tensors, tensors[0].new_zeros((1, filling))], dim=1)
        for tensors in ([step.ids for step in steps], [step.places for step in steps])
    )
    cache = JointCache(steps, layer_kinds(lm), behind=True)
    ends = zip((own.stop for own in cache.parts), each, strict=True)
    wanted = [column for end, count in ends for column in range(end - count, end)]
    keep = torch.tensor([*wanted, *[0] * (logits - len(wanted))], device=lm.device)
    return list(attended_pass(lm, ids, places, cache, keep)[:, : len(wanted)].split(list(each), dim=1))


@torch.inference_mode()
def first_tokens(lm: CausalLM, ids: Sequence[int], heard: Heard) -> torch.Tensor:
    """[rows, V] logits after prompts of one token each, in one pass of a step's shape.

    Args:
        lm: the model.
        ids: a token per row.
        heard: is given the new keys and values [rows, heads, 1, width] of every layer.
    """
    column = torch.tensor(ids, device=lm.device)[:, None]
    return attended_pass(lm, column, torch.zeros_like(column), JointCache((), layer_kinds(lm), heard))[:, -1]


def attended_pass(
    lm: CausalLM, ids: torch.Tensor, places: torch.Tensor, cache: AttendingCache, keep: int | torch.Tensor = 1
) -> torch.Tensor:
    """[rows, keep, V] float32 logits of a pass whose attention is left to its cache."""
    kinds = sorted(set(cache.kinds)) or [""]
    masks = {kind: torch.zeros((len(ids), 1, 1, 1), dtype=lm.dtype, device=lm.device) for kind in kinds}
    logits = lm(ids, masks if len(masks) > 1 else masks[kinds[0]], places, cache, keep=keep)
    cache.check_attended()
    return logits


def layer_kinds(lm: CausalLM) -> tuple[str, ...]:
    """The kind of attention of each layer; empty where all are of one kind."""
    return tuple(getattr(lm.config, "layer_types", None) or ())


def _slices(counts: Sequence[int]) -> list[slice]:
    ends = [0, *accumulate(counts)]
    return [slice(start, end) for start, end in pairwise(ends)]


class JointCache(AttendingCache):
    """The caches of several batches as one.

    Args:
        steps: the batches' steps; what is behind them attends to itself.
        kinds: the kind of attention of each layer; empty where all are of one kind.
        heard: is given every layer's new keys and values.
        behind: whether the batches' tokens stand behind each other in one row; or below each other, in rows.

    Attributes:
        steps: the batches' steps.
        parts: per batch, its rows of the pass, or its columns.
    """

    as_for = 2**30  # rows to choose the kernels of products for: the same, however many there are

    def __init__(
        self, steps: Sequence[Step], kinds: Sequence[str], heard: Heard | None = None, *, behind: bool = False
    ) -> None:
        super().__init__(kinds)
        self.steps, self._heard = steps, heard
        self._axis = 2 if behind else 0
        self.parts = _slices([step.ids.shape[int(behind)] for step in steps])
        self._layer = 0
        self._own: list[tuple[Pair, Attention]] = []

    def keep(self, new: Pair, layer: int) -> None:
        """Write each batch's columns into its cache."""
        self._layer, (keys, values) = layer, new
        self._own = [
            step.cache.written(self._of(part, keys), self._of(part, values), layer)
            for step, part in zip(self.steps, self.parts, strict=True)
        ]
        if self._heard is not None:
            self._heard(*new)

    def attend(self, query: torch.Tensor, new: Pair, scale: float | None) -> torch.Tensor:
        """Every batch's attention to its own keys and values; heads that share keys may stand in place of tokens."""
        found, heads = [], query.shape[1]
        for step, part, (pair, attention) in zip(self.steps, self.parts, self._own, strict=True):
            keys, values = (for_heads(t, heads // t.shape[1]) for t in pair)
            mask, own = self._mask(step), self._of(part, query)
            causal = mask is None and step.ids.shape[1] > 1
            found.append(attention(own, keys, values, attn_mask=mask, is_causal=causal, scale=scale))
        filling = self._of(slice(self.parts[-1].stop if self.parts else 0, None), new[1])
        filled = for_heads(filling, heads // filling.shape[1])
        found.append(filled if self._axis else filled.expand(-1, -1, query.shape[2], -1))
        return torch.cat(found, dim=self._axis)

    def _of(self, part: slice, states: torch.Tensor) -> torch.Tensor:
        """A batch's part of what all have."""
        return states[:, :, part] if self._axis else states[part]

    def _mask(self, step: Step) -> Any:
        return step.mask[self.kinds[self._layer]] if isinstance(step.mask, Mapping) else step.mask
