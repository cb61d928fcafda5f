"""Retrieval by words (BM25: no model, no network), and by meaning as well where there is an embedding model."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.corpus.documents import needed
from robustrag_integrations.grouping.passages import ORIGIN, GroupBy, Passage, passage_keys
from robustrag_integrations.grouping.quotas import choose
from robustrag_integrations.text.languages import ABOUT_THE_TEXT, language_of, stop_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TRUSTED_PASSAGES = 6  # that are read together
_FUSION = 60  # of reciprocal rank fusion, as its authors chose it (Cormack et al., 2009)
_WORD = r"(?u)\b\w+\b"
# Chinese, Japanese, Thai, Lao, Burmese and Khmer, which leave no space between words.
_UNSPACED = re.compile(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)


class Embedding(Protocol):
    """A model that turns texts into vectors of length 1; texts of one meaning are near each other."""

    def of_passages(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""

    def of_question(self, text: str) -> Vectors:
        """Return the vector of a question."""


class Index(ABC):
    """An index over passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)

    def __len__(self) -> int:
        return len(self._passages)

    @abstractmethod
    def ranking(self, query: str) -> Sequence[int]:
        """Return the places of the passages that fit the query, best first; among equals, earlier ones first."""

    def search(self, query: str, k: int, *, per_source: int | None = None, by: GroupBy = ORIGIN) -> list[Passage]:
        """Return the passages that fit the query, best first.

        Args:
            query: the question.
            k: maximum number of passages; with `per_source`, how many different sources.
            per_source: at most this many passages of one source, so that one long file cannot crowd out all others.
                None: no such limit.
            by: the criterion of a source, as for `isolate`.
        """
        ranked = [self._passages[place] for place in self.ranking(query)]
        if per_source is None:
            return ranked[:k]
        return [ranked[rank] for rank in choose(passage_keys(ranked, by).places, k, per_source)]


class BM25Index(Index):
    """An index that finds passages which share words with the query; needs bm25s."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        super().__init__(passages)
        self._bm25s = needed("bm25s", "retrieval")
        words = self._words([p.text for p in self._passages])
        self._vocabulary = frozenset(w for row in words for w in row)
        self._index = self._bm25s.BM25(backend="numpy")
        if self._vocabulary:
            self._index.index(words, show_progress=False)

    def ranking(self, query: str) -> Sequence[int]:
        """Return the places of the passages that share words with the query, stop words aside if it has others."""
        import numpy as np

        [asked] = self._words([query])
        small = stop_words(language_of(query) or "en") - ABOUT_THE_TEXT
        words = [w for w in asked if w not in small] or asked
        words = [w for w in words if w in self._vocabulary]
        scores = self._index.get_scores(words) if words else np.zeros(0)
        order: list[int] = np.argsort(-scores, kind="stable")[: np.count_nonzero(scores > 0)].tolist()
        return order

    def _words(self, texts: list[str]) -> list[list[str]]:
        spaced = [_UNSPACED.sub(_in_pairs, text) for text in texts]
        found: list[list[str]] = self._bm25s.tokenize(
            spaced, token_pattern=_WORD, stopwords="en", return_ids=False, show_progress=False
        )
        return found


class HybridIndex(Index):
    """An index by words and by meaning, fused by reciprocal rank: a passage counts by its places in both rankings.

    A passage's vector is made of its text alone, so that a hostile text can only move itself.
    """

    def __init__(self, passages: Sequence[Passage], embedding: Embedding) -> None:
        super().__init__(passages)
        self._words = BM25Index(passages)
        self._embedding = embedding
        self._vectors = embedding.of_passages([p.text for p in self._passages])

    def ranking(self, query: str) -> Sequence[int]:
        """Return the places of all passages."""
        import numpy as np

        question = self._embedding.of_question(query)
        if question.shape != self._vectors.shape[1:]:
            raise ModelError("the embedding model's vectors of a question and of passages differ in length")
        likeness = self._vectors @ question
        scores = np.zeros(len(self))
        for order in (self._words.ranking(query), np.argsort(-likeness, kind="stable")):
            scores[order] += 1 / (_FUSION + 1 + np.arange(len(order)))
        fused: list[int] = np.argsort(-scores, kind="stable").tolist()
        return fused


@dataclass(frozen=True)
class Library:
    """Documents with their index and retrieval settings.

    Attributes:
        index: over their passages.
        top_k: number of sources that are asked; with `per_source` None, how many passages.
        per_source: maximum number of passages of one source.
        group_by: the criterion of a source.
        trusted: an index of its own over trusted documents, whose best passages are read together; None: there are
            none.
    """

    index: Index
    top_k: int = 10
    per_source: int | None = 2
    group_by: GroupBy = ORIGIN
    trusted: Index | None = None

    def search(self, question: str) -> list[Passage]:
        """Return the passages that fit the question, best first."""
        return self.index.search(question, self.top_k, per_source=self.per_source, by=self.group_by)


class Found:
    """What is found for one question: trusted passages at once, others when they are first looked at.

    Attributes:
        trusted: the passages of the trusted documents, best first; None where there are none of these.
    """

    def __init__(
        self, library: Library, question: str, *, given: Sequence[Passage] = (), retrieve: bool = True
    ) -> None:
        """Search the trusted documents. The others are those `given`, and with `retrieve` those of the library."""
        self.trusted = None if library.trusted is None else library.trusted.search(question, TRUSTED_PASSAGES)
        self._search: Callable[[], list[Passage]] = partial(library.search, question) if retrieve else list
        self._given = tuple(given)
        self._others: list[Passage] | None = None
        if self.trusted is None:
            list(self)

    def __iter__(self) -> Iterator[Passage]:
        """Yield the passages that are asked one by one."""
        if self._others is None:
            self._others = [*self._given, *self._search()]
        return iter(self._others)

    @property
    def passages(self) -> list[Passage]:
        """All passages that were looked at, the trusted ones first."""
        return [*(self.trusted or ()), *(self._others or ())]

    def of(self, defense: Any) -> dict[str, Any]:
        """Return the passages as arguments of a defence; plain RAG reads both together."""
        if defense.isolates:
            return {"passages": self, "trusted": self.trusted}
        return {"passages": [*(self.trusted or ()), *self]}


def _in_pairs(run: re.Match[str]) -> str:
    """Split text that is written without spaces into pairs of neighbouring characters, which stand for words."""
    text = run[0]
    return f" {' '.join(text[i : i + 2] for i in range(max(1, len(text) - 1)))} "
