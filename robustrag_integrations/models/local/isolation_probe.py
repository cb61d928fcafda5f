"""The isolation probe on a model: in which shapes its batches are exact, found out once for each and remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from robustrag_integrations.models.local.batch import Batch, PlainBatch
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.isolation import BatchShape, Isolation, Stage, Trial, probe, why_coupled
from robustrag_integrations.models.local.remembered import Remembered
from robustrag_integrations.models.local.trie import TokenTrie

_TILE = 16  # columns of a pass over several rows are a multiple of this
COLUMNS_ON_CPU, _COLUMNS_ELSEWHERE = 32, 128  # of a pass over several rows, where the settings allow as many
_SHORTEST = 4  # tokens that the rows of a trial have room for, at least
_STEP_TOKEN = 5
_EXTREME = 8  # tokens with the largest embeddings: neighbours in a trial

Strings = Sequence[Sequence[int]]
Lay = Callable[[Sequence[tuple[int, ...]], int, BatchShape], Batch]
"""A batch of these rows, of so many columns before what is scored, in this shape."""


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

    def shared(self, lay: Lay, rows: int, strings: Strings) -> Isolation:
        """For batches that are read in passes of so many columns each time, whatever their width.

        Args:
            lay: makes a batch.
            rows: its prompts.
            strings: what is scored behind them.
        """
        usual = COLUMNS_ON_CPU if self._lm.device.type == "cpu" else _COLUMNS_ELSEWHERE
        nodes = len(TokenTrie(string[:-1] for string in strings))
        columns = max(min(usual, whole_tiles(self._at_once // rows + 1 - _TILE)), whole_tiles(nodes + _SHORTEST))
        return self._find(lay, columns - nodes, strings, BatchShape(columns, 1 + nodes, rows, rows))

    def plain(self, lm: CausalLM, rows: int, width: int, strings: Strings) -> Isolation:
        """For batches of this width that are read the plain way."""

        def lay(texts: Sequence[tuple[int, ...]], longest: int, shape: BatchShape) -> Batch:
            return PlainBatch(lm, texts, 1 + longest, self._at_once, shape.rows - len(texts))

        return self._find(lay, width - 1, strings, BatchShape(None, 1, rows, rows))

    def _find(self, lay: Lay, longest: int, strings: Strings, least: BatchShape) -> Isolation:
        key = (least, longest, tuple(map(tuple, strings)))
        return self._found.get(key, lambda: self._probe(_trial(lay, longest, strings), least, longest))

    def _probe(self, trial: Trial, least: BatchShape, longest: int) -> Isolation:
        embeddings = self._lm.model.get_input_embeddings().weight.detach()
        extreme = embeddings.float().norm(dim=-1).topk(min(_EXTREME, len(embeddings))).indices.tolist()
        coupled = why_coupled(self._lm.model)
        return probe(trial, least, longest=longest, vocabulary=len(embeddings), extreme=extreme, coupled=coupled)


def whole_tiles(columns: int) -> int:
    """So many columns, or the next multiple of a tile."""
    return -(-columns // _TILE) * _TILE


def _trial(lay: Lay, longest: int, strings: Strings) -> Trial:
    def trial(texts: Sequence[tuple[int, ...]], shape: BatchShape) -> Iterator[tuple[Stage, torch.Tensor]]:
        batch = lay(texts, longest, shape)
        opened = batch.open(strings)
        yield from ((Stage.CACHE, kept) for kept in batch.cached())
        yield Stage.LOGITS, opened.logits
        yield Stage.SCORES, opened.spelled[:, None]
        yield Stage.STEP_LOGITS, batch.append([_STEP_TOKEN] * batch.rows)
        yield from ((Stage.STEP_CACHE, kept) for kept in batch.cached())

    return trial
