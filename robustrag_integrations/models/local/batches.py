"""Batches: prompts that are read, and advance by a token each.

Padding is an attack channel: kernels follow from shapes, and a passage must not choose the kernel of another row. So a
row's shape may depend on its own passage, and on nothing of another row's. Each prompt is read in a batch of its own,
at its own length (`SinglePrompt`), whether it then advances alone or among others (`PromptRows`). The shapes of
decoding steps follow from the settings and the number of rows: each row's attention is computed by itself, over the
columns that it has, or on accelerators over as many columns as the settings say, with an explicit mask. What rows still
have in common are the products with the model's weights. The isolation probe finds the number of rows at which these
are exact; rows of padding make up that number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn import functional
from transformers import DynamicCache

from robustrag_integrations.models.local.cache import BatchKVCache, KeyValues, Pair
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.language_model import NOWHERE, CausalLM, MaskRules, memory_explained
from robustrag_integrations.models.local.token_trees import Stem, TokenTrie, ancestry, known_noise

STRING_TOKENS = 256  # tokens of strings that are read in one pass; each has its logits
_TILE = 64  # the columns that all rows attend to are a multiple of this, so that there are few shapes
_ALIKE = 32  # row by row, of this: rows begin at whole lines of memory, as kernels may sum others differently


@dataclass(frozen=True)
class Opened:
    """The output of a batch once its prompts are read.

    Attributes:
        logits: [rows, V] float32, of the first answer token.
        spelled: [rows] float64, the probability that one of the given strings comes next, every token of it.
    """

    logits: torch.Tensor
    spelled: torch.Tensor


class Batch(Protocol):
    """Rows of prompts that advance together.

    Attributes:
        rows: number of prompts; rows of padding are neither counted nor returned.
    """

    rows: int

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        ...

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        ...

    def fork(self) -> Batch:
        """Return an independent copy with bit-identical numbers."""
        ...

    def stem(self) -> Stem | None:
        """Return a stem for a tree of continuations, if the model allows it and has `known_noise`; else None."""
        ...


@dataclass(frozen=True)
class Row:
    """A prompt.

    Attributes:
        prefix: the keys and values of its prefix, if it has one.
        rest: the token ids of the rest, at least one.
        keep: gets the keys and values of the whole once it is read.
    """

    prefix: KeyValues | None
    rest: tuple[int, ...]
    keep: Callable[[KeyValues], None] | None = None

    @property
    def shared(self) -> int:
        """The number of tokens in the prefix."""
        return self.prefix.tokens if self.prefix else 0

    @property
    def tokens(self) -> int:
        """The number of tokens in all."""
        return self.shared + len(self.rest)


class SinglePrompt:
    """A batch of one prompt. A token's column is its position.

    Args:
        lm: the model.
        rules: its attention masks.
        row: the prompt.
        room: columns for what comes after the prompt: strings to be scored, the answer.
        at_once: number of tokens that are read in one forward pass.
    """

    rows = 1

    def __init__(self, lm: CausalLM, rules: MaskRules, row: Row, *, room: int, at_once: int) -> None:
        self._lm, self._rules, self._at_once, self._rest, self._keep = lm, rules, at_once, row.rest, row.keep
        self.tokens, capacity = row.shared, row.tokens + room
        with torch.inference_mode(), memory_explained():
            self.cache = BatchKVCache(1, capacity)
            if row.prefix:
                self.cache.put(0, row.prefix.layers)

    def fork(self) -> SinglePrompt:
        """Return an independent copy with bit-identical numbers."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin.cache = self.cache.copy()
        return twin

    def key_values(self) -> KeyValues:
        """Return everything that was read, as a prefix for other prompts; shares memory with this one."""
        return KeyValues(tuple(self.cache.pairs()), self.tokens)

    def stem(self) -> Stem | None:
        """Return a stem for a tree of continuations, if `known_noise`; the batch itself stays as it is."""
        return Stem.of_one(self._lm, self._rules, self.key_values()) if known_noise(self._lm) else None

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the rest of the prompt and, in the same pass, all strings to be scored, side by side."""
        trie = TokenTrie(string[:-1] for string in strings)
        *before, last = column_parts(len(self._rest), 1, self._at_once)
        for part in before:
            stop_if_cancelled()
            self._extend(self._rest[part])
        stop_if_cancelled()
        logits = self._extend(self._rest[last], trie)
        self.tokens -= len(trie)
        self.cache.crop(len(trie))
        if self._keep is not None:
            self._keep(self.key_values())
        return Opened(logits[:, 0], _spelled(logits, strings, trie))

    @torch.inference_mode()
    def behind(self, strings: Sequence[Sequence[int]]) -> Iterator[torch.Tensor]:
        """Read strings behind the prompt, of which all but the last token is known, many in one pass.

        Yields:
            Per string, the [1 + length, V] float32 logits of what follows the prompt and each token.
        """
        for part in _parts(strings):
            stop_if_cancelled()
            trie = TokenTrie(part)
            logits = self._extend(self._rest, trie)[0]
            self.tokens -= len(self._rest) + len(trie)
            self.cache.crop(len(self._rest) + len(trie))
            for string in part:
                yield logits[[0, *(node + 1 for node in trie.path(string))]]

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token; return the [1, V] float32 logits of the one after it."""
        return self._extend(tokens)[:, -1]

    def _extend(self, tokens: Sequence[int], trie: TokenTrie | None = None) -> torch.Tensor:
        """Read tokens and a trie behind them; return the [1, 1 + nodes, V] float32 logits of what follows them."""
        device, end = self._lm.device, self.tokens + len(tokens)
        nodes = trie.tokens if trie else []
        keys = torch.arange(end + len(nodes), device=device)[None]
        if trie:
            keys[0, end:] = torch.tensor(trie.depths, device=device) + end
        places = keys[:, self.tokens :]
        ids = torch.tensor([[*tokens, *nodes]], device=device)
        logits = self._lm(ids, self._mask(places, keys, trie), places, self.cache, keep=1 + len(nodes))
        self.cache.advance(len(tokens) + len(nodes))
        self.tokens = end + len(nodes)
        return logits

    def _mask(self, places: torch.Tensor, keys: torch.Tensor, trie: TokenTrie | None) -> Any:
        """Build the mask; None where each token sees all before it, from the first on, as kernels need no mask then."""
        count, columns = places.shape[1], keys.shape[1]
        if not trie and self._rules.plain and count in (1, columns):
            return None
        visible = None
        if trie:  # tokens before the trie see none of it
            visible = functional.pad(ancestry(trie.parents), (0, 0, count - len(trie), 0)).to(keys.device)
        return self._rules.mask(places, keys, visible)


