"""Retrievers: BM25, embeddings, and any retriever of LangChain or LlamaIndex, behind one function.

No framework is imported: what a user names is asked in the way that it can be asked (`invoke`, `retrieve`, ...).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from robustrag_integrations.corpus import BM25Index
from robustrag_integrations.evaluation.retrieval.corpora import PASSAGE_ID
from robustrag_integrations.evaluation.retrieval.spec import BM25
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.plugins import load_object

Search = Callable[[str, int], "list[Passage]"]
"""From a query and a number k to at most k passages, best first."""
Searcher = Callable[[Sequence[Passage]], Search]
"""Makes the search over a corpus."""


def searcher_of(name: str) -> Searcher:
    """The retriever of a name.

    Args:
        name: `bm25`, or `module:function` (`file.py:function`). What is named is one of

            - an embedding of LangChain (`embed_query`, `embed_documents`) or LlamaIndex (`get_query_embedding`,
              `get_text_embedding_batch`), or a function without arguments that gives one: passages are ranked by the
              cosine to the query, and each text is embedded once.
            - a function from a list of `Passage` (`text`, `id`, `source`, `metadata`) to a retriever of LangChain or
              LlamaIndex over them, or to a function from a query and a number to passages. It is called for every
              corpus: once for the clean one, and once per question, attack and number of planted documents. The
              passages' metadata must come back with the documents, or their ids, or their texts unchanged.

    Raises:
        ValueError: it cannot be imported.
        TypeError: it is none of these.
    """
    if name == BM25:
        return lambda passages: BM25Index(passages).search
    try:
        named = load_object(name)
    except ValueError as error:
        raise ValueError(f"retriever {name!r}: {error}") from error
    if not _embeds(named) and callable(named) and not _takes_passages(named):
        named = named()
    if _embeds(named):
        return Cosine(named)
    if not callable(named):
        raise TypeError(_unknown(name, named))
    return lambda passages: _search_of(name, named(list(passages)), passages)


class Cosine:
    """Ranks passages by the cosine of their embedding to the query's; a text is embedded once.

    Args:
        embedding: of LangChain or LlamaIndex.
    """

    def __init__(self, embedding: Any) -> None:
        self._embedding = embedding
        self._known: dict[str, Any] = {}

    def __call__(self, passages: Sequence[Passage]) -> Search:
        """The search over these passages."""
        import numpy as np

        self._learn(p.text for p in passages)
        matrix = np.stack([self._known[p.text] for p in passages])

        def search(query: str, k: int) -> list[Passage]:
            e = self._embedding
            asked = e.embed_query(query) if hasattr(e, "embed_query") else e.get_query_embedding(query)
            scores = matrix @ _unit(asked)
            return [passages[i] for i in np.argsort(-scores, kind="stable")[:k]]

        return search

    def _learn(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            e = self._embedding
            found = e.embed_documents(new) if hasattr(e, "embed_documents") else e.get_text_embedding_batch(new)
            self._known |= {text: _unit(vector) for text, vector in zip(new, found, strict=True)}


def _unit(vector: Any) -> Any:
    import numpy as np

    array = np.asarray(vector, dtype=float)
    return array / (np.linalg.norm(array) or 1.0)


def _search_of(name: str, retriever: Any, passages: Sequence[Passage]) -> Search:
    """One function for whatever the user's function gave."""
    known = Known(name, passages)
    if hasattr(retriever, "retrieve"):
        return lambda query, k: known.all_of(retriever.retrieve(query), k)
    if hasattr(retriever, "invoke"):
        return lambda query, k: known.all_of(retriever.invoke(query), k)
    if _embeds(retriever):
        return Cosine(retriever)(passages)
    if callable(retriever):
        return lambda query, k: known.all_of(retriever(query, k), k)
    raise TypeError(_unknown(name, retriever))


class Known:
    """Finds the passages again that came back as documents or nodes of a library.

    Args:
        name: of the retriever, for messages.
        passages: the corpus.
    """

    def __init__(self, name: str, passages: Sequence[Passage]) -> None:
        self._name = name
        self._by_id = {p.id: p for p in passages}
        self._by_text: dict[str, list[Passage]] = {}
        for passage in passages:
            self._by_text.setdefault(_plain(passage.text), []).append(passage)

    def all_of(self, found: Iterable[Any], k: int) -> list[Passage]:
        """The first k of what was found, as passages.

        Raises:
            ValueError: something is none of the passages.
        """
        counts: dict[str, int] = {}
        made = []
        for item in list(found)[:k]:
            item = getattr(item, "node", item)
            passage = self._by_id.get(_id_of(item))
            if passage is None:
                text = _plain(_text_of(item))
                same = self._by_text.get(text)
                if not same:
                    raise ValueError(
                        f"retriever {self._name!r} gave a text that is not in the corpus ({text[:60]!r}); keep the "
                        f"passages' metadata (it holds {PASSAGE_ID!r}), their ids, or their texts"
                    )
                passage = same[counts.get(text, 0) % len(same)]
                counts[text] = counts.get(text, 0) + 1
            made.append(passage)
        return made


def _id_of(item: Any) -> str | None:
    metadata = getattr(item, "metadata", None)
    named = metadata.get(PASSAGE_ID) if isinstance(metadata, dict) else None
    for value in (named, getattr(item, "id", None), getattr(item, "node_id", None)):
        if isinstance(value, str):
            return value
    return None


def _text_of(item: Any) -> str:
    if isinstance(item, str):
        return item
    for name in ("page_content", "text"):
        if isinstance(text := getattr(item, name, None), str):
            return text
    return ""


def _plain(text: str) -> str:
    return " ".join(text.split())


def _embeds(thing: Any) -> bool:
    if inspect.isclass(thing):
        return False
    return hasattr(thing, "embed_documents") or hasattr(thing, "get_text_embedding_batch")


def _takes_passages(function: Any) -> bool:
    """Whether it can be called with one argument."""
    try:
        inspect.signature(function).bind(())
    except TypeError:
        return False
    except ValueError:  # built in, and says nothing of its arguments
        return True
    return True


def _unknown(name: str, thing: Any) -> str:
    return (
        f"retriever {name!r} gave a {type(thing).__name__}; it must be an embedding, or a function from passages to a "
        "retriever of LangChain or LlamaIndex, or to a function from a query and a number to passages"
    )
