"""Rows of prompts that share how they begin: each row pays for its own passage and question only.

All shapes follow from the settings, the question and the number of rows; masks are explicit and always given. So
nothing that one row holds, its length included, decides which kernel another row runs through.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from robustrag_integrations.models.local.batch import Opened, column_parts
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.masks import NOWHERE, MaskRules
from robustrag_integrations.models.local.packing import Stem
from robustrag_integrations.models.local.slab import KeyValues, Slab
from robustrag_integrations.models.local.trie import TokenTrie

# Columns of a pass are a multiple of this: where several threads share out its tokens, products end in remainders
# otherwise, whose last bits come out otherwise, and a row's rank would decide which of its tokens are among them.
TILE = 16


@dataclass(frozen=True)
class Row:
    """A prompt: the keys and values of how it begins, and the token ids of the rest, at least one."""

    prefix: KeyValues | None
    rest: tuple[int, ...]

    @property
    def shared(self) -> int:
        """How many tokens the prefix has."""
        return self.prefix.tokens if self.prefix else 0


class SharedBatch:
    """Rows in one slab. Columns: prefixes, then the rests of the prompts (left-padded), then what is generated.

    A prefix that several rows have stands in front of all of them, once; other prefixes stand in their own rows.

    Args:
        lm: the model.
        rules: how it is told which tokens see which.
        rows: the prompts.
        width: columns for the rests; no less than the longest has tokens.
        room: columns for what comes after the prompts: the scored strings, the answer.
        at_once: how many tokens are read in one forward pass.
        once: whether a prefix that several rows have is kept and read once, or in every row.
    """

    def __init__(
        self, lm: CausalLM, rules: MaskRules, rows: Sequence[Row], *, width: int, room: int, at_once: int, once: bool
    ) -> None:
        self._lm, self._rules, self._at_once = lm, rules, at_once
        shared = _most_common([row.prefix for row in rows]) if once else None
        before = shared.tokens if shared else 0
        own = [None if row.prefix is shared else row.prefix for row in rows]
        start = max(prefix.tokens if prefix else 0 for prefix in own)
        self.columns = before + start
        self._tile = TILE if len(rows) > 1 else 1
        capacity = self.columns + width + self._tile - 1 + room
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        places = torch.full((len(rows), width), NOWHERE)
        keys = torch.full((len(rows), capacity), NOWHERE)
        for at, row in enumerate(rows):
            padding = width - len(row.rest)
            ids[at, padding:] = torch.tensor(row.rest)
            places[at, padding:] = torch.arange(row.shared, row.shared + len(row.rest))
            first = before if own[at] else 0
            keys[at, first : first + row.shared] = torch.arange(row.shared)
        self._ids, self._places, self._keys = (t.to(lm.device) for t in (ids, places, keys))
        self._next = torch.tensor([row.shared + len(row.rest) for row in rows], device=lm.device)
        self._slab = Slab(len(rows), capacity - before, shared)
        with torch.inference_mode(), lm.memory_explained(len(rows), capacity - before):
            self._slab.load(own, start)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._next)

    def fork(self) -> SharedBatch:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._slab, twin._keys = self._slab.copy(), self._keys.clone()
        return twin

    def key_values(self) -> KeyValues:
        """Everything that a batch of one row has read, as a prefix for other batches; shares memory with this one."""
        return KeyValues(tuple(self._slab.pairs()), self.columns)

    def stem(self) -> Stem:
        """What a tree of continuations can grow on; the batch itself stays as it is."""
        layers = self._slab.pairs()
        return Stem.after(self._lm, self._rules, layers, self._keys[:, : self.columns], self._next)

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the rests of the prompts and, in the same pass, all strings to be scored, side by side."""
        trie = TokenTrie(string[:-1] for string in strings)
        logits = self.read(trie)
        self.forget_last(len(trie))
        return Opened(logits[:, 0], _spelled(logits, strings, trie))

    @torch.inference_mode()
    def read(self, trie: TokenTrie) -> torch.Tensor:
        """Read the rests of the prompts and a trie of tokens behind every one of them, which stays.

        Returns:
            [rows, 1 + nodes, V] float32 logits of what follows the prompt, and each node.
        """
        device = self._lm.device
        tokens, depths = (torch.tensor(x, dtype=torch.long, device=device) for x in (trie.tokens, trie.depths))
        padding = -(self._ids.shape[1] + len(trie)) % self._tile
        ids = pad(torch.cat([self._ids, tokens.repeat(self.rows, 1)], dim=1), (padding, 0))
        places = pad(torch.cat([self._places, self._next[:, None] + depths], dim=1), (padding, 0), value=NOWHERE)
        *before, last = column_parts(padding + self._ids.shape[1], self.rows, self._at_once, self._tile)
        for part in before:
            self.extend(ids[:, part], places[:, part])
        visible = trie.visible(last.stop - last.start).to(device)
        return self.extend(ids[:, last.start :], places[:, last.start :], visible, keep=1 + len(trie))

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        return self._append(torch.tensor(tokens, device=self._lm.device)[:, None])

    def append_all(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append the same tokens to every row in one pass; [rows, V] float32 logits of the one after them."""
        return self._append(torch.tensor(tokens, device=self._lm.device).expand(self.rows, -1))

    @torch.inference_mode()
    def _append(self, columns: torch.Tensor) -> torch.Tensor:
        count = columns.shape[1]
        logits = self.extend(columns, self._next[:, None] + torch.arange(count, device=columns.device))
        self._next = self._next + count
        return logits[:, -1]

    @torch.inference_mode()
    def extend(
        self, ids: torch.Tensor, places: torch.Tensor, visible: torch.Tensor | None = None, *, keep: int = 1
    ) -> torch.Tensor:
        """Read columns of tokens wherever they stand: the rest of a prompt, the next token, a level of a tree.

        Args:
            ids: [rows, Q] token ids.
            places: [rows, Q] their positions in their own rows; NOWHERE for padding.
            visible: [Q, C] which of the last C columns each may see; None: all before it. The last Q of the C columns
                are these tokens themselves.
            keep: for how many of the last columns logits are wanted.

        Returns:
            [rows, keep, V] float32 logits.
        """
        end = self.columns + ids.shape[1]
        self._keys[:, self.columns : end] = places
        mask = self._rules.mask(places, self._keys[:, :end], visible)
        logits = self._lm(ids, mask, places.masked_fill(places == NOWHERE, 0), self._slab, keep=keep)
        self.columns = end
        return logits

    def forget_last(self, columns: int) -> None:
        """Forget the last columns."""
        self.columns -= columns
        self._slab.forget_last(columns)


def read_prefix(
    lm: CausalLM, rules: MaskRules, tokens: Sequence[int], known: KeyValues | None, at_once: int
) -> KeyValues:
    """The keys and values of a prefix: those of its beginning, which are known, and the tokens after it.

    Args:
        lm: the model.
        rules: how it is told which tokens see which.
        tokens: the whole prefix.
        known: the keys and values of its first tokens, if any.
        at_once: how many tokens are read in one forward pass.
    """
    rest = tuple(tokens[known.tokens if known else 0 :])
    batch = SharedBatch(lm, rules, [Row(known, rest)], width=len(rest), room=0, at_once=at_once, once=False)
    batch.open()
    return batch.key_values()


def _most_common(prefixes: Sequence[KeyValues | None]) -> KeyValues | None:
    """The prefix of the most rows, if there is one that at least two have."""
    counts = Counter(id(prefix) for prefix in prefixes if prefix is not None)
    found = max((p for p in prefixes if p is not None), key=lambda p: counts[id(p)], default=None)
    return found if found is not None and counts[id(found)] > 1 else None


def _spelled(logits: torch.Tensor, strings: Sequence[Sequence[int]], trie: TokenTrie) -> torch.Tensor:
    """[rows] float64 probability that one of the strings follows, every token of it.

    Products, no logarithms: torch takes those of several numbers at a time, and of what is left over one by one, with
    other last bits. A row's rank would decide which.
    """
    found = torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
    probabilities = logits.softmax(-1) if strings else logits
    for string in strings:
        columns = [0, *(node + 1 for node in trie.path(string[:-1]))]
        spelled = torch.ones_like(found)
        for column, token in zip(columns, string, strict=True):
            spelled = spelled * probabilities[:, column, token].double()
        found += spelled
    return found
