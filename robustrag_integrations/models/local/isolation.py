"""The isolation probe: whether a row of a batch computes the same bits whatever the other rows hold.

Floats are not associative, and which kernel adds up a row's numbers depends on the processor, the library, the number
of threads and the shape of the batch. So isolation to the last bit is not assumed of a precision or a processor: it is
tried out, on the model itself, in the shapes that it is about to run in. One target row stands at every place of the
batch, among copies of itself and among neighbours with other words and lengths; its bits must be the same each time.

Where they are not, the batch is padded with constant rows until a number of them is exact. That costs little where
prompts are read one by one: padding is not read, it only fills decoding steps. Where no number is found, `Isolation`
says how far the target moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import product
from typing import Any

import torch

from robustrag_integrations.models.local.causal_lm import modules_of
from robustrag_integrations.models.noise import noise_bound

_MULTIPLES = (1, 4, 8, 16, 32)  # kernels work on rows in blocks of such sizes
SHORT = 5  # tokens of the target
_DYNAMIC_QUANTISATION = ("torch.ao.nn.quantized.dynamic", "torch.ao.nn.intrinsic.quantized.dynamic")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


class Kind(Enum):
    """What numbers of a trial are: keys and values, logits, or probabilities of strings."""

    KEPT = auto()
    LOGITS = auto()
    SCORES = auto()


Trial = Callable[[Sequence[tuple[int, ...]], int], Iterator[tuple[Kind, torch.Tensor]]]
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
        unknown = self.coupled or not self.repeatable or bound is None or of_probabilities is None
        return math.inf if unknown or bound is None else bound


def in_words(found: Sequence[Isolation]) -> str:
    """What the probe found, for certificates."""
    if not found:
        return "not probed: no batch of several prompts was read yet"
    moving = [f for f in found if not f.exact]
    if not moving:
        rows = ", ".join(f"{f.rows}" + f" as {f.padded}" * (f.padded > f.rows) for f in found)
        return f"probed: not a bit of a row depends on other rows (rows: {rows})"
    worst = max(moving, key=lambda f: f.moved)
    why = (
        f"; {worst.coupled}"
        if worst.coupled
        else ""
        if worst.repeatable
        else "; one alone gives other numbers each time"
    )
    return f"probed: {worst.rows} rows of a batch moved each other's probabilities by {worst.moved:.1e}{why}"


def probe(
    trial: Trial,
    rows: int,
    *,
    longest: int,
    vocabulary: int,
    extreme: Sequence[int],
    coupled: str | None,
    lengths: Sequence[int] = (SHORT,),
) -> Isolation:
    """Find a number of rows in which none has a say in another one's bits, the smallest.

    Args:
        trial: runs the model.
        rows: the prompts, at least two.
        longest: the longest row to try, in tokens.
        vocabulary: token ids are below this.
        extreme: tokens with large embeddings.
        coupled: why rows are known to depend on each other's content, if they do; no padding is tried then.
        lengths: of the target, in tokens: each is tried.
    """
    tried = [_layouts(rows, longest, vocabulary, extreme, length) for length in lengths]
    for padded in () if coupled else _padded(rows):
        if not any(_moves([trial], padded, layouts) for layouts in tried):
            return Isolation(rows, padded)
    layouts = tried[-1]
    return Isolation(rows, rows, False, *_movement(trial, rows, layouts), coupled, _repeats(trial, layouts))


def why_coupled(model: torch.nn.Module) -> str | None:
    """Why rows of a batch depend on each other's content by the model's design, as far as it can be told; else None.

    Whether the probe's neighbours would show it is a matter of luck there: they need not hold the largest activation of
    a batch, nor send their tokens to the target's experts.
    """
    for module in modules_of(model):
        kind = type(module)
        if kind.__module__.startswith(_DYNAMIC_QUANTISATION):
            return f"{_name_of(module, model)} quantises activations with a scale taken over all rows"
        if kind.__name__ == "Linear8bitLt":
            return f"{_name_of(module, model)} picks the columns that it does not quantise by looking at all rows"
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    if any((getattr(text, field, None) or 0) > 1 for field in _EXPERTS):
        return "it is a mixture of experts: which tokens an expert reads together depends on all rows"
    return None


def _name_of(module: torch.nn.Module, model: torch.nn.Module) -> str:
    """What a module is called in a model, and its class."""
    return f"{next(name for name, one in model.named_modules() if one is module)} ({type(module).__name__})"


def adapts_as_it_runs(model: torch.nn.Module) -> str | None:
    """The name of a module that changes with what it reads, as fake quantisation does while it observes; else None."""
    watching = ((name, getattr(module, "observer_enabled", None)) for name, module in model.named_modules())
    return next((name for name, on in watching if isinstance(on, torch.Tensor) and bool(on.any())), None)


def _padded(count: int) -> list[int]:
    return sorted({-(-count // multiple) * multiple for multiple in _MULTIPLES})


@dataclass(frozen=True)
class _Layout:
    """A batch to try: the tokens of its rows, and which of them are the target."""

    rows: tuple[tuple[int, ...], ...]
    targets: tuple[int, ...]


def _layouts(rows: int, longest: int, vocabulary: int, extreme: Sequence[int], length: int = SHORT) -> list[_Layout]:
    """The target at all places, then at the even and at the odd ones between neighbours of all lengths."""
    target = tuple((7 * i + 3) % vocabulary for i in range(min(length, longest)))
    mixed = tuple((7919 * i + 11) % vocabulary for i in range(longest))
    many = tuple(extreme[i % len(extreme)] for i in range(longest))
    neighbours = ((extreme[0],) * longest, mixed, (extreme[-1],), many[: -(-longest // 2)], many)
    layouts = [_Layout((target,) * rows, tuple(range(rows)))]
    for first in (0, 1):
        texts = [neighbours[(row // 2 + first) % len(neighbours)] for row in range(rows)]
        targets = tuple(range(first, rows, 2))
        layouts.append(_Layout(tuple(target if row in targets else t for row, t in enumerate(texts)), targets))
    return layouts


def _moves(trials: Sequence[Trial], padded: int, layouts: Sequence[_Layout]) -> bool:
    """Whether the target's bits are not the same everywhere."""
    expected: list[torch.Tensor] = []
    for layout, trial in product(layouts, trials):
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
    alone = _Layout((layouts[0].rows[0],), (0,))
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
    target = layouts[0].rows[0]
    runs = [
        [_bits(numbers).clone() for _, numbers in trial((text,), 1)] for text in (target, *layouts[1].rows[1:2], target)
    ]
    return all(map(torch.equal, runs[0], runs[-1]))


def _gap(seen: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((seen - wanted).abs().max().nan_to_num(nan=math.inf))


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    """[rows, bytes] of numbers [rows, ...]."""
    return numbers.reshape(len(numbers), -1).contiguous().view(torch.uint8)
