"""The isolation probe: a test that a row of a batch computes the same bits whatever the other rows hold.

Float addition is not associative, and the kernel that adds up a row's numbers depends on the processor, the library,
the number of threads and the shape of the batch. So bitwise isolation is not assumed of a precision or a processor: it
is tested on the model itself, in the shapes that it is about to run in.

Prompts are read one by one and share only decoding steps, so a step is what is tested: one of the actual number of
rows, with keys and values made up from those of one short text. A target stands at the even places among neighbours
with other tokens and lengths, then at the odd places among others; its bits must be the same at all of them. In half
precision, where rounding hides much, products of the model's shapes are computed of numbers that all but cancel.

Where the bits differ, the batch is padded with constant rows until a number of rows is exact: padding is not read, it
only fills decoding steps. Where there is no such number, every prompt is read and decoded in a batch of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch.nn import functional

from robustrag_integrations.models.local.batches import PromptRows, SinglePrompt
from robustrag_integrations.models.local.cache import Pair
from robustrag_integrations.models.local.cancellation import uncancelled
from robustrag_integrations.models.local.language_model import CausalLM, MaskRules, why_coupled

T = TypeVar("T")
_SHORT = 5  # tokens of the target, when it is short
_TEXT = 32  # tokens of the text that trials take keys and values from
_STEP_TOKEN = 5
_EXTREME = 8  # tokens with the largest embeddings: neighbours in a trial
_DIFFERENT = 509  # different outputs of a trial's weight

Text = tuple[int, ...]


class ModelMemo(Generic[T]):
    """Values by key, for the weights, device, precision and threads they came from; safe to use from threads."""

    def __init__(self, lm: CausalLM) -> None:
        self._lm = lm
        self._values: dict[Hashable, T] = {}
        self._weights: Hashable = ()
        self._lock = threading.Lock()

    @property
    def values(self) -> list[T]:
        """All remembered values."""
        with self._lock:
            return list(self._values.values())

    def get(self, key: Hashable, measure: Callable[[], T]) -> T:
        """Return the value of a key, measured if need be; concurrent callers wait."""
        weights = self._lm.fingerprint()
        machine = (self._lm.device, self._lm.dtype, torch.get_num_threads(), torch.get_float32_matmul_precision())
        with self._lock:
            if weights != self._weights:
                self._values.clear()
                self._weights = weights
            if (key, machine) not in self._values:
                with uncancelled():
                    self._values[key, machine] = measure()
            return self._values[key, machine]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()


@dataclass(frozen=True)
class Isolation:
    """The probe's result for a number of rows.

    Attributes:
        rows: the prompts.
        padded: the rows to run them in, those of padding included.
        exact: True if no bit of the target moved, in logits, keys and values.
        coupled: why rows depend on each other by design; None if nothing says so.
        repeatable: True if the target alone computes the same bits twice; tried where no shape is exact.
    """

    rows: int
    padded: int
    exact: bool = True
    coupled: str | None = None
    repeatable: bool = True


def in_words(results: Sequence[Isolation]) -> str:
    """Describe the probe's results, for certificates."""
    if not results:
        return "not probed: no batch of several prompts was read yet"
    moving = next((result for result in results if not result.exact), None)
    if moving is None:
        rows = ", ".join(f"{f.rows}" + f" as {f.padded}" * (f.padded > f.rows) for f in results)
        return f"probed: not a bit of a row depends on other rows (rows: {rows})"
    why = "" if moving.repeatable else "; one alone gives other numbers each time"
    why = f"; {moving.coupled}" if moving.coupled else why
    return (
        f"probed: {moving.rows} rows of a batch move each other's numbers, and each is read in a batch of its own{why}"
    )


