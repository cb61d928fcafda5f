"""The isolation probe on a model: in which shapes its batches are exact, found out once for each and remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from robustrag_integrations.models.local.batch import Batch, PlainBatch
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.isolation import (
    SHORT,
    Isolation,
    Kind,
    Trial,
    probe,
    why_coupled,
)
from robustrag_integrations.models.local.remembered import Remembered
from robustrag_integrations.models.local.summation import HALF, Summation

_TILE = 16  # columns of a batch that is read the plain way are a multiple of this
_LONGEST = 32  # tokens of a trial's rows, at most; a row attends to its own by itself, whatever their number
_STEP_TOKEN = 5
_EXTREME = 8  # tokens with the largest embeddings: neighbours in a trial

Strings = Sequence[Sequence[int]]
Lay = Callable[[Sequence[tuple[int, ...]], int], Batch]
"""A batch of these rows, padded to so many."""
Columns = tuple[int, int]


class IsolationProbe:
    """Probes a model in the shapes that it is about to run in, and remembers what was found.

    Args:
        lm: the model.
        at_once: how many tokens may be read in one forward pass.
    """

    def __init__(self, lm: CausalLM, at_once: int) -> None:
        self._lm, self._at_once = lm, at_once
        self._found = Remembered[Isolation](lm)

    @property
    def found(self) -> list[Isolation]:
        """What was found so far, by rows."""
        return sorted(set(self._found.values), key=lambda found: found.rows)

    def forget(self) -> None:
        """Forget what was found."""
        self._found.clear()

    def shared(self, lay: Lay, rows: int, columns: Columns | None, longest: int) -> Isolation:
        """For prompts that take decoding steps together: those are what is tried.

        Args:
            lay: makes a batch.
            rows: its prompts.
            columns: that all rows attend to, shared ones and their own; None if each attends to those that it has.
            longest: tokens of a prompt behind its prefix, at most.
        """
        trial = _steps(lay, summing=self._lm.dtype in HALF)
        if columns is None:
            most = min(_LONGEST, longest)  # a model may have no place for more
            return self._find(trial, rows, most, most)
        return self._find(trial, rows, longest, columns, (SHORT, longest))

    def plain(self, lm: CausalLM, rows: int, width: int, strings: Strings) -> Isolation:
        """For batches of this width that are read the plain way, and have strings scored behind their prompts."""

        def lay(texts: Sequence[tuple[int, ...]], padded: int) -> Batch:
            return PlainBatch(lm, texts, width, self._at_once, padded - len(texts))

        return self._find(_all(lay, strings), rows, width - 1, (width, *map(tuple, strings)))

    def _find(
        self, trial: Trial, rows: int, longest: int, shapes: Hashable, lengths: Sequence[int] = (SHORT,)
    ) -> Isolation:
        return self._found.get((rows, shapes), lambda: self._probe(trial, rows, longest, lengths))

    def _probe(self, trial: Trial, rows: int, longest: int, lengths: Sequence[int]) -> Isolation:
        return probe(trial, rows, longest=longest, lengths=lengths, **self._tokens())

    def _tokens(self) -> dict[str, Any]:
        """What a probe has to know of the model."""
        embeddings = self._lm.model.get_input_embeddings().weight.detach()
        extreme = embeddings.float().norm(dim=-1).topk(min(_EXTREME, len(embeddings))).indices.tolist()
        return {"vocabulary": len(embeddings), "extreme": extreme, "coupled": why_coupled(self._lm.model)}


def whole_tiles(columns: int) -> int:
    """So many columns, or the next multiple of a tile."""
    return -(-columns // _TILE) * _TILE


def _all(lay: Lay, strings: Strings) -> Trial:
    """Reading, scoring, and a decoding step."""

    def trial(texts: Sequence[tuple[int, ...]], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
        batch = lay(texts, padded)
        opened = batch.open(strings)
        yield from ((Kind.KEPT, kept) for kept in batch.cached())
        yield Kind.LOGITS, opened.logits
        yield Kind.SCORES, opened.spelled[:, None]
        yield from _step(batch)

    return trial


def _steps(lay: Lay, *, summing: bool) -> Trial:
    """A decoding step alone, of prompts that were read each in a batch of its own.

    Args:
        lay: makes a batch.
        summing: whether it is also looked at whether products sum up all rows in the same order, which bits may hide.
    """

    def trial(texts: Sequence[tuple[int, ...]], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
        batch = lay(texts, padded)
        yield Kind.LOGITS, batch.open().logits
        yield from _step(batch, Summation(getattr(batch, "step_rows", batch.rows)) if summing else None)

    return trial


def _step(batch: Batch, sums: Summation | None = None) -> Iterator[tuple[Kind, torch.Tensor]]:
    with sums or nullcontext():
        logits = batch.append([_STEP_TOKEN] * batch.rows)
    yield Kind.LOGITS, logits
    yield from ((Kind.KEPT, kept) for kept in batch.cached())
    yield from ((Kind.KEPT, left[: batch.rows]) for left in (sums.left.values() if sums else ()))
