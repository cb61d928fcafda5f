"""Many continuations in one forward pass: a tree of tokens in which each sees its ancestors only.

The numbers differ from those of plain inference by float noise, since the kernels see other shapes. Nothing here is
ever the last word on a token: `PROBABILITY_NOISE` and `CLEAR_LEAD` say how clear a result has to be to stand, and
whoever uses a tree asks again in the shapes of inference where it is not. Measured over the bundled reader, random
models of six architectures and a Llama of 125 million parameters, all in float32, a packed forward moved no probability
by more than 2e-5, and no logit by more than 2e-5 of the largest one; the margins are several times and a hundred times
that. Each use also compares one prompt or prefix with inference itself, and does without packing where the two differ
by more than `TRUSTED` of the margin.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

PROBABILITY_NOISE = 2.0**-13  # what a packed forward may move a probability by
CLEAR_LEAD = 2.0**-9  # lead of the best logit over the next, as a share of the largest logit (at least 1), that stands
TRUSTED = 1 / 4  # share of these margins that may be met where a packed forward is compared with inference
_LAYERS = frozenset({"full_attention", "sliding_attention"})


def can_pack(model: Any) -> bool:
    """Whether trees of tokens can be trusted to come out as inference would have it, but for noise that is known.

    That takes float32 at full precision, a mask that is obeyed as given, and positions that are taken as given.
    """
    return (
        all(p.dtype == torch.float32 for p in model.parameters())
        and torch.get_float32_matmul_precision() == "highest"
        and getattr(model.config, "_attn_implementation", None) in ("eager", "sdpa")
        and {"position_ids", "past_key_values"} <= set(inspect.signature(model.forward).parameters)
        and not getattr(model, "_is_stateful", False)
        and _layers(_text_config(model)) <= _LAYERS
    )


@dataclass(frozen=True)
class Stem:
    """What a tree grows on.

    Attributes:
        model: the language model.
        cache: keys and values of what was read; the tree appends to it.
        visible: [rows, L], 1 for each cached column that a row may see.
        next_position: [rows], the position of the token that comes next.
    """

    model: Any
    cache: Any
    visible: torch.Tensor
    next_position: torch.Tensor

    @classmethod
    def nothing(cls, model: Any) -> Stem:
        """One row that has read nothing."""
        device = model.get_input_embeddings().weight.device
        return cls(
            model,
            DynamicCache(),
            torch.ones((1, 0), dtype=torch.long, device=device),
            torch.zeros(1, dtype=torch.long, device=device),
        )


class TokenTree:
    """A growing tree of tokens, the same for all rows of a stem. Nodes are numbered as they come; -1 is the root."""

    def __init__(self, stem: Stem) -> None:
        self._stem = stem
        self._accepts = set(inspect.signature(stem.model.forward).parameters)
        self._depth = np.empty(0, dtype=np.int64)
        self._sees = np.empty((0, 0), dtype=bool)  # [nodes, nodes], each node's ancestors and itself

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self._depth)

    def depth(self, node: int) -> int:
        """How many tokens lead to a node from the root, its own included."""
        return int(self._depth[node]) + 1 if node >= 0 else 0

    def fits(self, depth: int) -> bool:
        """Whether the mask is right for tokens this deep: not beyond a sliding window that only some layers have."""
        config = _text_config(self._stem.model)
        window = _window(config)
        if window is None or len(_layers(config)) < 2:
            return True
        return int(self._stem.next_position.max()) + depth <= window

    @torch.inference_mode()
    def extend(
        self, parents: Sequence[int], tokens: Sequence[int], wanted: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Add nodes in one forward pass.

        Args:
            parents: each new node's parent, an older node or an earlier one of these.
            tokens: as many.
            wanted: which of the new nodes (0 for the first) the logits are wanted of; None for all.

        Returns:
            [rows, wanted, V] float32 logits of what follows each node.
        """
        old, stem = self.size, self._stem
        self._add(parents)
        device = stem.next_position.device
        depth = torch.from_numpy(self._depth).to(device)
        ids = torch.tensor(list(tokens), device=device)[None].expand(len(stem.next_position), -1)
        keep = torch.arange(len(tokens)) if wanted is None else torch.tensor(list(wanted), dtype=torch.long)
        optional = {"logits_to_keep": keep.to(device)} if "logits_to_keep" in self._accepts else {}
        output = stem.model(
            input_ids=ids,
            attention_mask=self._mask(old, depth),
            position_ids=stem.next_position[:, None] + depth[old:],
            past_key_values=stem.cache,
            use_cache=True,
            **optional,
        )
        logits: torch.Tensor = output.logits if optional else output.logits[:, keep]
        return logits.float()

    def cut(self, size: int) -> None:
        """Forget all nodes but the first `size`."""
        if size < self.size:
            self._stem.cache.crop(size - self.size)
            self._depth, self._sees = self._depth[:size], self._sees[:size, :size]

    def _add(self, parents: Sequence[int]) -> None:
        old, count = self.size, self.size + len(parents)
        depth, sees = np.zeros(count, dtype=np.int64), np.zeros((count, count), dtype=bool)
        depth[:old], sees[:old, :old] = self._depth, self._sees
        for node, parent in enumerate(parents, old):
            if parent >= 0:
                depth[node], sees[node] = depth[parent] + 1, sees[parent]
            sees[node, node] = True
        self._depth, self._sees = depth, sees

    def _mask(self, old: int, depth: torch.Tensor) -> torch.Tensor:
        """[rows, 1, new nodes, L + nodes] float mask: 0 to see, the lowest number not to."""
        stem = self._stem
        rows, new = len(stem.next_position), self.size - old
        sees = torch.from_numpy(self._sees[old:]).to(depth.device)
        before = stem.visible.bool()[:, None, :].expand(rows, new, -1)
        seen = torch.cat([before, sees[None].expand(rows, -1, -1)], dim=2)
        config = _text_config(stem.model)
        window = _window(config)
        if window is not None and len(_layers(config)) < 2:
            past = (stem.visible.cumsum(1) - 1)[:, None, :]
            ahead = stem.next_position[:, None, None]
            columns = torch.cat([past, ahead + depth[None, None, :]], dim=2)
            seen = seen & (ahead + depth[old:][None, :, None] - columns < window)
        lowest = torch.finfo(torch.float32).min
        return torch.zeros(seen.shape, device=depth.device).masked_fill(~seen, lowest)[:, None]


def _text_config(model: Any) -> Any:
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _layers(config: Any) -> set[str]:
    return set(getattr(config, "layer_types", None) or ())


def _window(config: Any) -> int | None:
    """How far back layers see that slide; None when none does."""
    return None if _layers(config) == {"full_attention"} else getattr(config, "sliding_window", None)
