"""Many continuations in one forward pass: trees of tokens in which each sees its ancestors only.

The numbers differ from those of plain inference by float noise, since the kernels see other shapes. A tree's user must
measure that noise against inference, and ask again in the shapes of inference wherever it could make a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from robustrag_integrations.models.local.cache import BatchKVCache, KeyValues
from robustrag_integrations.models.local.language_model import CausalLM, MaskRules, why_coupled


def known_noise(lm: CausalLM) -> bool:
    """Tell whether a model's float noise is of the size that the margins assume: all in full float32 precision.

    In half precision, noise is as large as the differences between tokens. And where noise can send a token to another
    expert, or tokens share a scale, it grows now and then, and not where it was measured.
    """
    return (
        torch.get_float32_matmul_precision() == "highest"
        and all(weight.dtype == torch.float32 for weight in lm.model.parameters())
        and why_coupled(lm) is None
    )


def logit_noise(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest distance of logits [..., V] from the expected ones, as a share of the largest (1 at least)."""
    gaps = (got - expected).abs().amax(-1) / expected.abs().amax(-1).clamp(min=1)
    return float(gaps.max().nan_to_num(nan=math.inf))


def clear_leads(logits: torch.Tensor, least: float) -> list[bool]:
    """Tell per row whether the best logit leads by at least this share of the largest (taken as at least 1).

    A row with an infinite logit or a NaN has no clear lead.
    """
    best, largest = logits.topk(2, dim=-1).values, logits.abs().amax(-1)
    clear = (best[:, 0] - best[:, 1] >= least * largest.clamp(min=1)) & largest.isfinite()
    found: list[bool] = clear.tolist()
    return found


@dataclass(frozen=True)
class Stem:
    """The rows that a tree grows on.

    Attributes:
        lm: the language model.
        rules: its attention masks.
        cache: the keys and values read so far; the tree appends to it.
        places: [rows, L] positions of the cached columns, shared ones first; NOWHERE for padding.
        next_positions: [rows], the position of the token that comes next.
    """

    lm: CausalLM
    rules: MaskRules
    cache: BatchKVCache
    places: torch.Tensor
    next_positions: torch.Tensor

    @classmethod
    def of_one(cls, lm: CausalLM, rules: MaskRules, read: KeyValues | None) -> Stem:
        """Build a stem of one row from a copy of its keys and values so far."""
        cache, tokens = BatchKVCache(1, 0), read.tokens if read else 0
        if read is not None:
            with torch.inference_mode():
                cache.capacity = tokens
                cache.put(0, read.layers)
        places = torch.arange(tokens + 1, device=lm.device)[None]
        return cls(lm, rules, cache, places[:, :-1], places[:, -1])


class TokenTree:
    """A growing tree of tokens, the same for all rows of a stem. Nodes are numbered as they come; -1 is the root."""

    def __init__(self, stem: Stem) -> None:
        self._stem = stem
        self._parents: list[int] = []
        self._depths: list[int] = []

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self._parents)

    @torch.inference_mode()
    def extend(
        self, parents: Sequence[int], tokens: Sequence[int], wanted: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Add nodes in one forward pass.

        Args:
            parents: each new node's parent, an older node or an earlier one of these.
            tokens: each new node's token.
            wanted: the new nodes (0 for the first) to return logits for; None for all.

        Returns:
            [rows, wanted, V] float32 logits of what follows each node.
        """
        old, stem = self.size, self._stem
        self._parents += parents
        for parent in parents:
            self._depths.append(self._depths[parent] + 1 if parent >= 0 else 0)
        device, rows = stem.lm.device, len(stem.next_positions)
        columns = stem.next_positions[:, None] + torch.tensor(self._depths, device=device)
        places = columns[:, old:]
        visible = ancestry(self._parents)[old:].to(device)
        mask = stem.rules.mask(places, torch.cat([stem.places, columns], dim=1), visible)
        ids = torch.tensor(list(tokens), device=device).expand(rows, -1)
        keep = len(tokens) if wanted is None else torch.tensor(list(wanted), device=device)
        logits = stem.lm(ids, mask, places, stem.cache, keep=keep)
        stem.cache.advance(len(tokens))
        return logits

    def clear(self) -> None:
        """Forget all nodes."""
        self._stem.cache.crop(self.size)
        self._parents.clear()
        self._depths.clear()


def ancestry(parents: Sequence[int]) -> torch.Tensor:
    """Return the mask [nodes, nodes] of what each node of a tree sees: its ancestors and itself."""
    sees = np.eye(len(parents), dtype=np.bool_)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
    return torch.from_numpy(sees)


class TokenTrie:
    """A trie of tokens. Nodes are numbered as they are added; -1 is the root, the end of the prompt."""

    def __init__(self, sequences: Iterable[Sequence[int]] = ()) -> None:
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self.parents: list[int] = []
        self._children: dict[tuple[int, int], int] = {}
        for sequence in sequences:
            self.add(sequence)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, sequence: Sequence[int]) -> None:
        """Add a sequence."""
        node = -1
        for depth, token in enumerate(sequence):
            known = self.child(node, token)
            if known is None:
                known = self._children[node, token] = len(self)
                self.tokens.append(token)
                self.depths.append(depth)
                self.parents.append(node)
            node = known

    def child(self, node: int, token: int) -> int | None:
        """Return the child of a node for a token, if there is one."""
        return self._children.get((node, token))

    def path(self, sequence: Sequence[int]) -> list[int]:
        """Return the nodes of a sequence that is in the trie."""
        nodes = [-1]
        for token in sequence:
            nodes.append(self._children[nodes[-1], token])
        return nodes[1:]
