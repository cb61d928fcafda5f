"""BM25 retrieval: no model, no network, the same ranking every time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from robustrag_integrations.corpus.documents import needed
from robustrag_integrations.grouping.passages import ORIGIN, GroupBy, Passage, passage_keys
from robustrag_integrations.grouping.quotas import choose

_WORD = r"(?u)\b\w+\b"
# Chinese, Japanese, Thai, Lao, Burmese and Khmer, which leave no space between words.
_UNSPACED = re.compile(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)


class BM25Index:
    """A BM25 index over passages; needs bm25s."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._bm25s = needed("bm25s", "retrieval")
        self._passages = tuple(passages)
        words = self._words([p.text for p in self._passages])
        self._vocabulary = frozenset(w for row in words for w in row)
        self._index = self._bm25s.BM25(backend="numpy")
        if self._vocabulary:
            self._index.index(words, show_progress=False)

    def __len__(self) -> int:
        return len(self._passages)

    def search(self, query: str, k: int, *, per_source: int | None = None, by: GroupBy = ORIGIN) -> list[Passage]:
        """Return the passages that share words with the query, best first; among equals, earlier ones first.

        Args:
            query: the question.
            k: maximum number of passages; with `per_source`, how many different sources.
            per_source: at most this many passages of one source, so that one long file cannot crowd out all others.
                None: no such limit.
            by: the criterion of a source, as for `isolate`.
        """
        import numpy as np

        words = [w for w in self._words([query])[0] if w in self._vocabulary] if self._vocabulary else []
        scores = self._index.get_scores(words) if words else np.zeros(0)
        order = np.argsort(-scores, kind="stable")
        ranked = [self._passages[i] for i in order[: np.count_nonzero(scores > 0)]]
        if per_source is None:
            return ranked[:k]
        return [ranked[rank] for rank in choose(passage_keys(ranked, by).places, k, per_source)]

    def _words(self, texts: list[str]) -> list[list[str]]:
        spaced = [_UNSPACED.sub(_in_pairs, text) for text in texts]
        found: list[list[str]] = self._bm25s.tokenize(
            spaced, token_pattern=_WORD, stopwords="en", return_ids=False, show_progress=False
        )
        return found


@dataclass(frozen=True)
class Library:
    """Documents with their index and retrieval settings.

    Attributes:
        index: over their passages.
        top_k: number of sources that are asked; with `per_source` None, how many passages.
        per_source: maximum number of passages of one source.
        group_by: the criterion of a source.
    """

    index: BM25Index
    top_k: int = 10
    per_source: int | None = 2
    group_by: GroupBy = ORIGIN

    def search(self, question: str) -> list[Passage]:
        """Return the passages that fit the question, best first."""
        return self.index.search(question, self.top_k, per_source=self.per_source, by=self.group_by)


def _in_pairs(run: re.Match[str]) -> str:
    """Split text that is written without spaces into pairs of neighbouring characters, which stand for words."""
    text = run[0]
    return f" {' '.join(text[i : i + 2] for i in range(max(1, len(text) - 1)))} "
