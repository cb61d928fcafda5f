"""The network of the shipped pipeline in numpy: hashed features, three convolutions, two classifiers.

What spaCy and thinc compute, without their machinery, which costs ten times as much as the arithmetic for a line of ten
words. The weights are never written to, so that any number of threads may use them at a time. What a line gives is a
function of that line alone: its rows stand in blocks of its own, words are read by themselves, and all products have
one shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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

_ROWS = 4  # of one product: few enough that no library shares it out among threads
_ROWS_TOGETHER = 512  # of several lines: bounds the memory
_WORDS_TOGETHER = 128  # that are new
_KEPT_WORDS = 4096
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


class TagNetwork:
    """Reads lines of tokens into scores.

    Args:
        embedder: the model of the pipeline's `tok2vec`, as thinc writes it: nodes, and each one's parameters and
            attributes.
        readers: the same of the two classifiers, for the parts of speech and the lemmatizer's trees.
    """

    def __init__(self, embedder: Mapping[str, Any], *readers: Mapping[str, Any]) -> None:
        tables = sorted(_layers("hashembed", embedder), key=lambda layer: _attribute(layer, "column"))
        self._tables = [
            (np.asarray(layer["params"]["E"], np.float32).copy(), _attribute(layer, "seed")) for layer in tables
        ]
        embed, first, *self._others = [
            _Maxout.of(maxout["params"], scaled["params"])
            for maxout, scaled in zip(_layers("maxout", embedder), _layers("layernorm", embedder), strict=True)
        ]
        self._embed, self._first = embed, first
        self._width = len(embed.gain)
        # The first convolution's share of each word, by where it stands: left of a token, at it, right of it.
        self._by_place = np.ascontiguousarray(np.hstack(np.split(first.weights, 3)))
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
        width, places, seen_by, tokens = self._width, list[int](), list[int](), list[int]()
        starts, rows = list[int](), 2
        for line in lines:
            places.append(rows)
            starts.append(len(tokens))
            tokens += _in_blocks(range(len(seen_by) + 1, len(seen_by) + 1 + len(line)))
            seen_by += _in_blocks(range(rows - 1, rows + len(line) + 1))
            rows += len(line) + 3
        words, read = np.zeros((rows, 10 * width), np.float32), self._words_of(lines)
        for place, line in zip(places, lines, strict=True):
            if line:
                words[place : place + len(line)] = [read[token] for token in line]
        sums = words[:, 4 * width : 7 * width] + self._first.bias
        sums[1:] += words[:-1, width : 4 * width]
        sums[:-1] += words[1:, 7 * width :]
        seen = words[:, :width] + self._first.of_biased(sums)
        for layer, at in zip(self._others, (np.array(seen_by), np.array(tokens)), strict=True):
            if not len(at):
                break
            windows = np.concatenate((seen[at - 1], seen[at], seen[at + 1]), axis=1)
            seen = seen[at] + layer.of_sums(_product(windows, layer.weights))
        scores = _product(seen, self._heads)
        scores += self._head_bias
        tags, trees = scores[:, : self._tags], scores[:, self._tags :]
        spans = [slice(start, start + len(line)) for start, line in zip(starts, lines, strict=True)]
        return [(tags[span], trees[span]) for span in spans]

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
        parts = [
            np.concatenate([self._part(number, feature) for number, feature in enumerate(_features(token))])
            for token in tokens
        ]
        vectors = self._embed.of_sums(_products(np.array(parts), self._embed.weights))
        found: Floats = np.concatenate((vectors, _products(vectors, self._by_place)), axis=1)
        return found

    def _read_part(self, number: int, feature: str) -> Floats:
        """What a feature of a word adds to its vector before the first layer: float32 [width]."""
        table, seed = self._tables[number]
        first, second, third, fourth = (key % len(table) for key in four_keys(string_id(feature), seed))
        found: Floats = table[first] + table[second] + table[third] + table[fourth]
        return found


def _features(token: Token) -> tuple[str, str, str, str]:
    word = token.text
    return norm(word) if token.norm is None else token.norm, word[0], word[-3:], shape(word)


def _in_blocks(places: range) -> list[int]:
    """The places of rows, filled up with the first empty row but one to whole blocks."""
    return [*places, *[1] * (-len(places) % _ROWS)]


def _layers(name: str, model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The layers of this name, in the order of the model."""
    kept = zip(model["nodes"], model["params"], model["attrs"], strict=True)
    return [{"params": params, "attributes": attrs} for node, params, attrs in kept if node["name"] == name]


def _attribute(layer: Mapping[str, Any], name: str) -> int:
    value: int = srsly.msgpack_loads(layer["attributes"][name])
    return value


def _product(rows: Floats, weights: Floats) -> Floats:
    """rows @ weights, in blocks of one shape, so that how many rows there are moves no bit of any."""
    count, blocks = len(rows), -(-len(rows) // _ROWS)
    if count != blocks * _ROWS:
        rows = np.concatenate((rows, np.zeros((blocks * _ROWS - count, rows.shape[1]), np.float32)))
    found: Floats = np.matmul(rows.reshape(blocks, _ROWS, -1), weights).reshape(blocks * _ROWS, -1)
    return found[:count]


def _products(rows: Floats, weights: Floats) -> Floats:
    """`_product` of each row alone."""
    blocks = np.zeros((len(rows), _ROWS, rows.shape[1]), np.float32)
    blocks[:, 0] = rows
    found: Floats = np.matmul(blocks, weights)
    return found[:, 0]
