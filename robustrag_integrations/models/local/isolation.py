"""The isolation probe: a test that a row of a batch computes the same bits whatever the other rows hold.

Float addition is not associative, and the kernel that adds up a row's numbers depends on the processor, the library,
the number of threads and the shape of the batch. So bitwise isolation is not assumed of a precision or a processor: it
is tested on the model itself, in the shapes that it is about to run in.

Prompts are read one by one and share only decoding steps, so a step is what is tested: one of the actual number of
rows, with keys and values made up from those of one short text. A target stands at the even places among neighbours
with other tokens and lengths, then at the odd places among others; its bits must be the same at all of them. In half
precision, where rounding hides much, its products are summed once more over numbers that all but cancel. That makes
two steps and a text of 32 tokens: less than one question. Models that are read in full, all rows in one batch, are
tested with two such batches.

Where the bits differ, the batch is padded with constant rows until a number of rows is exact: padding is not read, it
only fills decoding steps. Where there is no such number, `Isolation` says how far the target moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum, auto

import torch

from robustrag_integrations.models.base import noise_bound
from robustrag_integrations.models.local.attention import Pair
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.coupling import why_coupled
from robustrag_integrations.models.local.memo import ModelMemo
from robustrag_integrations.models.local.padded import PaddedBatch
from robustrag_integrations.models.local.rows import PromptRows
from robustrag_integrations.models.local.summation import HALF, Summation, padded_counts

_SHORT = 5  # tokens of the target
_TEXT = 32  # tokens of the text that trials take keys and values from, and of their rows if each attends to its own
_TILE = 16  # columns of a batch that is read in full are a multiple of this
_STEP_TOKEN = 5
_EXTREME = 8  # tokens with the largest embeddings: neighbours in a trial

Text = tuple[int, ...]


class Kind(Enum):
    """The kind of a trial's numbers: keys and values, logits, or probabilities of strings."""

    KEPT = auto()
    LOGITS = auto()
    SCORES = auto()


Trial = Callable[[Sequence[Text], int], Iterator[tuple[Kind, torch.Tensor]]]
"""Runs these rows in a batch of this size, padding included; yields all numbers [rows, ...] that other rows may affect,
in the same order each time."""


@dataclass(frozen=True)
class Isolation:
    """The probe's result for a number of rows.

    Attributes:
        rows: the prompts.
        padded: the rows to run them in, those of padding included.
        exact: True if no bit of the target moved, in what was computed after the prompts and a token more, nor in the
            keys and values that later tokens depend on.
        moved: how far one of the target's probabilities moved at most.
        moved_logits: the same for logits, as a share of the largest (taken as at least 1).
        coupled: why no measurement bounds how far rows move each other; None if one does.
        repeatable: True if the target alone computes the same bits twice; tried where no shape is exact.
    """

    rows: int
    padded: int
    exact: bool = True
    moved: float = 0.0
    moved_logits: float = 0.0
    coupled: str | None = None
    repeatable: bool = True

    @property
    def bounded(self) -> bool:
        """True if rows move each other by no more than float noise."""
        return math.isfinite(self.logit_noise)

    @property
    def noise(self) -> float:
        """The bound on how far other rows may move a probability; 1.0 (any distance) where nothing bounds it."""
        bound = noise_bound(self.moved) if self.bounded else None
        return 0.0 if self.exact else 1.0 if bound is None else bound

    @property
    def logit_noise(self) -> float:
        """The bound on how far other rows may move a logit, as a share of the largest; infinite where nothing does."""
        if self.exact:
            return 0.0
        bound, of_probabilities = noise_bound(self.moved_logits), noise_bound(self.moved)
        if self.coupled or not self.repeatable or bound is None or of_probabilities is None:
            return math.inf
        return bound


def in_words(results: Sequence[Isolation]) -> str:
    """Describe the probe's results, for certificates."""
    if not results:
        return "not probed: no batch of several prompts was read yet"
    moving = [f for f in results if not f.exact]
    if not moving:
        rows = ", ".join(f"{f.rows}" + f" as {f.padded}" * (f.padded > f.rows) for f in results)
        return f"probed: not a bit of a row depends on other rows (rows: {rows})"
    worst = max(moving, key=lambda f: f.moved)
    why = worst.coupled or ("" if worst.repeatable else "one alone gives other numbers each time")
    moved = f"probed: {worst.rows} rows of a batch moved each other's probabilities by {worst.moved:.1e}"
    return f"{moved}; {why}" if why else moved