class PlainPrompt:
    """A batch of one prompt, without padding.

    Args:
        lm: the model.
        ids: the prompt's tokens, read in one forward pass: not every layer of the library reads on in parts.
    """

    rows = 1

    def __init__(self, lm: CausalLM, ids: Sequence[int]) -> None:
        self._lm, self._ids = lm, tuple(ids)
        self._tokens = 0
        kinds = set(getattr(lm.config, "layer_types", None) or ())  # layers that are not attention need a special kind
        attends = kinds <= {"full_attention", "sliding_attention"}
        self._cache = DynamicCache() if attends else DynamicCache(config=lm.config)

    def fork(self) -> PlainPrompt:
        """Return an independent copy with bit-identical numbers."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin._cache = copy.deepcopy(self._cache)
        return twin

    def stem(self) -> None:
        """Return None: the library's own masks cannot express trees."""

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompt, and score strings that may follow, given as tokens."""
        stop_if_cancelled()
        logits = self._read(self._ids, keep=1)
        spelled = torch.zeros(1, dtype=torch.float64, device=logits.device)
        for string in strings:
            rest = [self.fork()._read(string[:-1], keep=len(string) - 1)] if len(string) > 1 else []
            probabilities = torch.cat([logits, *rest], dim=1).softmax(-1)[0].double()
            spelled += probabilities[range(len(string)), list(string)].prod()
        return Opened(logits[:, -1], spelled)

    @torch.inference_mode()
    def behind(self, strings: Sequence[Sequence[int]]) -> Iterator[torch.Tensor]:
        """Read the prompt, and strings behind it; per string, the [1 + length, V] logits as of a `SinglePrompt`."""
        stop_if_cancelled()
        first = self._read(self._ids, keep=1)[0]
        for string in strings:
            stop_if_cancelled()
            yield torch.cat([first, self.fork()._read(string, keep=len(string))[0]])

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token; return the [1, V] float32 logits of the one after it."""
        return self._read(tokens, keep=1)[:, -1]

    def _read(self, tokens: Sequence[int], *, keep: int) -> torch.Tensor:
        """Read tokens; return the [1, keep, V] float32 logits behind the last ones."""
        device, count = self._lm.device, len(tokens)
        positions = torch.arange(self._tokens, self._tokens + count, device=device)[None]
        ids = torch.tensor([list(tokens)], device=device)
        self._tokens += count
        mask = torch.ones((1, self._tokens), dtype=torch.long, device=device)
        return self._lm(ids, mask, positions, self._cache, keep=keep)


