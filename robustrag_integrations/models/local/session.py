"""Decoding sessions of a local model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.base import DecodingSession, DecodingTree, Distributions, Opening
from robustrag_integrations.models.local.batch import Batch
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.token_tree import Stem, TokenTree

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LocalSession(DecodingSession):
    """A decoding session on a local model; the last row is the no-retrieval prompt.

    Args:
        batch: the rows, not read yet.
        abstentions: the token sequences that spell an abstention.
        truncated: per group, whether its passages were cut.
        noise: a bound on how far a row's probabilities may move.
        lengths: per row, the tokens of its prompt.
    """

    def __init__(
        self,
        batch: Batch,
        abstentions: Sequence[Sequence[int]],
        truncated: tuple[bool, ...],
        noise: float,
        lengths: Sequence[int],
    ) -> None:
        self._batch, self._noise, self._lengths = batch, noise, tuple(lengths)
        self._steps = 0
        opened = batch.open(abstentions)
        self.opening = Opening(_numpy(opened.spelled[:-1]), self._distributions(opened.logits), truncated)

    def append(self, token: int) -> Distributions:
        """Append the token to every row."""
        stop_if_cancelled()
        return self._distributions(self._batch.append([token] * self._batch.rows))

    def _distributions(self, logits: torch.Tensor) -> Distributions:
        self._steps += 1
        spent = tuple(Usage(length, completion=self._steps) for length in self._lengths)
        rows = _numpy(logits.softmax(-1))
        return Distributions(rows[:-1], rows[-1], self._noise, spent=spent, calls=self._steps * len(spent))

    def fork(self) -> DecodingSession:
        """Return a copy with its own cache: later tokens run in the same shapes, so the numbers are the same."""
        twin = copy.copy(self)
        twin._batch = self._batch.fork()
        return twin

    def tree(self) -> DecodingTree | None:
        """Return a tree of many continuations per forward pass, where its float noise is known and the only one."""
        stem = None if self._noise else self._batch.stem()
        return None if stem is None else LocalTree(stem)


class LocalTree(DecodingTree):
    """Continuations of a session, a level of the certification tree in one forward pass; all rows at a time."""

    def __init__(self, stem: Stem) -> None:
        self._tree = TokenTree(stem)
        self._nodes: dict[tuple[int, ...], int] = {(): -1}

    def grow(self, prefixes: Sequence[tuple[int, ...]]) -> list[Distributions]:
        """Return the distributions after each of these continuations, in one forward pass."""
        first = self._tree.size
        parents = [self._nodes[prefix[:-1]] for prefix in prefixes]
        logits = self._tree.extend(parents, [prefix[-1] for prefix in prefixes])
        self._nodes.update((prefix, first + i) for i, prefix in enumerate(prefixes))
        rows = [_numpy(logits[:, i].softmax(-1)) for i in range(len(prefixes))]
        return [Distributions(of_one[:-1], of_one[-1]) for of_one in rows]


def _numpy(tensor: torch.Tensor) -> NDArray[np.floating]:
    array: NDArray[np.floating] = tensor.cpu().numpy()
    return array
