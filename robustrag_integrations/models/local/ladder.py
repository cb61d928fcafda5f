"""Short prompts read several in a pass, on a fixed ladder of widths: for accelerators.

An accelerator reads the weights of a large model longer than it computes a short prompt, so prompts are read several at
a time there. The shape of a pass is decided by the settings, the number of prompts that begin alike, and the length of
the row itself: every row takes the smallest width that it fits into, every width has its number of rows, and rows of
padding fill up what is left. Which rows stand in a pass together may depend on others. So a shape is used only if the
isolation probe found that a row has the same bits in it at any place among any neighbours; elsewhere, and where a
prompt is long enough by itself, prompts are read one by one, at their own length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad
from transformers.cache_utils import Cache

from robustrag_integrations.models.local.alone import Alone, Row, spelled
from robustrag_integrations.models.local.batch import Opened
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.isolation import Kind, Trial
from robustrag_integrations.models.local.isolation_probe import IsolationProbe
from robustrag_integrations.models.local.key_values import KeyValues, Pair
from robustrag_integrations.models.local.masks import NOWHERE, MaskRules
from robustrag_integrations.models.local.trie import TokenTrie

ENOUGH = 256  # tokens with which a pass computes for longer than it reads the weights
_STEP = 16  # widths are multiples of this
_PREFIX_STEP = 64  # columns of prefixes are, so that there are few shapes
_FILLING = (0,)  # the tokens of a row of padding

Read = tuple[Sequence[Pair], Opened]
"""Per layer a prompt's keys and values [1, heads, tokens, width], and what follows it."""


