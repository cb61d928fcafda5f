"""The isolation probe: whether a row of a batch computes the same bits whatever the other rows hold.

Floats are not associative, and which kernel adds up a row's numbers depends on the processor, the library, the number
of threads and the shape of the batch. So isolation to the last bit is not assumed of a precision or a processor: it is
tried out, on the model itself, in the shapes that it is about to run in.

Prompts are read one by one, so a decoding step is all that they take together, and a step is what is tried: of the
rows that are there, with keys and values made up from those of one short text. A target stands at the even places
among neighbours with other tokens and lengths, then at the odd places among others; its bits must be the same at all
of them. In half precision, where rounding hides much, its products are summed up once more of numbers that all but
cancel. That makes two steps and a text of 32 tokens: less than one question. Models that are read in full, all rows in
one batch, are tried with two such batches.

Where the bits are not the same, the batch is padded with constant rows until a number of them is exact: padding is not
read, it only fills decoding steps. Where no number is found, `Isolation` says how far the target moved.
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
    """What numbers of a trial are: keys and values, logits, or probabilities of strings."""

    KEPT = auto()
    LOGITS = auto()
    SCORES = auto()


Trial = Callable[[Sequence[Text], int], Iterator[tuple[Kind, torch.Tensor]]]
"""Runs these rows in a batch of so many, padding included: yields all numbers [rows, ...] in which other rows may have
a say, in the same order each time."""


@dataclass(frozen=True)
class Isolation:
    """What the probe found for a number of rows.

    Attributes:
        rows: the prompts.
        padded: the rows to run them in, those of padding included.
        exact: whether no bit of the target moved, in what was computed after the prompts and a token more, nor in the
            keys and values that later tokens depend on.
        moved: how far one of the target's probabilities moved at most.
        moved_logits: the same for logits, as a share of the largest (taken as at least 1).
        coupled: why no measurement bounds how far rows move each other; None if one does.
        repeatable: whether the target alone computes the same bits twice; tried where no shape is exact.
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
        """Whether rows move each other by no more than float noise."""
        return math.isfinite(self.logit_noise)

    @property
    def noise(self) -> float:
        """How far other rows may move a probability; 1.0 (any distance) where nothing bounds it."""
        bound = noise_bound(self.moved) if self.bounded else None
        return 0.0 if self.exact else 1.0 if bound is None else bound

    @property
    def logit_noise(self) -> float:
        """How far other rows may move a logit, as a share of the largest; infinite where nothing bounds it."""
        if self.exact:
            return 0.0
        bound, of_probabilities = noise_bound(self.moved_logits), noise_bound(self.moved)
        if self.coupled or not self.repeatable or bound is None or of_probabilities is None:
            return math.inf
        return bound


def in_words(results: Sequence[Isolation]) -> str:
    """What the probe found, for certificates."""
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
    """Probes a model in the shapes that it is about to run in, and remembers what was found.

    Args:
        lm: the model.
        at_once: how many tokens may be read in one forward pass.
    """

    def __init__(self, lm: CausalLM, at_once: int) -> None:
        self._lm, self._at_once = lm, at_once
        self._results = ModelMemo[Isolation](lm)

    @property
    def results(self) -> list[Isolation]:
        """What was found so far, by rows."""
        return sorted(set(self._results.values), key=lambda result: result.rows)

    def forget(self) -> None:
        """Forget what was found."""
        self._results.clear()

    def steps(
        self,
        lay: Callable[[Sequence[Text], int], PromptRows],
        read: Callable[[Text], Sequence[Pair]],
        rows: int,
        columns: tuple[int, int] | None,
        longest: int,
    ) -> Isolation:
        """For prompts that take decoding steps together.

        Args:
            lay: a batch of such rows, behind their prefix, that holds nothing yet.
            read: keys and values [1, heads, tokens, width] of a text, per layer.
            rows: its prompts.
            columns: that all rows attend to, shared ones and their own; None if each attends to those that it has.
            longest: tokens of a prompt behind its prefix, at most.
        """
        known: list[Sequence[Pair]] = []

        def trial(texts: Sequence[Text], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
            """A step of rows that hold columns of the text from another place on, each behind its own last token."""
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
        most = longest if columns else min(_TEXT, longest)  # a model may have no place for more
        lengths = (_SHORT, longest) if columns else (_SHORT,)
        return self._result(trial, rows, most, columns or most, lengths)

    def full(self, rows: int, width: int, strings: Sequence[Sequence[int]]) -> Isolation:
        """For batches of this width that are read in full, and have strings scored behind their prompts."""

        def trial(texts: Sequence[Text], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
            """Reading, scoring, and a decoding step."""
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
        """The smallest number of rows in which none has a say in another one's bits; else how far they move."""
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
    """So many columns, or the next multiple of a tile."""
    return -(-columns // _TILE) * _TILE


@dataclass(frozen=True)
class _Layout:
    """A batch to try: the tokens of its rows, and which of them are the target."""

    rows: tuple[Text, ...]
    targets: tuple[int, ...]


def _layouts(rows: int, longest: int, vocabulary: int, extreme: Sequence[int], length: int) -> list[_Layout]:
    """The target at the even places, then at the odd ones, among neighbours of all lengths."""
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
    """As many columns [1, heads, columns, width] as a text has tokens, from a place on that its first token says."""
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
    """How far the target's probabilities and logits (as a share of the largest) move; infinite if not numbers.

    The batch of the target alone is among those compared.
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
    """Whether the target, read alone before and after other texts, has the same bits each time."""
    target = layouts[0].rows[layouts[0].targets[0]]
    runs = [
        [_bits(numbers).clone() for _, numbers in trial((text,), 1)] for text in (target, *layouts[1].rows[1:2], target)
    ]
    return all(map(torch.equal, runs[0], runs[-1]))


def _gap(seen: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((seen - wanted).abs().max().nan_to_num(nan=math.inf))


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    """[rows, bytes] of numbers [rows, ...]."""
    return numbers.reshape(len(numbers), -1).contiguous().view(torch.uint8)
