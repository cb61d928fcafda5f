"""Rows of prompts that share how they begin: each row pays for its own passage and question only.

All shapes follow from the settings, the question and the number of rows; masks are explicit and always given. So
nothing that one row holds, its length included, decides which kernel another row runs through. Several rows run in a
shape that the isolation probe found: their prompts are read in passes of so many columns, and their decoding steps may
have rows of padding, which hold nothing.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from robustrag_integrations.models.local.batch import Opened, column_parts
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.isolation import BatchShape
from robustrag_integrations.models.local.masks import NOWHERE, MaskRules
from robustrag_integrations.models.local.packing import Stem
from robustrag_integrations.models.local.slab import KeyValues, Slab
from robustrag_integrations.models.local.trie import TokenTrie


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
        rules: its attention masks.
        rows: the prompts.
        width: columns for the rests; no less than the longest has tokens.
        room: columns for what comes after the prompts: the scored strings, the answer.
        at_once: how many tokens are read in one forward pass.
        once: whether a prefix that several rows have is kept and read once, or in every row.
        shape: the shapes of the forward passes, where there are several rows.
    """

    def __init__(
        self,
        lm: CausalLM,
        rules: MaskRules,
        rows: Sequence[Row],
        *,
        width: int,
        room: int,
        at_once: int,
        once: bool,
        shape: BatchShape | None = None,
    ) -> None:
        self._lm, self._rules, self._at_once = lm, rules, at_once
        self.rows = len(rows)
        self._shape = shape or BatchShape(None, 1, self.rows, self.rows)
        whole = self._shape.rows
        shared = _most_common([row.prefix for row in rows]) if once else None
        before = shared.tokens if shared else 0
        own = [None if row.prefix is shared else row.prefix for row in rows]
        start = max(prefix.tokens if prefix else 0 for prefix in own)
        self.columns = before + start
        capacity = self.columns + width + (self._shape.columns or 1) - 1 + room
        ids = torch.zeros((whole, width), dtype=torch.long)
        places = torch.full((whole, width), NOWHERE)
        keys = torch.full((whole, capacity), NOWHERE)
        for at, row in enumerate(rows):
            padding = width - len(row.rest)
            ids[at, padding:] = torch.tensor(row.rest)
            places[at, padding:] = torch.arange(row.shared, row.shared + len(row.rest))
            first = before if own[at] else 0
            keys[at, first : first + row.shared] = torch.arange(row.shared)
        self._ids, self._places, self._keys = (t.to(lm.device) for t in (ids, places, keys))
        lengths = [row.shared + len(row.rest) for row in rows]
        self._next = torch.tensor([*lengths, *[0] * (whole - len(rows))], device=lm.device)
        self._slab = Slab(whole, capacity - before, shared)
        with torch.inference_mode(), lm.memory_explained(whole, capacity - before):
            self._slab.load(own, start)

    def fork(self) -> SharedBatch:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._slab, twin._keys = self._slab.copy(), self._keys.clone()
        return twin

    def cached(self) -> Iterator[torch.Tensor]:
        """Each row's own keys and values [rows, heads, columns, width], layer by layer."""
        return (kept for layer in self._slab.layers for kept in layer.own(self.rows))

    def key_values(self) -> KeyValues:
        """Everything that a batch of one row has read, as a prefix for other batches; shares memory with this one."""
        return KeyValues(tuple(self._slab.pairs(self.rows)), self.columns)

    def stem(self) -> Stem:
        """What a tree of continuations can grow on; the batch itself stays as it is."""
        keys, following = self._keys[: self.rows, : self.columns], self._next[: self.rows]
        return Stem.after(self._lm, self._rules, self._slab.pairs(self.rows), keys, following)

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
        device, count = self._lm.device, self._shape.read_rows
        tokens, depths = (torch.tensor(x, dtype=torch.long, device=device) for x in (trie.tokens, trie.depths))
        ids = torch.cat([self._ids[:count], tokens.repeat(count, 1)], dim=1)
        places = torch.cat([self._places[:count], self._next[:count, None] + depths], dim=1)
        padding = -ids.shape[1] % (self._shape.columns or 1)
        ids, places = pad(ids, (padding, 0)), pad(places, (padding, 0), value=NOWHERE)
        *before, last = self._parts(ids.shape[1], len(trie))
        for part in before:
            self.extend(ids[:, part], places[:, part])
        visible = trie.visible(last.stop - last.start - len(trie)).to(device)
        keep = max(1 + len(trie), self._shape.logit_columns)
        logits = self.extend(ids[:, last], places[:, last], visible, keep=keep)
        return logits[: self.rows, keep - 1 - len(trie) :]

    def _parts(self, columns: int, behind: int) -> list[slice]:
        """Columns in parts for one pass each; the last one has all those that stand behind the prompts."""
        if self._shape.columns is None:
            *before, last = column_parts(columns - behind, self.rows, self._at_once)
            return [*before, slice(last.start, columns)]
        return [slice(start, start + self._shape.columns) for start in range(0, columns, self._shape.columns)]

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        padding = [0] * (self._shape.step_rows - self.rows)
        return self._append(torch.tensor([*tokens, *padding], device=self._lm.device)[:, None])

    def append_all(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append the same tokens to every row in one pass; [rows, V] float32 logits of the one after them."""
        return self._append(torch.tensor(tokens, device=self._lm.device).expand(self._shape.step_rows, -1))

    @torch.inference_mode()
    def _append(self, columns: torch.Tensor) -> torch.Tensor:
        rows, count = columns.shape
        logits = self.extend(columns, self._next[:rows, None] + torch.arange(count, device=columns.device))
        self._next = self._next + count
        return logits[: self.rows, -1]

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
            [rows, keep, V] float32 logits. As many rows as `ids` has, those of padding included.
        """
        rows, end = len(ids), self.columns + ids.shape[1]
        self._keys[:rows, self.columns : end] = places
        mask = self._rules.mask(places, self._keys[:rows, :end], visible)
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
        rules: its attention masks.
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
