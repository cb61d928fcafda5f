"""The network of the shipped pipeline in numpy: hashed features, three convolutions, two classifiers.

What spaCy and thinc compute, without their machinery, which costs ten times as much as the arithmetic for a line of ten
words. The weights are never written to, so that any number of threads may use them at a time. What a line gives is a
function of that line alone: lines are read one by one, words by themselves and rows in products of one shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.forks import UncutByForks
from robustrag_integrations.keywords.token_rules import Token

Floats: TypeAlias = NDArray[np.float32]

_ROWS = 4  # of one product: few enough that no library shares it out among threads
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
    def of(cls, maxout: Any, norm: Any) -> _Maxout:
        """From thinc's layers."""
        weights = np.asarray(maxout.get_param("W"), np.float32)  # [width, 3, in]
        inputs = weights.shape[2]
        return cls(
            np.ascontiguousarray(weights.transpose(1, 0, 2).reshape(-1, inputs).T),
            np.asarray(maxout.get_param("b"), np.float32).T.reshape(-1).copy(),
            np.asarray(norm.get_param("G"), np.float32).copy(),
            np.asarray(norm.get_param("b"), np.float32).copy(),
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
        language: the shipped pipeline, as spaCy loads it.
    """

    def __init__(self, language: Any) -> None:
        from spacy.attrs import NORM, PREFIX, SHAPE, SUFFIX
        from spacy.strings import get_string_id
        from thinc.api import NumpyOps

        layers = list(language.get_pipe("tok2vec").model.walk())
        self._tables = [
            (np.asarray(layer.get_param("E"), np.float32).copy(), layer.attrs["seed"])
            for layer in sorted(_named("hashembed", layers), key=lambda layer: layer.attrs["column"])
        ]
        embed, first, *self._others = [
            _Maxout.of(maxout, norm)
            for maxout, norm in zip(_named("maxout", layers), _named("layernorm", layers), strict=True)
        ]
        self._embed, self._first = embed, first
        self._width = len(embed.gain)
        # The first convolution's share of each word, by where it stands: left of a token, at it, right of it.
        self._by_place = np.ascontiguousarray(np.hstack(np.split(first.weights, 3)))
        readers = [language.get_pipe(name).model for name in ("morphologizer", "trainable_lemmatizer")]
        heads = [head for reader in readers for head in _named("softmax", reader.walk())]
        weights = [np.asarray(head.get_param("W"), np.float32) for head in heads]
        self._tags = len(weights[0])
        self._heads = np.ascontiguousarray(np.concatenate(weights).T)
        self._head_bias = np.concatenate([np.asarray(head.get_param("b"), np.float32) for head in heads])
        getters = language.vocab.lex_attr_getters
        self._features = [getters[attribute] for attribute in (NORM, PREFIX, SUFFIX, SHAPE)]
        self._id, self._hash = get_string_id, NumpyOps().hash
        self._word = lru_cache(_KEPT_WORDS)(self._read_word)
        self._uncut = UncutByForks()

    def scores(self, tokens: list[Token]) -> tuple[Floats, Floats]:
        """Return the scores of the parts of speech and of the lemmatizer's trees, each [tokens, labels]."""
        with self._uncut:
            scores = self._scores(tokens)
        return scores[:, : self._tags], scores[:, self._tags :]

    def _scores(self, tokens: list[Token]) -> Floats:
        count, width = len(tokens), self._width
        words = np.zeros((count + 4, 10 * width), np.float32)  # two empty rows at each end: what a token can see
        words[2:-2] = [self._word(token) for token in tokens]
        sums = words[:, 4 * width : 7 * width] + self._first.bias
        sums[1:] += words[:-1, width : 4 * width]
        sums[:-1] += words[1:, 7 * width :]
        rows = words[:, :width] + self._first.of_biased(sums)
        for layer in self._others:
            windows = np.concatenate((rows[:-2], rows[1:-1], rows[2:]), axis=1)
            rows = rows[1:-1] + layer.of_sums(_product(windows, layer.weights))
        scores = _product(rows, self._heads)
        scores += self._head_bias
        return scores

    def _read_word(self, token: Token) -> Floats:
        """A word's vector, and its shares in the first convolution: float32 [10 * width]."""
        ids = [self._id(feature(token.text)) for feature in self._features]
        if token.norm is not None:
            ids[0] = self._id(token.norm)
        parts = []
        for identity, (table, seed) in zip(ids, self._tables, strict=True):
            keys = self._hash(np.array([identity], np.uint64), seed)[0] % len(table)
            parts.append(table[keys[0]] + table[keys[1]] + table[keys[2]] + table[keys[3]])
        vector = self._embed.of_sums(_product(np.concatenate(parts)[None], self._embed.weights))
        shares = _product(vector, self._by_place)
        found: Floats = np.concatenate((vector, shares), axis=1)[0]
        return found


def _named(name: str, layers: Any) -> list[Any]:
    return [layer for layer in layers if layer.name == name]


def _product(rows: Floats, weights: Floats) -> Floats:
    """rows @ weights, in blocks of one shape, so that how many rows there are moves no bit of any."""
    count, blocks = len(rows), -(-len(rows) // _ROWS)
    if count != blocks * _ROWS:
        rows = np.concatenate((rows, np.zeros((blocks * _ROWS - count, rows.shape[1]), np.float32)))
    found: Floats = np.matmul(rows.reshape(blocks, _ROWS, -1), weights).reshape(blocks * _ROWS, -1)
    return found[:count]
