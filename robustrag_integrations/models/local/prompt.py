"""One prompt in a batch of its own, at its own length: no other prompt affects its numbers.

Every prompt is read here, at inference and for certificates, whether it then advances alone or among others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from robustrag_integrations.models.local.batch import Opened, column_parts
from robustrag_integrations.models.local.cache import BatchKVCache, KeyValues
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.causal_lm import CausalLM, memory_explained
from robustrag_integrations.models.local.masks import MaskRules
from robustrag_integrations.models.local.token_tree import Stem, known_noise
from robustrag_integrations.models.local.trie import TokenTrie

STRING_TOKENS = 256  # tokens of strings that are read in one pass; each has its logits


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
        visible = trie.visible(count - len(trie)).to(keys.device) if trie else None
        return self._rules.mask(places, keys, visible)


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