class IsolationProbe:
    """Probes a model in the shapes that it is about to run in, and remembers the results.

    Args:
        lm: the model.
        at_once: the most tokens to read in one forward pass.
    """

    def __init__(self, lm: CausalLM, at_once: int) -> None:
        self._lm, self._at_once = lm, at_once
        self._results = ModelMemo[Isolation](lm)

    @property
    def results(self) -> list[Isolation]:
        """The results so far, by rows."""
        return sorted(set(self._results.values), key=lambda result: result.rows)

    def forget(self) -> None:
        """Forget the results."""
        self._results.clear()

    def steps(
        self,
        lay: Callable[[Sequence[Text], int], PromptRows],
        read: Callable[[Text], Sequence[Pair]],
        rows: int,
        columns: tuple[int, int] | None,
        longest: int,
    ) -> Isolation:
        """Probe prompts that take decoding steps together.

        Args:
            lay: lays out an empty batch of such rows, behind their prefix.
            read: gives the keys and values [1, heads, tokens, width] of a text, per layer.
            rows: the number of prompts.
            columns: the columns, shared and own, that all rows attend to; None if each attends to those that it has.
            longest: the most tokens of a prompt behind its prefix.
        """
        known: list[Sequence[Pair]] = []

        def trial(texts: Sequence[Text], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
            """Take a step of rows that hold columns of the text, each from another place on."""
            if not known:
                known.append(read(tuple((7919 * i + 11) % vocabulary for i in range(min(_TEXT, longest)))))
            batch = lay(texts, padded)
            for at, text in enumerate(texts):
                with torch.inference_mode():
                    batch.hold(at, [_columns(pair, text) for pair in known[0]], 0)
            with Summation(batch.step_rows) if self._lm.dtype in HALF else nullcontext() as sums:
                logits = batch.append([text[-1] for text in texts])
            yield Kind.LOGITS, logits
            yield from ((Kind.KEPT, kept) for kept in batch.cached())
            yield from ((Kind.KEPT, left[: batch.rows]) for left in (sums.left.values() if sums else ()))

        vocabulary = self._lm.model.get_input_embeddings().weight.shape[0]
        most = longest if columns else min(_TEXT, longest)  # a model may have no room for more
        lengths = (_SHORT, longest) if columns else (_SHORT,)
        return self._result(trial, rows, most, columns or most, lengths)

    def full(self, rows: int, width: int, strings: Sequence[Sequence[int]]) -> Isolation:
        """Probe batches of this width that are read in full, and have strings scored behind their prompts."""

        def trial(texts: Sequence[Text], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
            """Read, score, and take a decoding step."""
            batch = PaddedBatch(self._lm, texts, width, self._at_once, padded - len(texts))
            opened = batch.open(strings)
            yield from ((Kind.KEPT, kept) for kept in batch.cached())
            yield Kind.LOGITS, opened.logits
            yield Kind.SCORES, opened.spelled[:, None]
            yield Kind.LOGITS, batch.append([_STEP_TOKEN] * batch.rows)
            yield from ((Kind.KEPT, kept) for kept in batch.cached())

        return self._result(trial, rows, width - 1, (width, *map(tuple, strings)))

    def _result(
        self, trial: Trial, rows: int, longest: int, shapes: Hashable, lengths: Sequence[int] = (_SHORT,)
    ) -> Isolation:
        return self._results.get((rows, shapes), lambda: self._probe(trial, rows, longest, lengths))

    def _probe(self, trial: Trial, rows: int, longest: int, lengths: Sequence[int]) -> Isolation:
        """Find the smallest number of rows at which none affects another's bits; else measure how far they move."""
        embeddings = self._lm.model.get_input_embeddings().weight.detach()
        extreme = embeddings.float().norm(dim=-1).topk(min(_EXTREME, len(embeddings))).indices.tolist()
        tried = [_layouts(rows, longest, len(embeddings), extreme, length) for length in lengths]
        coupled = why_coupled(self._lm)
        for padded in () if coupled else padded_counts(rows):
            if not any(_moves(trial, padded, layouts) for layouts in tried):
                return Isolation(rows, padded)
        layouts = tried[-1]
        return Isolation(rows, rows, False, *_movement(trial, rows, layouts), coupled, _repeats(trial, layouts))


def whole_tiles(columns: int) -> int:
    """Round columns up to a multiple of a tile."""
    return -(-columns // _TILE) * _TILE


@dataclass(frozen=True)
class _Layout:
    """A batch to test: the tokens of its rows, and the indices of the target among them."""

    rows: tuple[Text, ...]
    targets: tuple[int, ...]


def _layouts(rows: int, longest: int, vocabulary: int, extreme: Sequence[int], length: int) -> list[_Layout]:
    """Lay out the target at the even places, then at the odd ones, among neighbours of all lengths."""
    target = (*((7 * i + 3) % vocabulary for i in range(min(length, longest) - 1)), _STEP_TOKEN % vocabulary)
    mixed = tuple((7919 * i + 11) % vocabulary for i in range(longest))
    many = tuple(extreme[i % len(extreme)] for i in range(longest))
    neighbours = ((extreme[0],) * longest, mixed, (extreme[-1],), many[: -(-longest // 2)], many)
    layouts = []
    for first in (0, 1):
        texts = [neighbours[(row // 2 + first) % len(neighbours)] for row in range(rows)]
        targets = tuple(range(first, rows, 2))
        layouts.append(_Layout(tuple(target if row in targets else t for row, t in enumerate(texts)), targets))
    return layouts


def _columns(pair: Pair, text: Text) -> Pair:
    """Return one column [1, heads, columns, width] per token of a text, from a place on that its first token sets."""
    places = (torch.arange(len(text), device=pair[0].device) + text[0]) % pair[0].shape[2]
    return pair[0][:, :, places], pair[1][:, :, places]


def _moves(trial: Trial, padded: int, layouts: Sequence[_Layout]) -> bool:
    """True if the target's bits are not the same everywhere."""
    expected: list[torch.Tensor] = []
    for layout in layouts:
        for at, (_, numbers) in enumerate(trial(layout.rows, padded)):
            bits = _bits(numbers[list(layout.targets)])
            if at == len(expected):
                expected.append(bits[0].clone())
            if not torch.equal(bits, expected[at].expand_as(bits)):
                return True
    return False


def _movement(trial: Trial, padded: int, layouts: Sequence[_Layout]) -> tuple[float, float]:
    """Measure how far the target's probabilities and logits (as a share of the largest) move; infinite if NaN.

    The target in a batch alone is compared, too.
    """
    expected: list[torch.Tensor] = []
    moved = moved_logits = 0.0
    alone = _Layout((layouts[0].rows[layouts[0].targets[0]],), (0,))
    for layout in (*layouts, alone):
        computed = trial(layout.rows, 1 if layout is alone else padded)
        for at, (kind, numbers) in enumerate((k, n) for k, n in computed if k is not Kind.KEPT):
            seen = numbers[list(layout.targets)].double()
            if at == len(expected):
                expected.append(seen[0])
            wanted = expected[at]
            if kind is Kind.SCORES:
                moved = max(moved, _gap(seen, wanted))
                continue
            moved = max(moved, _gap(seen.softmax(-1), wanted.softmax(-1)))
            moved_logits = max(moved_logits, _gap(seen, wanted) / max(1.0, float(wanted.abs().max())))
    return moved, moved_logits


def _repeats(trial: Trial, layouts: Sequence[_Layout]) -> bool:
    """Tell whether the target, read alone before and after other texts, has the same bits each time."""
    target = layouts[0].rows[layouts[0].targets[0]]
    runs = [
        [_bits(numbers).clone() for _, numbers in trial((text,), 1)] for text in (target, *layouts[1].rows[1:2], target)
    ]
    return all(map(torch.equal, runs[0], runs[-1]))


def _gap(seen: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((seen - wanted).abs().max().nan_to_num(nan=math.inf))


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    """View numbers [rows, ...] as [rows, bytes]."""
    return numbers.reshape(len(numbers), -1).contiguous().view(torch.uint8)
