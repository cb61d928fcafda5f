"""The interface of a batch: rows of prompts that advance together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from robustrag_integrations.models.local.token_tree import Stem


@dataclass(frozen=True)
class Opened:
    """The output of a batch once its prompts are read.

    Attributes:
        logits: [rows, V] float32, of the first answer token.
        spelled: [rows] float64, the probability that one of the given strings comes next, every token of it.
    """

    logits: torch.Tensor
    spelled: torch.Tensor


class Batch(Protocol):
    """Rows of prompts that advance together.

    Attributes:
        rows: number of prompts; rows of padding are neither counted nor returned.
    """

    rows: int

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        ...

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        ...

    def fork(self) -> Batch:
        """Return an independent copy with bit-identical numbers."""
        ...

    def stem(self) -> Stem | None:
        """Return a stem for a tree of continuations, if the model allows it and has `known_noise`; else None."""
        ...


class SeparateBatches:
    """Prompts in batches of one: no other prompt can affect a prompt's numbers, whatever the model does.

    Args:
        batches: batches of one row each.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self.rows = len(batches)

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        opened = [batch.open(strings) for batch in self._batches]
        return Opened(torch.cat([o.logits for o in opened]), torch.cat([o.spelled for o in opened]))

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        return torch.cat([batch.append([token]) for batch, token in zip(self._batches, tokens, strict=True)])

    def fork(self) -> SeparateBatches:
        """Return an independent copy with bit-identical numbers."""
        return SeparateBatches([batch.fork() for batch in self._batches])

    def stem(self) -> Stem | None:
        """Return None: a tree reads all rows in one pass."""
        return None


def column_parts(columns: int, rows: int, at_once: int) -> list[slice]:
    """Cut columns into parts of at most `at_once` tokens over all rows, as equal as possible."""
    parts = -(-columns * rows // max(at_once, rows)) or 1
    step = -(-columns // parts)
    return [slice(start, min(start + step, columns)) for start in range(0, columns, step)]
