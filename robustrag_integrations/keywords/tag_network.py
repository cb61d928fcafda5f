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
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.keywords.murmur import four_keys, string_id
from robustrag_integrations.keywords.spacy_words import norm, shape
from robustrag_integrations.keywords.thinc_files import unpacked
from robustrag_integrations.keywords.token_rules import Token

Floats: TypeAlias = NDArray[np.float32]
Parameters: TypeAlias = Mapping[str, Any]  # of one layer: arrays by their names

_BLOCK = 4  # rows of one product: so few that no library shares it out among threads
_ROWS_TOGETHER = 512  # of several lines: bounds the memory
_WORDS_TOGETHER = 128  # that are new
_KEPT_WORDS = 4096
_WINDOW = np.arange(3)
_NO_WORD = Token("")  # of empty rows
_TINY = np.float32(1e-8)


class Scores(NamedTuple):
    """What the network says of a line's tokens.

    Attributes:
        tags: the scores of the parts of speech, float32 [tokens, tags].
        trees: those of the lemmatizer's trees, float32 [tokens, trees].
        best_tags, best_trees: per token the number of the highest one, the first of several.
    """

    tags: Floats
    trees: Floats
    best_tags: list[int]
    best_trees: list[int]


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


def _product(rows: Floats, weights: Floats) -> Floats:
    """rows @ weights, `_BLOCK` rows at a time."""
    inputs, outputs = weights.shape
    found: Floats = np.matmul(rows.reshape(-1, _BLOCK, inputs), weights).reshape(-1, outputs)
    return found


def _in_blocks(rows: int) -> int:
    """How many rows so many take in whole blocks."""
    return -(-rows // _BLOCK) * _BLOCK


def _windows(rows: Floats, firsts: Sequence[int], lengths: Iterable[int]) -> Floats:
    """So many windows of three rows from each of these rows on, in blocks of their own: [windows, 3 * width].

    Blocks are filled up with whatever follows; nobody reads what becomes of that.
    """
    places = chain.from_iterable([range(i, i + _in_blocks(length)) for i, length in zip(firsts, lengths, strict=True)])
    starts = np.fromiter(places, np.intp)
    return rows.take(starts[:, None] + _WINDOW, axis=0, mode="clip").reshape(len(starts), 3 * rows.shape[1])


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
        self._no_word = np.zeros(10 * self._width, np.float32)
        self._no_word[4 * self._width : 7 * self._width] = first.bias
        self._kept = {_NO_WORD: self._no_word}

    def scores(self, lines: Sequence[Sequence[Token]]) -> list[Scores]:
        """Return the scores of each line.

        Lines are read together, up to `_ROWS_TOGETHER` rows at a time: that changes no bit of any of them.
        """
        found: list[Scores] = []
        together: list[Sequence[Token]] = []
        rows = 0
        for line in lines:
            if rows and rows + len(line) > _ROWS_TOGETHER:
                found += self._scores(together)
                together, rows = [], 0
            together.append(line)
            rows += len(line)
        return found + self._scores(together) if together else found

    def _scores(self, lines: Sequence[Sequence[Token]]) -> list[Scores]:
        """The scores of lines whose rows lie below one another, with three empty rows between two lines.

        The middle one sees no word: so no line sees another one. Each line's rows have blocks of their own in products.
        """
        width, lengths = self._width, [len(line) for line in lines]
        words = self._words_of(lines)
        # What a word adds to the sums of the row above it, of its own, and of the row below.
        sums = words[1:-1, 4 * width : 7 * width] + words[:-2, width : 4 * width]
        sums += words[2:, 7 * width :]
        seen = self._first.of_biased(sums)
        seen += words[1:-1, :width]
        places = [0, *accumulate(length + 3 for length in lengths)]
        for layer, reach in zip(self._others, (1, 0), strict=True):
            around = [length + 2 * reach for length in lengths]
            windows = _windows(seen, places[:-1], around)
            seen = layer.of_sums(_product(windows, layer.weights))
            seen += windows[:, width : 2 * width]
            places = [0, *accumulate(map(_in_blocks, around))]
        scores = _product(seen, self._heads)
        scores += self._head_bias
        tags, trees = scores[:, : self._tags], scores[:, self._tags :]
        best_tags, best_trees = tags.argmax(axis=1).tolist(), trees.argmax(axis=1).tolist()
        rows = [slice(place, place + length) for place, length in zip(places, lengths, strict=False)]
        return [Scores(tags[row], trees[row], best_tags[row], best_trees[row]) for row in rows]

    def _words_of(self, lines: Sequence[Sequence[Token]]) -> Floats:
        """The words of all rows and one more at either end, as `_read_words` gives them: [rows + 2, 10 * width]."""
        tokens = [_NO_WORD]
        for line in lines:
            tokens += (_NO_WORD, _NO_WORD, *line, _NO_WORD)
        tokens += (_NO_WORD, _NO_WORD)
        words = list(map(self._kept.get, tokens))
        if new := dict.fromkeys([token for token, word in zip(tokens, words, strict=True) if word is None]):
            read = self._read_new(list(new))
            words = [read[token] if word is None else word for token, word in zip(tokens, words, strict=True)]
        return np.concatenate(cast("list[Floats]", words)).reshape(len(words), -1)

    def _read_new(self, tokens: Sequence[Token]) -> dict[Token, Floats]:
        """Read words, and keep them."""
        kept, found = self._kept, dict[Token, Floats]()
        for first in range(0, len(tokens), _WORDS_TOGETHER):
            chunk = tokens[first : first + _WORDS_TOGETHER]
            read = dict(zip(chunk, self._read_words(chunk), strict=True))
            found |= read
            if len(kept) + len(read) > _KEPT_WORDS:
                kept = self._kept = {_NO_WORD: self._no_word}
            kept |= read
        return found

    def _read_words(self, tokens: Sequence[Token]) -> Floats:
        """Each word's vector and its shares in the first convolution, with the bias in the middle one."""
        parts = np.concatenate([self._part(*feature) for token in tokens for feature in enumerate(_features(token))])
        vectors = self._embed.of_sums(np.add.reduce(parts.reshape(len(tokens), len(self._tables), -1), axis=1))
        # Each word's row is multiplied by itself, so that the words beside it move no bit of it.
        shares = np.matmul(vectors[:, None, None], self._by_place).reshape(len(vectors), -1)
        found: Floats = np.concatenate((vectors, shares), axis=1)
        found += self._no_word
        return found

    def _read_part(self, number: int, feature: str) -> Floats:
        """What a feature of a word adds to the sums of the first layer: float32 [3 * width]."""
        table, seed = self._tables[number]
        first, second, third, fourth = four_keys(string_id(feature), seed)
        rows = len(table)
        found: Floats = table[first % rows] + table[second % rows] + table[third % rows] + table[fourth % rows]
        return found


def _features(token: Token) -> tuple[str, str, str, str]:
    word = token.text
    return norm(word) if token.norm is None else token.norm, word[0], word[-3:], shape(word)


def _layers(name: str, model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The layers of this name, in the order of the model."""
    kept = zip(model["nodes"], model["params"], model["attrs"], strict=True)
    return [{"params": params, "attributes": attrs} for node, params, attrs in kept if node["name"] == name]


def _attribute(layer: Mapping[str, Any], name: str) -> int:
    value: int = unpacked(layer["attributes"][name])
    return value
