"""Several prompts, each read by itself and at its own length, that take decoding steps together.

A row's shape may depend on its own passage, and on nothing of another row's: each prompt is read in a batch of its
own. The shapes of decoding steps follow from
the settings and the number of rows. Each row's attention is computed by itself, over the columns that it has; for
accelerators over as many columns as the settings say, with an explicit mask. What rows still have in common are the
products with the model's weights and with a prefix that they share; in which number of rows these are exact is for the
isolation probe to find, and rows of padding, which hold nothing, may make up that number.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from robustrag_integrations.models.local.alone import Read, Row, read_alone
from robustrag_integrations.models.local.batch import Opened
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.key_values import KeyValues, Pair
from robustrag_integrations.models.local.masks import NOWHERE, MaskRules
from robustrag_integrations.models.local.packing import Stem, known_noise
from robustrag_integrations.models.local.slab import Slab

T = TypeVar("T")

_TILE = 64  # where all rows attend to as many columns, that is a multiple of this, so that there are few shapes
_ALIKE = 32  # elsewhere of this: all rows begin at whole lines of memory, as kernels may sum up otherwise
WORTH_KEEPING_ONCE = 128  # tokens of a prefix from which on reading it once pays for joining two parts of an attention


class SharedBatch:
    """Rows in one slab. A long prefix that several rows have is kept once; other prefixes stand in their own rows.

    Args:
        lm: the model.
        rules: its attention masks.
        rows: the prompts.
        longest: per prompt, how many tokens it could have, whatever its passage.
        room: columns for what comes after the prompts.
        at_once: how many tokens are read in one forward pass.
        once: whether a long prefix that several rows have can be kept and read once, or has to be in every row.
        row_by_row: whether a decoding step computes each row's attention by itself.
        step_rows: rows of a decoding step, those of padding included; None for the prompts alone.

    Attributes:
        at_once: as above.
        before: tokens of the prefix that is kept once.
        longest: tokens of a prompt behind that prefix at most, and of the prefix.
    """

    def __init__(
        self,
        lm: CausalLM,
        rules: MaskRules,
        rows: Sequence[Row],
        *,
        longest: Sequence[int],
        room: int,
        at_once: int,
        once: bool,
        row_by_row: bool,
        step_rows: int | None = None,
    ) -> None:
        self._lm, self._rules, self._rows, self.at_once = lm, rules, rows, at_once
        self.rows, self.step_rows = len(rows), step_rows or len(rows)
        common = _most_common([row.prefix for row in rows]) if once else None
        shared = common if common is not None and common.tokens >= WORTH_KEEPING_ONCE else None
        self.before = shared.tokens if shared else 0
        own = max(most - (self.before if row.prefix is shared else 0) for row, most in zip(rows, longest, strict=True))
        self.longest = self.before + own
        multiple = _ALIKE if row_by_row else _TILE
        capacity = -(-(own + room) // multiple) * multiple
        self._slab = Slab(self.step_rows, capacity, shared, row_by_row=row_by_row)
        self._starts = [self.before] * self.step_rows
        self._next = torch.zeros(self.step_rows, dtype=torch.long, device=lm.device)

    @property
    def step_shape(self) -> tuple[int, int] | None:
        """Columns that a step of any row attends to, shared ones and its own; None if each attends to what it has."""
        return None if self._slab.row_by_row else (self.before, self._slab.capacity)

    def fork(self) -> SharedBatch:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._slab = self._slab.copy()
        return twin

    def cached(self) -> Iterator[torch.Tensor]:
        """The keys and values [rows, heads, width] of the last token of each row, layer by layer."""
        return iter(self._slab.last())

    def stem(self) -> Stem | None:
        """What a tree of continuations can grow on, if `known_noise`; the batch itself stays as it is."""
        if not known_noise(self._lm):
            return None
        with torch.inference_mode():
            pairs = self._slab.pairs()
        keys = self._places(self.before + pairs[0][0].shape[2], self._next)[: self.rows]
        return Stem.after(self._lm, self._rules, pairs, keys, self._next[: self.rows], self._slab.shared_pairs())

    def _places(self, columns: int, counts: torch.Tensor) -> torch.Tensor:
        """[rows, columns] positions of what stands in the first columns, so many tokens in each row; else NOWHERE."""
        device = self._lm.device
        starts = torch.tensor(self._starts, device=device)[:, None]
        places = torch.arange(columns, device=device) - starts
        return places.masked_fill_((places < 0) | (places >= counts[:, None]), NOWHERE)

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts and score the strings behind them."""
        with self._lm.memory_explained(self.step_rows, self.before + self._slab.capacity):
            opened = [what for _, what in self._read(strings)]
        return Opened(torch.cat([o.logits for o in opened]), torch.cat([o.spelled for o in opened]))

    def _read(self, strings: Sequence[Sequence[int]]) -> Iterator[Read]:
        """Read each prompt into its row, and score the strings behind it. Prompts that are the same are read once."""
        known: dict[tuple[Hashable, ...], Read] = {}
        for at, row in enumerate(self._rows):
            key = id(row.prefix), row.rest
            if key not in known:
                stop_if_given_up()
                known[key] = read_alone(self._lm, self._rules, row, strings, self.at_once)
            self._put(at, row, known[key][0])
            yield known[key]

    def _put(self, at: int, row: Row, read: Sequence[Pair]) -> None:
        before = self.before if self._begins(row) else 0
        self._slab.put(at, read, before)
        self._starts[at] = self.before - before
        self._next[at] = row.tokens

    def _begins(self, row: Row) -> KeyValues | None:
        """The prefix that is kept once, if the prompt begins with it."""
        return row.prefix if row.prefix is self._slab.shared else None

    def _mask(self) -> Any:
        """The mask of the next step, whose tokens see all that their rows have; None where nothing has to be hidden."""
        if self._slab.row_by_row and self._slab.shared is None and self._rules.plain:
            return None
        return self._rules.mask(self._next[:, None], self._places(self.before + self._slab.width, self._next + 1))

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        ids = torch.tensor([*tokens, *[0] * (self.step_rows - self.rows)], device=self._lm.device)[:, None]
        logits = self._lm(ids, self._mask(), self._next[:, None], self._slab)
        self._slab.advance()
        self._next = self._next + 1
        return logits[: self.rows, -1]


def _most_common(prefixes: Sequence[KeyValues | None]) -> KeyValues | None:
    """The prefix of the most rows, if there is one that at least two have."""
    counts = Counter(id(prefix) for prefix in prefixes if prefix is not None)
    found = max((p for p in prefixes if p is not None), key=lambda p: counts[id(p)], default=None)
    return found if found is not None and counts[id(found)] > 1 else None
