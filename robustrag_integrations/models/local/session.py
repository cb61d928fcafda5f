"""Decoding sessions of a local model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from robustrag_integrations.models.base import DecodingSession, DecodingTree, Distributions, Opening
from robustrag_integrations.models.local.batch import Batch
from robustrag_integrations.models.local.branching import LocalTree
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.usage import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LocalSession(DecodingSession):
    """A decoding session on a local model; the last row is the no-retrieval prompt.

    Args:
        batch: the rows, not read yet.
        abstentions: the token sequences that spell an abstention.
        truncated: per group, whether its passages were cut.
        noise: how far other groups may move a row's probabilities.
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
        stop_if_given_up()
        return self._distributions(self._batch.append([token] * self._batch.rows))

    def _distributions(self, logits: torch.Tensor) -> Distributions:
        self._steps += 1
        spent = tuple(Usage(length, completion=self._steps) for length in self._lengths)
        rows = _probabilities(logits)
        return Distributions(rows[:-1], rows[-1], self._noise, spent=spent, calls=self._steps * len(spent))

    def fork(self) -> DecodingSession:
        """A copy with a cache of its own: later tokens run through the same shapes, so the numbers are the same."""
        twin = copy.copy(self)
        twin._batch = self._batch.fork()
        return twin

    def tree(self) -> DecodingTree | None:
        """Many continuations per forward pass, where the noise that this brings is known and the only one."""
        stem = None if self._noise else self._batch.stem()
        return None if stem is None else LocalTree(stem)


def _probabilities(logits: torch.Tensor) -> NDArray[np.floating]:
    return _numpy(logits.softmax(-1))


def _numpy(tensor: torch.Tensor) -> NDArray[np.floating]:
    array: NDArray[np.floating] = tensor.cpu().numpy()
    return array
