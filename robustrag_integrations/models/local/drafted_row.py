"""One prompt whose decoding steps have a row for each token that may come next, as drafts say.

Everything but the products with the weights is computed for each token by itself, in the very calls of a step that
reads it alone. What is left are products of several rows, in numbers of rows in which a row has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn import functional

from robustrag_integrations.models.local.alone import Alone
from robustrag_integrations.models.local.attending import AttendingCache
from robustrag_integrations.models.local.batch import Opened
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.joint import attended_pass, layer_kinds
from robustrag_integrations.models.local.kernels import at_least_single
from robustrag_integrations.models.local.key_values import Pair
from robustrag_integrations.models.local.masks import MaskRules
from robustrag_integrations.models.local.step_shapes import StepShapes
from robustrag_integrations.models.local.torch_calls import TorchCalls
from robustrag_integrations.models.local.trie import TokenTrie

OF_SINGLE_NUMBERS = frozenset(
    {"cos", "erf", "exp", "gelu", "log", "mish", "sigmoid", "silu", "sin", "softplus", "tanh"}
)


class DraftedRow:
    """A prompt that has a batch of its own, and takes decoding steps in a few numbers of rows.

    Args:
        alone: the prompt, not read yet.
        lm: the model.
        rules: its attention masks.
        shapes: the numbers of rows of a step; those without a token are padding.
    """

    rows = 1

    def __init__(self, alone: Alone, lm: CausalLM, rules: MaskRules, shapes: StepShapes) -> None:
        self._alone, self._lm, self._rules, self._shapes = alone, lm, rules, shapes
        self._cache = DraftCache((), (), (), 0, 0)

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompt by itself, and score strings that may follow, given as tokens."""
        opened = self._alone.open(strings)
        cache = self._alone.cache
        with torch.inference_mode():
            kinds = layer_kinds(self._lm)
            windows = [self._rules.windows[kind] for kind in kinds or [*self._rules.windows] * len(cache.layers)]
            self._cache = DraftCache(cache.pairs(), kinds, windows, cache.capacity, self._alone.tokens)
        return opened

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token; [1, V] float32 logits of the one after it."""
        trie = TokenTrie([tokens[:1]])
        logits = self.read(trie)
        self.take(trie, 0)
        return logits

    def read(self, drafts: TokenTrie) -> torch.Tensor:
        """Read all tokens that may come next; [nodes, V] float32 logits of what follows each."""
        return self.read_in(self._shapes.of(len(drafts)) or len(drafts), drafts.tokens, drafts.lines())

    @torch.inference_mode()
    def read_in(self, rows: int, tokens: Sequence[int], lines: Sequence[Sequence[int]]) -> torch.Tensor:
        """`read` in a step of so many rows.

        Args:
            rows: of the step.
            tokens: per node.
            lines: per node, its ancestors and itself, by their numbers.
        """
        padding = rows - len(tokens)
        ids = torch.tensor([*tokens, *[0] * padding], device=self._lm.device)[:, None]
        depths = torch.tensor([*(len(line) for line in lines), *[1] * padding], device=self._lm.device)
        self._cache.begin(lines)
        with _rows_apart(rows, self._lm.device):
            logits = attended_pass(self._lm, ids, self._cache.used + depths[:, None] - 1, self._cache)
        return logits[: len(tokens), -1]

    @property
    def new(self) -> list[Pair]:
        """Per layer the keys and values [rows, heads, 1, width] of the tokens that were read last."""
        return self._cache.new

    @torch.inference_mode()
    def take(self, drafts: TokenTrie, node: int) -> None:
        """Go on behind a token that was read just now; the others are forgotten."""
        self._cache.take(drafts.lines()[node])


class DraftCache(AttendingCache):
    """The columns of one row, and tokens that may come behind them; in the precision that attention has.

    Args:
        read: per layer the keys and values [1, heads, columns, width] that were read.
        kinds: the kind of attention of each layer; empty where all are of one kind.
        windows: per layer, how many columns a token sees at most; None for all.
        capacity: columns that there will be at most.
        used: columns that were read.
    """

    def __init__(
        self, read: Sequence[Pair], kinds: Sequence[str], windows: Sequence[int | None], capacity: int, used: int
    ) -> None:
        super().__init__(kinds)
        self.used, self.capacity, self._windows = used, capacity, windows
        self._kept = [tuple(_with_room(t, capacity) for t in pair) for pair in read]
        self._lines: Sequence[Sequence[int]] = ()
        self.new: list[Pair] = []

    @property
    def width(self) -> int:
        """Columns that the next token attends to."""
        return self.used + 1

    def begin(self, lines: Sequence[Sequence[int]]) -> None:
        """Have the next pass read these nodes, given by their ancestors and themselves."""
        self.begin_pass()
        self._lines, self.new = lines, []

    def keep(self, new: Pair, layer: int) -> None:
        """Keep a layer's new columns apart."""
        self.new.append(new)

    def take(self, line: Sequence[int]) -> None:
        """Keep the columns of these nodes."""
        for kept, new in zip(self._kept, self.new, strict=True):
            self._write(kept, new, line, 0)
        self.used += len(line)

    def attend(self, query: torch.Tensor, new: Pair, scale: float | None) -> torch.Tensor:
        """Each node's attention to the row, its ancestors and itself, in the columns that these have in a step."""
        layer = len(self.new) - 1
        (keys, values), window = self._kept[layer], self._windows[layer]
        folded = query.reshape(len(query), keys.shape[1], -1, query.shape[-1]).to(keys.dtype)
        found, written = torch.zeros_like(folded), [-1]
        for node, line in enumerate(self._lines):
            same = next((i for i, (a, b) in enumerate(zip(written, line, strict=False)) if a != b), len(written))
            self._write((keys, values), self.new[layer], line, min(same, len(line)))
            written = list(line)
            end = self.used + len(line)
            seen = slice(0 if window is None else max(0, end - window), end)
            found[node] = functional.scaled_dot_product_attention(
                folded[node : node + 1], keys[:, :, seen], values[:, :, seen], scale=scale
            )[0]
        return found.reshape(query.shape).to(query.dtype)

    def _write(self, kept: Sequence[torch.Tensor], new: Pair, line: Sequence[int], first: int) -> None:
        """Write the columns of these nodes, from the `first` on, behind those in use."""
        for whole, fresh in zip(kept, new, strict=True):
            columns = fresh[list(line[first:]), :, 0].transpose(0, 1)
            whole[0, :, self.used + first : self.used + len(line)] = columns


def _with_room(read: torch.Tensor, capacity: int) -> torch.Tensor:
    """Columns [1, heads, columns, width] with room for more behind them, in the precision of an attention."""
    shape = (*read.shape[:2], capacity, read.shape[3])
    kept = torch.empty(shape, dtype=at_least_single(read.dtype), device=read.device)
    kept[:, :, : read.shape[2]] = read
    return kept


def _rows_apart(rows: int, device: torch.device) -> AbstractContextManager[object]:
    """On a CPU, functions of single numbers are computed for each row by itself.

    They go in vectors there, and what does not fill one by another formula: which numbers that are depends on how many
    rows there are, and on how threads share them.
    """
    return _RowsApart(rows) if device.type == "cpu" else nullcontext()


class _RowsApart(TorchCalls):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows = rows

    def call(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Row by row, if it computes single numbers."""
        numbers = args[0] if args else None
        if (
            getattr(func, "__name__", "") in OF_SINGLE_NUMBERS
            and isinstance(numbers, torch.Tensor)
            and numbers.ndim
            and len(numbers) == self._rows
        ):
            return torch.cat([func(row, *args[1:], **kwargs) for row in numbers.split(1)])
        return func(*args, **kwargs)
