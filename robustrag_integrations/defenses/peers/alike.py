"""Passages that were written from one template: close in meaning and in wording (TrustRAG's first stage)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.normalise import plain_words

ROUGE, COSINE = 0.25, 0.88  # from which on two passages of a cluster are alike
_DIMENSIONS = 512
_LONGEST = 20_000  # characters of a passage that are embedded
_WORDS = 200  # of a passage that are compared in order
_ROUNDS = 50

Vectors = NDArray[np.float64]


def hashed_words(texts: Sequence[str]) -> list[list[float]]:
    """The embedding without a model: word counts, each word at a place that its hash decides."""
    vectors = np.zeros((len(texts), _DIMENSIONS))
    for row, text in zip(vectors, texts, strict=True):
        for word in plain_words(text[:_LONGEST]).split():
            row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % _DIMENSIONS] += 1
    return [list(map(float, row)) for row in vectors]


def unit_vectors(embedded: object, count: int) -> Vectors:
    """count x d: what an embedding gave, each vector of length 1 (or 0).

    Raises:
        ValueError: it is not one vector of finite numbers for each text.
    """
    try:
        vectors = np.asarray(embedded, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"embed must give one vector of numbers per text ({error})") from error
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise ValueError(
            f"embed gave an array of shape {vectors.shape}; it must give {count} vectors of finite numbers"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Vectors = vectors / np.where(lengths == 0, 1, lengths)
    return made


def two_means(vectors: Vectors) -> list[int]:
    """The cluster, 0 or 1, of each vector; it starts from the first vector and the one furthest from it."""
    centres = vectors[[0, int(np.argmax(((vectors - vectors[0]) ** 2).sum(axis=1)))]]
    chosen = np.zeros(len(vectors), dtype=int)
    for _ in range(_ROUNDS):
        chosen = np.argmin(((vectors[:, None] - centres[None]) ** 2).sum(axis=2), axis=1)
        moved = np.stack([vectors[chosen == c].mean(axis=0) if (chosen == c).any() else centres[c] for c in (0, 1)])
        if np.allclose(moved, centres):
            break
        centres = moved
    return [int(c) for c in chosen]


def rouge_l(first: str, second: str) -> float:
    """ROUGE-L: the F1 of the longest common subsequence of words, over the first words of each text."""
    one, other = plain_words(first[:_LONGEST]).split()[:_WORDS], plain_words(second[:_LONGEST]).split()[:_WORDS]
    if not one or not other:
        return 0.0
    row = [0] * (len(other) + 1)
    for word in one:
        before = row
        row = [0]
        for j, candidate in enumerate(other):
            row.append(before[j] + 1 if word == candidate else max(before[j + 1], row[j]))
    return 2 * row[-1] / (len(one) + len(other))


def written_alike(texts: Sequence[str], embedded: object) -> frozenset[int]:
    """The texts that have a near copy in their own cluster, by cosine and by ROUGE-L."""
    if len(texts) < 2:
        return frozenset()
    vectors = unit_vectors(embedded, len(texts))
    clusters = two_means(vectors)
    close = vectors @ vectors.T >= COSINE
    found: set[int] = set()
    for i in range(len(texts)):
        for j in range(i):
            if clusters[i] == clusters[j] and close[i, j] and rouge_l(texts[i], texts[j]) >= ROUGE:
                found |= {i, j}
    return frozenset(found)
