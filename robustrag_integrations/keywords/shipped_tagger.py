"""Tagging with the shipped pipeline: no lock, no memory of what was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robustrag_integrations.keywords.tag_network import Floats, TagNetwork
from robustrag_integrations.keywords.token_rules import TokenRules
from robustrag_integrations.keywords.words import TaggedWord


class ShippedTagger:
    """The shipped pipeline's tokens, parts of speech and lemmas, line by line; the same as spaCy gives.

    It only reads what it was made from, so that any number of threads may tag at a time. A word is what its characters
    are: there is no table of strings in which two crafted words could meet.

    Args:
        language: the pipeline, as spaCy loads it.
    """

    def __init__(self, language: Any) -> None:
        self._rules = TokenRules(language.tokenizer)
        self._network = TagNetwork(language)
        self._parts_of_speech = [label.removeprefix("POS=") for label in language.get_pipe("morphologizer").labels]
        lemmatizer = language.get_pipe("trainable_lemmatizer")
        self._trees, self._labels, self._tries = lemmatizer.trees, lemmatizer.labels, lemmatizer.top_k

    def tag(self, lines: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of every line with their parts of speech and lemmas, without spaces."""
        return [self._tagged(line) for line in lines]

    def _tagged(self, line: str) -> list[TaggedWord]:
        tokens = self._rules.tokens(line)
        if not tokens:
            return []
        tags, trees = self._network.scores([token for token, _ in tokens])
        chosen = zip(tokens, tags.argmax(axis=1).tolist(), trees.argmax(axis=1).tolist(), trees, strict=True)
        return [
            TaggedWord(token.text, self._lemma(token.text, tree, scores), self._parts_of_speech[tag], start)
            for (token, start), tag, tree, scores in chosen
            if not token.text.isspace()
        ]

    def _lemma(self, text: str, best: int, scores: Floats) -> str:
        """The lemma by the best tree that fits the word; the word itself if none of the first few does."""
        for _ in range(self._tries):
            lemma: str | None = self._trees.apply(self._labels[best], text)
            if lemma is not None:
                return lemma
            scores[best] = np.finfo(np.float32).min
            best = int(scores.argmax())
        return text
