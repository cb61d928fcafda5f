"""Turns files into ranked passages: reading, splitting, retrieving. Needs the extra `cli`."""

from __future__ import annotations

from robustrag_integrations.corpus.documents import CorpusError, Skipped, split
from robustrag_integrations.corpus.reading import Reading, read_documents
from robustrag_integrations.corpus.retrieval import BM25Index, Found, HybridIndex, Library

__all__ = [
    "BM25Index",
    "CorpusError",
    "Found",
    "HybridIndex",
    "Library",
    "Reading",
    "Skipped",
    "read_documents",
    "split",
]
