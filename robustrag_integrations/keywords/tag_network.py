"""The network of the shipped pipeline in numpy: hashed features, three convolutions, two classifiers.

What spaCy and thinc compute, without their machinery, which costs ten times as much as the arithmetic for a line of ten
words. The weights are never written to, so that any number of threads may use them at a time. What a line gives is a
function of that line alone: its rows are multiplied in blocks of its own, whose shapes its length decides, and words
are read by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, TypeAlias, cast

import numpy as np
import srsly
from numpy.typing import NDArray

from robustrag_integrations.forks import UncutByForks
from robustrag_integrations.keywords.murmur import four_keys, string_id
from robustrag_integrations.keywords.spacy_words import norm, shape
from robustrag_integrations.keywords.token_rules import Token

Floats: TypeAlias = NDArray[np.float32]
Parameters: TypeAlias = Mapping[str, Any]  # of one layer: arrays by their names

_BLOCKS = (12, 8, 4)  # rows of one product
_PARTS = 3  # of its columns: with so few of both no library shares a product out among threads
_EMPTY = 1  # the row that fills blocks up
_ROWS_TOGETHER = 512  # of several lines: bounds the memory
_WORDS_TOGETHER = 128  # that are new
_KEPT_WORDS = 4096
_AROUND = np.array([-1, 0, 1])  # the rows of a window
_TINY = np.float32(1e-8)


@dataclass(frozen=True)
class _Maxout:
    """The largest of three linear layers, normalised.

    Attributes:
        weights: float32 [in, 3 * width]; the first `width` columns belong to the first of the three.
        bias: float32 [3 * width].
        gain, shift: float32 [width].
    """

    weights: Floats
    bias: Floats
    gain: Floats
    shift: Floats

    @classmethod
    def of(cls, maxout: Parameters, scaled: Parameters) -> _Maxout:
        """From the parameters of thinc's layers."""
        weights = np.asarray(maxout["W"], np.float32)  # [width, 3, in]
        inputs = weights.shape[2]
        return cls(
            np.ascontiguousarray(weights.transpose(1, 0, 2).reshape(-1, inputs).T),
            np.asarray(maxout["b"], np.float32).T.reshape(-1).copy(),
            np.asarray(scaled["G"], np.float32).copy(),
            np.asarray(scaled["b"], np.float32).copy(),
        )

    def of_sums(self, sums: Floats) -> Floats:
        """From the products [rows, 3 * width], without the bias, to [rows, width]."""
        sums += self.bias
        return self.of_biased(sums)

    def of_biased(self, sums: Floats) -> Floats:
        """The same, with the bias."""
        width = len(self.gain)
        best = np.maximum(np.maximum(sums[:, :width], sums[:, width : 2 * width]), sums[:, 2 * width :])
        best -= np.add.reduce(best, axis=1, keepdims=True) / np.float32(width)
        spread = np.add.reduce(best * best, axis=1, keepdims=True)
        spread /= np.float32(width)
        spread += _TINY
        best /= np.sqrt(spread, out=spread)
        best *= self.gain
        best += self.shift
        return best


