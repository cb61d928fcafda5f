"""Tagging with the shipped pipeline: no lock, no memory of what was read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from configparser import RawConfigParser
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from robustrag_integrations.keywords.lemma_trees import LemmaTrees
from robustrag_integrations.keywords.tag_network import Floats, Scores, TagNetwork
from robustrag_integrations.keywords.thinc_files import unpacked
from robustrag_integrations.keywords.token_rules import Token, TokenRules
from robustrag_integrations.keywords.words import TaggedWord

_KEPT_LEMMAS = 4096
_tagged = partial(tuple.__new__, TaggedWord)  # not by way of a Python function


class ShippedTagger:
    """The shipped pipeline's tokens, parts of speech and lemmas, line by line; the same as spaCy gives.

    spaCy is not imported: that takes seconds, the most of them for torch where it is installed. Any number of threads
    may tag at a time, as nothing is written but what is kept of words. A word is what its characters are: there is no
    table of strings in which two crafted words could meet.

    Args:
        folder: the pipeline's files, as spaCy writes them.
    """

    def __init__(self, folder: Path) -> None:
        lemmatizer, models = folder / "trainable_lemmatizer", ("tok2vec", "morphologizer", "trainable_lemmatizer")
        self._rules = TokenRules(unpacked((folder / "tokenizer").read_bytes()))
        self._network = TagNetwork(*(unpacked((folder / name / "model").read_bytes()) for name in models))
        labels = json.loads((folder / "morphologizer" / "cfg").read_text(encoding="utf-8"))["labels_morph"]
        self._parts_of_speech = [label.removeprefix("POS=") for label in labels]
        strings = json.loads((folder / "vocab" / "strings.json").read_text(encoding="utf-8"))
        self._trees = LemmaTrees(unpacked((lemmatizer / "trees").read_bytes())["trees"], strings)
        self._lemma_by = lru_cache(_KEPT_LEMMAS)(self._trees.apply)
        self._labels = json.loads((lemmatizer / "cfg").read_text(encoding="utf-8"))["labels"]
        config = RawConfigParser()
        config.read(folder / "config.cfg", encoding="utf-8")
        self._tries = config.getint("components.trainable_lemmatizer", "top_k")

    def tag(self, lines: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of every line with their parts of speech and lemmas, without spaces.

        What a line gives depends on no other one.
        """
        tokens = [self._rules.tokens(line) for line in lines]
        scores = self._network.scores([[token for token, _ in row] for row in tokens])
        return [self._words(row, found) for row, found in zip(tokens, scores, strict=True)]

    def _words(self, tokens: Sequence[tuple[Token, int]], scores: Scores) -> list[TaggedWord]:
        texts = [token.text for token, _ in tokens]
        lemmas = list(map(self._lemma_by, map(self._labels.__getitem__, scores.best_trees), texts))
        if None in lemmas:
            given = zip(texts, lemmas, scores.trees, strict=True)
            lemmas = [self._next_best_lemma(text, trees) if lemma is None else lemma for text, lemma, trees in given]
        tags = map(self._parts_of_speech.__getitem__, scores.best_tags)
        words = map(_tagged, zip(texts, lemmas, tags, [start for _, start in tokens], strict=True))
        return [word for word in words if not word[0].isspace()]

    def _next_best_lemma(self, text: str, trees: Floats) -> str:
        """The lemma by the first of the next best trees that fits the word; the word itself if none does."""
        for _ in range(self._tries - 1):
            trees[trees.argmax()] = np.finfo(np.float32).min
            lemma = self._lemma_by(self._labels[trees.argmax()], text)
            if lemma is not None:
                return lemma
        return text
