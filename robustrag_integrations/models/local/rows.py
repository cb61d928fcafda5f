"""Several prompts, each read by itself and at its own length, that take decoding steps together.

Padding is an attack channel: kernels follow from shapes, and a passage must not choose the kernel of another row. So a
row's shape may depend on its own passage, and on nothing of another row's. Each prompt is read in a batch of its own.
The shapes of decoding steps follow from the settings and the number of rows: each row's attention is computed by
itself, over the columns that it has, or on accelerators over as many columns as the settings say, with an explicit
mask. What rows still have in common are the products with the model's weights and with a prefix that they share. The
isolation probe finds the number of rows at which these are exact; rows of padding make up that number.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from robustrag_integrations.models.local.attention import Pair
from robustrag_integrations.models.local.batch import Opened
from robustrag_integrations.models.local.cache import BatchKVCache, KeyValues
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.causal_lm import CausalLM, memory_explained
from robustrag_integrations.models.local.masks import NOWHERE, MaskRules
from robustrag_integrations.models.local.prompt import Row, SinglePrompt
from robustrag_integrations.models.local.token_tree import Stem, known_noise

_TILE = 64  # the columns that all rows attend to are a multiple of this, so that there are few shapes
_ALIKE = 32  # row by row, of this: rows begin at whole lines of memory, as kernels may sum others differently
WORTH_KEEPING_ONCE = 128  # tokens; reading a shorter prefix once does not pay for joining two parts of an attention


class PromptRows:
    """Rows of one cache. A long prefix that several rows have is kept once; other prefixes stand in their own rows.

    Args:
        lm: the model.
        rules: its attention masks.
        rows: the prompts.
        longest: per prompt, the most tokens that it could have, whatever its passage.
        room: columns for what comes after the prompts.
        at_once: number of tokens that are read in one forward pass.
        once: True if a long prefix that several rows have can be kept and read once, or has to be in every row.
        row_by_row: True if a decoding step computes each row's attention by itself.
        step_rows: rows of a decoding step, those of padding included; None for the prompts alone.

    Attributes:
        before: tokens of the prefix that is kept once.
        longest: tokens of a prompt behind that prefix at most, and of the prefix.
        cache: keys and values of all rows.
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
        self._lm, self._rules, self._rows, self._at_once = lm, rules, rows, at_once
        self.rows, self.step_rows = len(rows), step_rows or len(rows)
        common = _most_common([row.prefix for row in rows]) if once else None
        shared = common if common is not None and common.tokens >= WORTH_KEEPING_ONCE else None
        self.before = shared.tokens if shared else 0
        own = max(most - (self.before if row.prefix is shared else 0) for row, most in zip(rows, longest, strict=True))
        self.longest = self.before + own
        multiple = _ALIKE if row_by_row else _TILE
        capacity = -(-(own + room) // multiple) * multiple
        self.cache = BatchKVCache(
            self.step_rows, capacity, shared, prompts=self.rows, row_by_row=row_by_row, fixed=not row_by_row
        )
        self._starts = [self.before] * self.step_rows
        self._next = torch.zeros(self.step_rows, dtype=torch.long, device=lm.device)

    @property
    def step_shape(self) -> tuple[int, int] | None:
        """The columns, shared and own, that any row's step attends to; None if each row attends to what it has."""
        return (self.before, self.cache.capacity) if self.cache.fixed else None

    def fork(self) -> PromptRows:
        """Return an independent copy with bit-identical numbers."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin.cache = self.cache.copy()
        return twin

    def cached(self) -> Iterator[torch.Tensor]:
        """Yield the keys and values [rows, heads, width] of the last token of each row, layer by layer."""
        return iter(self.cache.last())

    def stem(self) -> Stem | None:
        """Return a stem for a tree of continuations, if `known_noise`; the batch itself stays as it is."""
        if not known_noise(self._lm):
            return None
        with torch.inference_mode():
            cache = self.cache.filled_up()
        places = self._places(self.before + max(cache.lengths), self._next)[: self.rows]
        return Stem(self._lm, self._rules, cache, places, self._next[: self.rows])

    def _places(self, columns: int, counts: torch.Tensor) -> torch.Tensor:
        """Return the [rows, columns] positions of the first columns, `counts` tokens in each row; else NOWHERE."""
        device = self._lm.device
        starts = torch.tensor(self._starts, device=device)[:, None]
        places = torch.arange(columns, device=device) - starts
        return places.masked_fill_((places < 0) | (places >= counts[:, None]), NOWHERE)

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read each prompt into its row, and score the strings behind it. Prompts that are the same are read once."""
        known: dict[tuple[int, tuple[int, ...]], tuple[list[Pair], Opened]] = {}
        room, opened = sum(map(len, strings)), []
        with memory_explained():
            for at, row in enumerate(self._rows):
                key = id(row.prefix), row.rest
                if key not in known:
                    stop_if_cancelled()
                    prompt = SinglePrompt(self._lm, self._rules, row, room=room, at_once=self._at_once)
                    first = prompt.open(strings)
                    known[key] = prompt.cache.pairs(), first
                self.hold(at, known[key][0], self._begins(row))
                opened.append(known[key][1])
        return Opened(torch.cat([o.logits for o in opened]), torch.cat([o.spelled for o in opened]))

    def hold(self, at: int, layers: Sequence[Pair], first: int) -> None:
        """Fill a row with the keys and values [1, heads, columns, width] of its prompt, from column `first` on."""
        row = self._rows[at]
        self.cache.put(at, layers, first)
        self._starts[at] = self.before - self._begins(row)
        self._next[at] = row.tokens

    def _begins(self, row: Row) -> int:
        """Return the length of the prefix that is kept once, if the prompt begins with it; else 0."""
        return self.before if row.prefix is self.cache.shared else 0

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        ids = torch.tensor([*tokens, *[0] * (self.step_rows - self.rows)], device=self._lm.device)[:, None]
        logits = self._lm(ids, self._mask(), self._next[:, None], self.cache)
        self.cache.advance()
        self._next = self._next + 1
        return logits[: self.rows, -1]

    def _mask(self) -> Any:
        """Build the next step's mask, whose tokens see their whole rows; None where nothing has to be hidden."""
        if self.cache.row_by_row and self.cache.shared is None and self._rules.plain:
            return None
        return self._rules.mask(self._next[:, None], self._places(self.before + self.cache.width, self._next + 1))


def _most_common(prefixes: Sequence[KeyValues | None]) -> KeyValues | None:
    """Return the prefix that the most rows have, if at least two, or all, have it."""
    counts = Counter(id(prefix) for prefix in prefixes if prefix is not None)
    most = max((p for p in prefixes if p is not None), key=lambda p: counts[id(p)], default=None)
    return most if most is not None and counts[id(most)] >= min(2, len(prefixes)) else None