class PromptRows:
    """Several prompts, each read by itself and at its own length, that take decoding steps together: rows of one cache.

    Args:
        lm: the model.
        rules: its attention masks.
        rows: the prompts.
        longest: per prompt, the most tokens that it could have, whatever its passage.
        room: columns for what comes after the prompts.
        at_once: number of tokens that are read in one forward pass.
        row_by_row: True if a decoding step computes each row's attention by itself.
        step_rows: rows of a decoding step, those of padding included; None for the prompts alone.

    Attributes:
        longest: tokens of a prompt at most.
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
        row_by_row: bool,
        step_rows: int | None = None,
    ) -> None:
        self._lm, self._rules, self._rows, self._at_once = lm, rules, rows, at_once
        self.rows, self.step_rows, self.longest = len(rows), step_rows or len(rows), max(longest)
        multiple = _ALIKE if row_by_row else _TILE
        capacity = -(-(self.longest + room) // multiple) * multiple
        self.cache = BatchKVCache(
            self.step_rows, capacity, prompts=self.rows, row_by_row=row_by_row, fixed=not row_by_row
        )
        self._next = torch.zeros(self.step_rows, dtype=torch.long, device=lm.device)

    @property
    def step_columns(self) -> int | None:
        """The columns that any row's step attends to; None if each row attends to what it has."""
        return self.cache.capacity if self.cache.fixed else None

    def fork(self) -> PromptRows:
        """Return an independent copy with bit-identical numbers."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin.cache = self.cache.copy()
        return twin

    def stem(self) -> Stem | None:
        """Return a stem for a tree of continuations, if `known_noise`; the batch itself stays as it is."""
        if not known_noise(self._lm):
            return None
        with torch.inference_mode():
            cache = self.cache.filled_up()
        places = self._places(max(cache.lengths), self._next)[: self.rows]
        return Stem(self._lm, self._rules, cache, places, self._next[: self.rows])

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
                self.hold(at, known[key][0])
                opened.append(known[key][1])
        return Opened(torch.cat([o.logits for o in opened]), torch.cat([o.spelled for o in opened]))

    def hold(self, at: int, layers: Sequence[Pair]) -> None:
        """Fill a row with the keys and values [1, heads, columns, width] of its prompt."""
        self.cache.put(at, layers)
        self._next[at] = self._rows[at].tokens

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
        if self.cache.row_by_row and self._rules.plain:
            return None
        return self._rules.mask(self._next[:, None], self._places(self.cache.width, self._next + 1))

    def _places(self, columns: int, counts: torch.Tensor) -> torch.Tensor:
        """Return the [rows, columns] positions of the first columns, `counts` tokens in each row; else NOWHERE."""
        places = torch.arange(columns, device=self._lm.device).expand(self.step_rows, -1)
        return places.masked_fill(places >= counts[:, None], NOWHERE)


class SeparateBatches:
    """Prompts in batches of one: no other prompt can affect a prompt's numbers, whatever the model does.

    Args:
        batches: batches of one row each.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self.rows = len(batches)

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        opened = [batch.open(strings) for batch in self._batches]
        return Opened(torch.cat([o.logits for o in opened]), torch.cat([o.spelled for o in opened]))

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        return torch.cat([batch.append([token]) for batch, token in zip(self._batches, tokens, strict=True)])

    def fork(self) -> SeparateBatches:
        """Return an independent copy with bit-identical numbers."""
        return SeparateBatches([batch.fork() for batch in self._batches])

    def stem(self) -> Stem | None:
        """Return None: a tree reads all rows in one pass."""
        return None


def read_prefix(
    lm: CausalLM, rules: MaskRules, tokens: Sequence[int], known: KeyValues | None, at_once: int
) -> KeyValues:
    """Read a prefix behind its known beginning, and return the keys and values of the whole.

    Args:
        lm: the model.
        rules: its attention masks.
        tokens: the whole prefix.
        known: the keys and values of its first tokens, if any.
        at_once: number of tokens that are read in one forward pass.
    """
    rest = tuple(tokens[known.tokens if known else 0 :])
    prompt = SinglePrompt(lm, rules, Row(known, rest), room=0, at_once=at_once)
    prompt.open()
    return prompt.key_values()


def _parts(strings: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
    """Cut strings into parts of at most `STRING_TOKENS` tokens, or one string."""
    part: list[Sequence[int]] = []
    for string in strings:
        if part and sum(map(len, part)) + len(string) > STRING_TOKENS:
            yield part
            part = []
        part.append(string)
    if part:
        yield part


def _spelled(logits: torch.Tensor, strings: Sequence[Sequence[int]], trie: TokenTrie) -> torch.Tensor:
    """Return the [1] float64 probability that one of the strings follows in full, from [1, 1 + nodes, V] logits."""
    total = torch.zeros(1, dtype=torch.float64, device=logits.device)
    probabilities = logits.softmax(-1) if strings else logits
    for string in strings:
        columns = [0, *(node + 1 for node in trie.path(string[:-1]))]
        probability = torch.ones_like(total)
        for column, token in zip(columns, string, strict=True):
            probability = probability * probabilities[:, column, token].double()
        total += probability
    return total


def column_parts(columns: int, rows: int, at_once: int) -> list[slice]:
    """Cut columns into parts of at most `at_once` tokens over all rows, as equal as possible."""
    parts = -(-columns * rows // max(at_once, rows)) or 1
    step = -(-columns // parts)
    return [slice(start, min(start + step, columns)) for start in range(0, columns, step)]