@dataclass(frozen=True)
class PassShape:
    """The shape of a pass.

    Attributes:
        rows: prompts, those of padding included.
        columns: of each, for its own tokens.
        nodes: columns behind them, for strings to be scored.
        before: columns of the prefix, hidden ones included.
    """

    rows: int
    columns: int
    nodes: int
    before: int

    @classmethod
    def of(cls, row: Row, nodes: int, alike: int, at_once: int) -> PassShape | None:
        """The shape that a prompt is read in; None if it is read by itself.

        Args:
            row: the prompt.
            nodes: tokens of strings to be scored behind it.
            alike: how many prompts of the batch have its prefix.
            at_once: how many tokens are read in one pass at most.
        """
        width = _up(len(row.rest) + nodes, _STEP)
        rows = min(_rows(width, alike), at_once // width)
        return None if rows < 2 or width >= ENOUGH else cls(rows, width - nodes, nodes, _up(row.shared, _PREFIX_STEP))


@dataclass(frozen=True)
class Ladder:
    """Reads the prompts of a batch.

    Attributes:
        lm: the model.
        rules: its attention masks.
        at_once: how many tokens are read in one pass at most.
        probe: finds out which shapes are exact.
    """

    lm: CausalLM
    rules: MaskRules
    at_once: int
    probe: IsolationProbe

    def read(self, rows: Sequence[Row], strings: Sequence[Sequence[int]]) -> list[Read]:
        """Read prompts, and score strings that may follow them."""
        trie = TokenTrie(string[:-1] for string in strings)
        alike = Counter(id(row.prefix) for row in rows)
        found: list[Read | None] = [None] * len(rows)
        together: dict[tuple[int, PassShape], list[int]] = {}
        for at, row in enumerate(rows):
            shape = PassShape.of(row, len(trie), alike[id(row.prefix)], self.at_once)
            if shape is None or not self._is_exact(row.prefix, shape, trie):
                found[at] = self._alone(row, strings)
            else:
                together.setdefault((id(row.prefix), shape), []).append(at)
        for (_, shape), places in together.items():
            for start in range(0, len(places), shape.rows):
                part = places[start : start + shape.rows]
                for at, read in zip(part, self._several([rows[at] for at in part], shape, strings, trie), strict=True):
                    found[at] = read
        return [read for read in found if read is not None]

    def _alone(self, row: Row, strings: Sequence[Sequence[int]]) -> Read:
        alone = Alone(self.lm, self.rules, row, room=sum(map(len, strings)), at_once=self.at_once)
        opened = alone.open(strings)
        return alone.cache.pairs(), opened

    def _several(
        self, rows: Sequence[Row], shape: PassShape, strings: Sequence[Sequence[int]], trie: TokenTrie
    ) -> Iterator[Read]:
        prefix = rows[0].prefix
        logits, cache = self._pass(prefix, [row.rest for row in rows], shape, trie)
        for at, row in enumerate(rows):
            mine = logits[at : at + 1]
            yield cache.of_row(at, len(row.rest), shape), Opened(mine[:, 0], spelled(mine, strings, trie))

    def _is_exact(self, prefix: KeyValues | None, shape: PassShape, trie: TokenTrie) -> bool:
        """Whether the probe finds that no row of such a pass has a say in another one's bits."""
        return self.probe.passes(self._trial(prefix, shape, trie), shape.rows, shape.columns, shape)

    def _trial(self, prefix: KeyValues | None, shape: PassShape, trie: TokenTrie) -> Trial:
        def trial(texts: Sequence[tuple[int, ...]], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
            logits, cache = self._pass(prefix, texts, shape, trie)
            yield from ((Kind.KEPT, kept) for pair in cache.own for kept in pair)
            yield Kind.LOGITS, logits

        return trial

    @torch.inference_mode()
    def _pass(
        self, prefix: KeyValues | None, texts: Sequence[tuple[int, ...]], shape: PassShape, trie: TokenTrie
    ) -> tuple[torch.Tensor, PassCache]:
        """[rows, 1 + nodes, V] float32 logits after each prompt and each node; the prompts stand at the right."""
        texts = [*texts, *[_FILLING] * (shape.rows - len(texts))]
        first, nodes = prefix.tokens if prefix else 0, torch.tensor(trie.depths, dtype=torch.long)
        ids = torch.zeros((shape.rows, shape.columns + shape.nodes), dtype=torch.long)
        places = torch.full_like(ids, NOWHERE)
        for row, text in enumerate(texts):
            own = slice(shape.columns - len(text), shape.columns)
            ids[row, own], places[row, own] = torch.tensor(text), torch.arange(first, first + len(text))
            ids[row, shape.columns :] = torch.tensor(trie.tokens, dtype=torch.long)
            places[row, shape.columns :] = first + len(text) + nodes
        before = torch.full((shape.rows, shape.before), NOWHERE)
        before[:, :first] = torch.arange(first)
        device, cache = self.lm.device, PassCache(prefix, shape.before)
        queries, keys = places.to(device), torch.cat([before, places], dim=1).to(device)
        visible = trie.visible(shape.columns).to(device) if trie else None
        mask = self.rules.mask(queries, keys, visible)
        shown = queries.masked_fill(queries == NOWHERE, 0)  # positions that the model knows
        return self.lm(ids.to(device), mask, shown, cache, keep=1 + shape.nodes), cache


class PassCache(Cache):  # type: ignore[misc]  # untyped library
    """The keys and values of a pass over several prompts that begin alike.

    Args:
        prefix: what they begin with.
        before: columns in front of their own; those that the prefix does not fill hold zeros.

    Attributes:
        own: per layer keys and values [rows, heads, columns, width] of what was read.
    """

    def __init__(self, prefix: KeyValues | None, before: int) -> None:
        super().__init__(layers=[])
        self._prefix, self._before = prefix, before
        self.own: list[Pair] = []

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> Pair:
        """Keep a layer's columns, layers in order; gives them behind those of the prefix."""
        self.own.append((key_states, value_states))
        if self._prefix is None:
            return key_states, value_states
        keys, values = self._prefix.layers[layer_idx]
        return self._behind(keys, key_states), self._behind(values, value_states)

    def _behind(self, prefix: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        filled = pad(prefix, (0, 0, 0, self._before - prefix.shape[2]))
        return torch.cat([filled.expand(len(states), -1, -1, -1), states], dim=2)

    def of_row(self, row: int, tokens: int, shape: PassShape) -> list[Pair]:
        """Per layer the keys and values [1, heads, columns, width] of a prompt with so many tokens of its own."""
        own = slice(shape.columns - tokens, shape.columns)
        mine = [(keys[row : row + 1, :, own], values[row : row + 1, :, own]) for keys, values in self.own]
        if self._prefix is None:
            return mine
        return [
            (torch.cat([before[0], keys], dim=2), torch.cat([before[1], values], dim=2))
            for before, (keys, values) in zip(self._prefix.layers, mine, strict=True)
        ]

    def get_mask_sizes(self, query_length: int, *args: Any) -> tuple[int, int]:
        """How many columns the pass attends to, from column 0 on."""
        return self._before + query_length, 0

    def get_seq_length(self, *args: Any) -> int:
        """How many columns stand before those of the pass."""
        return self._before


def _up(count: int, step: int) -> int:
    return -(-count // step) * step


def _rows(width: int, alike: int) -> int:
    """Rows of a pass of this width: enough to be worth it, and if few more leave none over, those."""
    least = min(alike, -(-ENOUGH // width))
    return next((rows for rows in range(least, 2 * least) if alike % rows == 0), least)