@dataclass(frozen=True)
class _Order:
    """The order in which rows are multiplied: those of one line in blocks of its own, which its length decides.

    Attributes:
        rows: the row at each place: int [places], by the size of the blocks.
        places: how many places there are in blocks of each size of `_BLOCKS`.
        at: the place of each row: int [all rows]; of no meaning for rows that have none.
    """

    rows: NDArray[np.intp]
    places: tuple[int, ...]
    at: NDArray[np.intp]

    @classmethod
    def of(cls, spans: Iterable[range], rows: int) -> _Order:
        """Of the rows of these lines, among so many."""
        blocks: dict[int, list[int]] = {size: [] for size in _BLOCKS}
        for span in spans:
            for first in range(0, len(span), _BLOCKS[0]):
                part = span[first : first + _BLOCKS[0]]
                size = -(-len(part) // _BLOCKS[-1]) * _BLOCKS[-1]
                blocks[size] += [*part, *[_EMPTY] * (size - len(part))]
        order = np.array(list(chain.from_iterable(blocks.values())), np.intp)
        at = np.zeros(rows, np.intp)
        at[order] = np.arange(len(order))
        return cls(order, tuple(map(len, blocks.values())), at)

    def product(self, rows: Floats, weights: Floats) -> Floats:
        """rows @ weights: the rows of a block with a third of the columns at a time."""
        inputs, outputs = weights.shape
        thirds = weights.reshape(inputs, _PARTS, -1).transpose(1, 0, 2)
        found = np.empty((len(rows), outputs), np.float32)
        end = 0
        for size, places in zip(_BLOCKS, self.places, strict=True):
            begin, end = end, end + places
            if places:
                out = found[begin:end].reshape(-1, size, _PARTS, outputs // _PARTS).transpose(0, 2, 1, 3)
                np.matmul(rows[begin:end].reshape(-1, 1, size, inputs), thirds, out=out)
        return found


class TagNetwork:
    """Reads lines of tokens into scores.

    Args:
        embedder: the model of the pipeline's `tok2vec`, as thinc writes it: nodes, and each one's parameters and
            attributes.
        readers: the same of the two classifiers, for the parts of speech and the lemmatizer's trees.
    """

    def __init__(self, embedder: Mapping[str, Any], *readers: Mapping[str, Any]) -> None:
        embed, first, *self._others = [
            _Maxout.of(maxout["params"], scaled["params"])
            for maxout, scaled in zip(_layers("maxout", embedder), _layers("layernorm", embedder), strict=True)
        ]
        self._embed, self._first = embed, first
        self._width = len(embed.gain)
        # What each row of the hashed tables adds to the sums of the first layer: a new word takes no product with them.
        tables = sorted(_layers("hashembed", embedder), key=lambda layer: _attribute(layer, "column"))
        shares = zip(tables, np.split(embed.weights, len(tables)), strict=True)
        self._tables = [
            (np.asarray(layer["params"]["E"], np.float32) @ weights, _attribute(layer, "seed"))
            for layer, weights in shares
        ]
        # The first convolution's share of each word, by where it stands: left of a token, at it, right of it.
        self._by_place = np.stack(np.split(np.hstack(np.split(first.weights, 3)), 6, axis=1))
        heads = [head["params"] for reader in readers for head in _layers("softmax", reader)]
        weights = [np.asarray(head["W"], np.float32) for head in heads]
        self._tags = len(weights[0])
        self._heads = np.ascontiguousarray(np.concatenate(weights).T)
        self._head_bias = np.concatenate([np.asarray(head["b"], np.float32) for head in heads])
        self._part = lru_cache(_KEPT_WORDS)(self._read_part)
        self._kept: dict[Token, Floats] = {}
        self._uncut = UncutByForks()

    def scores(self, lines: Sequence[Sequence[Token]]) -> list[tuple[Floats, Floats]]:
        """Return for each line the scores of the parts of speech and of the lemmatizer's trees, each [tokens, labels].

        Lines are read together, up to `_ROWS_TOGETHER` rows at a time: that changes no bit of any of them.
        """
        found: list[tuple[Floats, Floats]] = []
        together: list[Sequence[Token]] = []
        rows = 0
        with self._uncut:
            for line in lines:
                if rows and rows + len(line) > _ROWS_TOGETHER:
                    found += self._scores(together)
                    together, rows = [], 0
                together.append(line)
                rows += len(line)
            return found + self._scores(together) if together else found

    def _scores(self, lines: Sequence[Sequence[Token]]) -> list[tuple[Floats, Floats]]:
        """The scores of lines whose rows lie below one another, with three empty rows between two lines.

        The middle one sees no word: so no line sees another one. Each line's rows have blocks of their own in products.
        """
        width, places, rows = self._width, list[int](), _EMPTY + 2
        for line in lines:
            places.append(rows)
            rows += len(line) + 3
        spans = [range(place, place + len(line)) for place, line in zip(places, lines, strict=True)]
        words, read = np.zeros((rows, 10 * width), np.float32), self._words_of(lines)
        for span, line in zip(spans, lines, strict=True):
            if line:
                words[span.start : span.stop] = [read[token] for token in line]
        sums = words[:, 4 * width : 7 * width] + self._first.bias
        sums[1:] += words[:-1, width : 4 * width]
        sums[:-1] += words[1:, 7 * width :]
        seen, at = words[:, :width] + self._first.of_biased(sums), np.arange(rows)
        for layer, reach in zip(self._others, (1, 0), strict=True):
            order = _Order.of([range(span.start - reach, span.stop + reach) for span in spans if span], rows)
            windows = seen[at[order.rows[:, None] + _AROUND]].reshape(-1, 3 * width)
            seen = windows[:, width : 2 * width] + layer.of_sums(order.product(windows, layer.weights))
            at = order.at
        scores = order.product(seen, self._heads)
        scores += self._head_bias
        scores = scores[at[[row for span in spans for row in span]]]
        ends = list(accumulate(map(len, lines)))
        found = [scores[end - len(line) : end] for line, end in zip(lines, ends, strict=True)]
        return [(row[:, : self._tags], row[:, self._tags :]) for row in found]

    def _words_of(self, lines: Sequence[Sequence[Token]]) -> dict[Token, Floats]:
        """Each word's vector, and its shares in the first convolution: float32 [10 * width]."""
        kept = self._kept
        found = {token: kept.get(token) for line in lines for token in line}
        new = [token for token, word in found.items() if word is None]
        for first in range(0, len(new), _WORDS_TOGETHER):
            chunk = new[first : first + _WORDS_TOGETHER]
            read = dict(zip(chunk, self._read_words(chunk), strict=True))
            found |= read
            if len(kept) + len(read) > _KEPT_WORDS:
                kept = self._kept = {}
            kept |= read
        return cast("dict[Token, Floats]", found)

    def _read_words(self, tokens: Sequence[Token]) -> Floats:
        parts = np.array([[self._part(*feature) for feature in enumerate(_features(token))] for token in tokens])
        vectors = self._embed.of_sums(np.add.reduce(parts, axis=1))
        # Each word's row is multiplied by itself, so that the words beside it move no bit of it.
        shares = np.matmul(vectors[:, None, None], self._by_place).reshape(len(vectors), -1)
        found: Floats = np.concatenate((vectors, shares), axis=1)
        return found

    def _read_part(self, number: int, feature: str) -> Floats:
        """What a feature of a word adds to the sums of the first layer: float32 [3 * width]."""
        table, seed = self._tables[number]
        first, second, third, fourth = (key % len(table) for key in four_keys(string_id(feature), seed))
        found: Floats = table[first] + table[second] + table[third] + table[fourth]
        return found


def _features(token: Token) -> tuple[str, str, str, str]:
    word = token.text
    return norm(word) if token.norm is None else token.norm, word[0], word[-3:], shape(word)


def _layers(name: str, model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The layers of this name, in the order of the model."""
    kept = zip(model["nodes"], model["params"], model["attrs"], strict=True)
    return [{"params": params, "attributes": attrs} for node, params, attrs in kept if node["name"] == name]


def _attribute(layer: Mapping[str, Any], name: str) -> int:
    value: int = srsly.msgpack_loads(layer["attributes"][name])
    return value
