"""Batches: prompts that are read, and advance by a token each.

Padding is an attack channel: kernels follow from shapes, and a passage must not choose the kernel of another row. So
each prompt is read in a batch of its own, at its own length (`SinglePrompt`), whether it then advances alone or among
others (`PromptRows`). The shapes of decoding steps follow from the settings and the number of rows, one at which the
isolation probe found the kernels over all rows exact.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

import torch
from transformers import DynamicCache

from robustrag_integrations.models.base import Listener, tell
from robustrag_integrations.models.local.cache import BatchKVCache, KeyValues
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.language_model import CausalLM, MaskRules, memory_explained

R = TypeVar("R", bound="_Rows")


class Opened(NamedTuple):
    """The output of a batch once its prompts are read."""

    logits: torch.Tensor  # [rows, V] float32, of the first answer token
    spelled: torch.Tensor  # [rows] float64, the probability that one of the given strings comes next, every token of it


class _Rows:
    """Rows of a cache."""

    rows = 1
    cache: Any

    def __init__(self, lm: CausalLM, rules: MaskRules) -> None:
        self._lm, self._rules = lm, rules

    def fork(self: R) -> R:
        """Return a copy that gives the same bits."""
        twin = copy.copy(self)
        with torch.inference_mode():
            twin.cache = copy.deepcopy(self.cache)
        return twin


class SinglePrompt(_Rows):
    """A batch of one prompt. A token's column is its position.

    Args:
        lm, rules: the model and its attention masks.
        prefix: what was read of the prompt.
        rest: the token ids of the rest, at least one.
        room: columns for what comes after the prompt: strings to be scored, the answer.
        at_once: number of tokens that are read in one forward pass.
    """

    def __init__(
        self,
        lm: CausalLM,
        rules: MaskRules,
        prefix: KeyValues | None,
        rest: Sequence[int],
        *,
        at_once: int,
        room: int = 0,
    ) -> None:
        super().__init__(lm, rules)
        self._prefix, self._rest, self._at_once = prefix, tuple(rest), at_once
        self.cache = BatchKVCache(1, (prefix.tokens if prefix else 0) + len(rest) + room)

    def key_values(self) -> KeyValues:
        """Return everything that was read, as a prefix for other prompts; shares memory with this one."""
        return KeyValues(self.cache.pairs(), self.cache.lengths[0])

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the rest of the prompt and, in the same pass, all strings to be scored, side by side."""
        with memory_explained():
            if self._prefix:
                self.cache.put(0, self._prefix.layers)
        parts = -(-len(self._rest) // self._at_once)
        step = -(-len(self._rest) // parts)
        *before, last = range(0, len(self._rest), step)
        for start in before:
            stop_if_cancelled()
            self._extend(self._rest[start : start + step])
        stop_if_cancelled()
        behind = [string[:-1] for string in strings]
        logits = self._extend(self._rest[last:], behind)
        self.cache.advance(-sum(map(len, behind)))
        first, *along = logits[0].split([1, *map(len, behind)])
        return Opened(first, _spelled((torch.cat([first, each]) for each in along), strings, logits.device))

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token; return the [1, V] float32 logits of the one after it."""
        return self._extend(tokens)[:, -1]

    def _extend(self, tokens: Sequence[int], behind: Sequence[Sequence[int]] = ()) -> torch.Tensor:
        """Read tokens and strings behind them, none of which sees another one.

        Returns:
            The [1, 1 + all tokens of the strings, V] float32 logits of what follows them.
        """
        device, start = self._lm.device, self.cache.lengths[0]
        end = start + len(tokens)
        spans = [torch.arange(end, end + len(string), device=device) for string in behind]
        keys = torch.cat([torch.arange(end, device=device), *spans])[None]
        places = keys[:, start:]
        ids = torch.tensor([[*tokens, *chain.from_iterable(behind)]], device=device)
        mask = None  # where each token sees all before it, from the first on, as kernels need none then
        if not self._rules.plain or keys.shape[1] > end or places.shape[1] not in (1, end):
            visible = [torch.ones(len(span), len(span), dtype=torch.bool, device=device) for span in spans]
            mask = self._rules.mask(places, keys, torch.block_diag(*visible) if spans else None)
        logits = self._lm(ids, mask, places, self.cache, keep=1 + keys.shape[1] - end)
        self.cache.advance(ids.shape[1])
        return logits


class PlainPrompt(_Rows):
    """A batch of one prompt as the library reads it: in one pass, as not every layer of its reads on in parts."""

    def __init__(self, lm: CausalLM, ids: Sequence[int]) -> None:
        self._lm, self._ids, self._tokens = lm, tuple(ids), 0
        kinds = set(getattr(lm.config, "layer_types", None) or ())  # layers that are not attention need a special kind
        attends = kinds <= {"full_attention", "sliding_attention"}
        self.cache = DynamicCache() if attends else DynamicCache(config=lm.config)

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompt, and score strings that may follow, given as tokens."""
        stop_if_cancelled()
        first = self._read(self._ids, keep=1)[0]
        behind = []
        for string in strings:
            stop_if_cancelled()
            more = [self.fork()._read(string[:-1], keep=len(string) - 1)[0]] if len(string) > 1 else []
            behind.append(torch.cat([first, *more]))
        return Opened(first, _spelled(behind, strings, first.device))

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
        return self._lm(ids, mask, positions, self.cache, keep=keep)


class PromptRows(_Rows):
    """Several prompts, each read by itself, that take decoding steps together: rows of one cache.

    Args:
        lm, rules: the model and its attention masks.
        rows: the number of prompts; rows of padding are neither counted nor returned.
        step_rows: the number of rows of a decoding step, those of padding included.
        columns: the columns that every row's step attends to.
        prompts: the prompts, not read yet. One that stands there several times is read once.
        told: called with the number of rows that were read, and of how many.
    """

    def __init__(
        self,
        lm: CausalLM,
        rules: MaskRules,
        rows: int,
        step_rows: int,
        columns: int,
        prompts: Sequence[SinglePrompt] = (),
        told: Listener = lambda read, of: None,
    ) -> None:
        super().__init__(lm, rules)
        self.rows, self._told = rows, told
        self._unread: dict[SinglePrompt, list[int]] = {}  # and their rows
        for row, prompt in enumerate(prompts):
            self._unread.setdefault(prompt, []).append(row)
        self.cache = BatchKVCache(step_rows, columns, fixed=True)

    @torch.inference_mode()
    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read each prompt into its row, and score the strings behind it."""
        opened: dict[int, Opened] = {}
        with memory_explained():
            while self._unread:
                stop_if_cancelled()
                prompt = next(iter(self._unread))
                read = prompt.open(strings)
                for row in self._unread.pop(prompt):
                    self.cache.put(row, prompt.key_values().layers)
                    opened[row] = read
                self._told(len(opened), self.rows)
        found = [opened[row] for row in range(self.rows)]
        return Opened(torch.cat([o.logits for o in found]), torch.cat([o.spelled for o in found]))

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        device, cache = self._lm.device, self.cache
        ids = torch.tensor([*tokens, *[0] * (cache.rows - self.rows)], device=device)[:, None]
        places = torch.tensor(cache.lengths, device=device)[:, None]
        mask = self._rules.mask(places, torch.arange(cache.capacity, device=device)[None])
        logits = self._lm(ids, mask, places, cache)
        cache.advance()
        return logits[: self.rows, -1]


class SeparateBatches:
    """Prompts in batches of one: no other prompt can affect a prompt's numbers, whatever the model does."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self.rows = len(batches)

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        opened = []
        for batch in self._batches:
            opened.append(batch.open(strings))
            tell(len(opened), self.rows)
        return Opened(torch.cat([o.logits for o in opened]), torch.cat([o.spelled for o in opened]))

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        return torch.cat([batch.append([token]) for batch, token in zip(self._batches, tokens, strict=True)])

    def fork(self) -> SeparateBatches:
        """Return a copy that gives the same bits."""
        return SeparateBatches([batch.fork() for batch in self._batches])


Batch: TypeAlias = SinglePrompt | PlainPrompt | PromptRows | SeparateBatches


def _spelled(logits: Iterable[torch.Tensor], strings: Sequence[Sequence[int]], device: torch.device) -> torch.Tensor:
    """Return the [1] float64 probability that one of the strings follows in full, from the logits of its tokens."""
    total = torch.zeros(1, dtype=torch.float64, device=device)
    for each, string in zip(logits, strings, strict=True):
        total += each.softmax(-1)[range(len(string)), list(string)].double().prod()
    return total