def probe(lm: CausalLM, rules: MaskRules, rows: int, columns: int, longest: int) -> Isolation:
    """Find the smallest number of rows at which none affects another's bits.

    These are so many prompts of at most `longest` tokens that take steps together and attend to so many columns.
    """
    embeddings = lm.model.get_input_embeddings().weight.detach()
    vocabulary, coupled = len(embeddings), why_coupled(lm)
    extreme = embeddings.float().norm(dim=-1).topk(min(_EXTREME, vocabulary)).indices.tolist()
    text = tuple((7919 * i + 11) % vocabulary for i in range(min(_TEXT, longest)))
    read = SinglePrompt(lm, rules, None, text, at_once=_TEXT)
    read.open()
    trial = _Trial(lm, rules, columns, read.key_values().layers)
    tried = [_layouts(rows, longest, vocabulary, extreme, length) for length in (_SHORT, longest)]
    blocks = {-(-rows // multiple) * multiple for multiple in (1, 4, 8, 16, 32)}  # in which kernels work
    for padded in () if coupled else sorted(blocks):
        hides = lm.dtype in (torch.bfloat16, torch.float16)  # rounding shows little of the order
        if not any(trial.moves(padded, t) for t in tried) and not (hides and sums_differ(lm, padded)):
            return Isolation(rows, padded)
    return Isolation(rows, rows, False, coupled, trial.repeats(tried[-1]))


_Layout = tuple[tuple[Text, ...], tuple[int, ...]]  # the tokens of a batch's rows, and the places of the target


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
        layouts.append((tuple(target if row in targets else t for row, t in enumerate(texts)), targets))
    return layouts


@dataclass(frozen=True)
class _Trial:
    """A step of rows that hold columns of a text, each from another place on; `layers` are its keys and values."""

    lm: CausalLM
    rules: MaskRules
    columns: int
    layers: Sequence[Pair]

    def moves(self, padded: int, layouts: Sequence[_Layout]) -> bool:
        """True if the target's bits are not the same everywhere."""
        expected: list[torch.Tensor] = []
        for rows, targets in layouts:
            for at, numbers in enumerate(self._numbers(rows, padded)):
                bits = _bits(numbers[list(targets)])
                if at == len(expected):
                    expected.append(bits[0].clone())
                if not torch.equal(bits, expected[at].expand_as(bits)):
                    return True
        return False

    def repeats(self, layouts: Sequence[_Layout]) -> bool:
        """Tell whether the target, read alone before and after other texts, has the same bits each time."""
        target = layouts[0][0][0]
        texts = (target, *layouts[1][0][:1], target)
        runs = [[_bits(numbers).clone() for numbers in self._numbers((text,), 1)] for text in texts]
        return all(map(torch.equal, runs[0], runs[-1]))

    def _numbers(self, texts: Sequence[Text], padded: int) -> Iterator[torch.Tensor]:
        """Yield all numbers [rows, ...] of a step that other rows may affect, in the same order each time."""
        batch = PromptRows(self.lm, self.rules, len(texts), padded, self.columns)
        for row, text in enumerate(texts):
            with torch.inference_mode():
                batch.cache.put(row, [_columns(pair, text) for pair in self.layers])
        yield batch.append([text[-1] for text in texts])
        yield from batch.cache.last(batch.rows)


def _columns(pair: Pair, text: Text) -> Pair:
    """Return one column [1, heads, columns, width] per token of a text, from a place on that its first token sets."""
    places = (torch.arange(len(text), device=pair[0].device) + text[0]) % pair[0].shape[2]
    return pair[0][:, :, places], pair[1][:, :, places]


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    """View numbers [rows, ...] as [rows, bytes]."""
    return numbers.reshape(len(numbers), -1).contiguous().view(torch.uint8)


def sums_differ(lm: CausalLM, rows: int) -> bool:
    """True if a product with weights of the model's shapes sums up equal rows of a step in different orders.

    Half precision rounds so much away that two orders of summation mostly give the same bits, but not always. So the
    numbers here all but cancel: only the rounding errors of the way are left, and another order leaves others.
    """
    shapes = set()
    for module in lm.model.modules():
        for transposed, names in (
            (False, ("in_features", "out_features")),
            (True, ("nx", "nf")),
        ):  # and of GPT-2's kind
            inputs, outputs = (getattr(module, name, None) for name in names)
            if isinstance(inputs, int) and isinstance(outputs, int):
                shapes.add((transposed, inputs, outputs, getattr(module, "bias", None) is not None))
    for transposed, inputs, outputs, with_bias in shapes:
        mine, weights = (numbers.to(lm.device, lm.dtype) for numbers in _cancelling(inputs, outputs))
        given = mine.expand(rows, 1, -1).contiguous()
        bias = given.new_zeros(outputs) if with_bias or transposed else None
        if transposed:
            left = torch.addmm(bias, given[:, 0], weights.T.contiguous())
        else:
            left = functional.linear(given, weights, bias)
        if not torch.equal(left, left[:1].expand_as(left)):
            return True
    return False


def _cancelling(summed: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a row [1, summed] and weights [outputs, summed] whose products sum to zero without rounding."""
    chance = torch.Generator().manual_seed(0)
    half = summed // 2
    order = torch.randperm(half, generator=chance)
    mine, weights = torch.zeros(1, summed), torch.zeros(min(outputs, _DIFFERENT), summed)
    mine[:, :half] = 64 * torch.randn(1, half, generator=chance)
    weights[:, :half] = torch.randn(len(weights), half, generator=chance)
    mine[:, half : 2 * half] = mine[:, order]
    weights[:, half : 2 * half] = -weights[:, order]
    return mine, weights[torch.arange(outputs) % len(weights)]
