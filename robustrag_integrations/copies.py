"""Texts that are the same, or nearly: copies of one text under several origins.

The same are texts that differ in case, width, whitespace and invisible characters alone. How near others are is the
share of common shingles (runs of eight characters), estimated from the smallest hashes of each text (bottom-k MinHash;
exact for texts of ordinary length). Both take time linear in the texts.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

from robustrag_integrations.normalise import few_marks

NEAR = 0.7  # share of common shingles from which texts are near copies

_SHINGLE = 8  # characters
_SHORTEST = 100  # characters; shorter texts are alike by chance
_LONGEST = 20_000  # characters that are looked at
_SKETCH = 1000  # hashes kept of each text


def comparable(text: str) -> str:
    """The text without what copies may differ in."""
    folded = unicodedata.normalize("NFKC", few_marks(text)).casefold()
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())


def first_of_same(texts: Sequence[str]) -> list[int]:
    """Per text the place of the first one that is the same; texts with nothing in them are their own."""
    known: dict[str, int] = {}
    plain = map(comparable, texts)
    return [known.setdefault(text, place) if text else place for place, text in enumerate(plain)]


def near_copies(texts: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of texts that are near copies; only the first 20,000 characters count."""
    sketches = [_sketch(comparable(text[:_LONGEST])[:_LONGEST]) for text in texts]
    return [
        (i, j)
        for i, one in enumerate(sketches)
        for j, other in enumerate(sketches[i + 1 :], i + 1)
        if one and other and _likeness(one, other) >= NEAR
    ]


def _sketch(text: str) -> list[int]:
    """The smallest hashes of the text's shingles, ascending; empty for a short text."""
    if len(text) < _SHORTEST:
        return []
    shingles = {text[i : i + _SHINGLE] for i in range(len(text) - _SHINGLE + 1)}
    hashes = (hashlib.blake2b(s.encode("utf-8", "surrogatepass"), digest_size=8).digest() for s in shingles)
    return sorted(int.from_bytes(h, "big") for h in hashes)[:_SKETCH]


def _likeness(one: list[int], other: list[int]) -> float:
    """An estimate of the Jaccard index: the share of common ones among the smallest hashes of both."""
    if not NEAR <= len(one) / len(other) <= 1 / NEAR:
        return 0.0
    both = set(one) & set(other)
    union = sorted({*one, *other})[:_SKETCH]
    return sum(h in both for h in union) / len(union)
