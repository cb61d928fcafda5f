"""Texts that are the same, or nearly: copies of one text under several origins.

The same are texts that differ in case, width, whitespace and invisible characters alone. How near others are is the
share of common shingles (runs of eight characters), estimated from the smallest hashes of each text (bottom-k MinHash;
exact for texts of ordinary length). Both take time linear in the texts.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from robustrag_integrations.normalise import compatible, few_marks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAR = 0.7  # share of common shingles from which texts are near copies

_SHINGLE = 8  # characters
_SHORTEST = 100  # characters; shorter texts are alike by chance
_LONGEST = 20_000  # characters that are looked at
_SKETCH = 1000  # hashes kept of each text
_MOST_AT_A_TIME = 200_000  # characters


def comparable(text: str) -> str:
    """The text without what copies may differ in."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = compatible(few_marks(text)).casefold()
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())


def first_of_same(texts: Sequence[str]) -> list[int]:
    """Per text the place of the first one that is the same; texts with nothing in them are their own."""
    known: dict[str, int] = {}
    plain = map(comparable, texts)
    return [known.setdefault(text, place) if text else place for place, text in enumerate(plain)]


def near_copies(texts: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of texts that are near copies; only the first 20,000 characters count."""
    plain = ["" if _is_too_short(text) else comparable(text[:_LONGEST])[:_LONGEST] for text in texts]
    likeness = _with_much_in_common(plain)
    unclear = [pair for pair, known in likeness.items() if known is None]
    sketches = {place: _sketch(plain[place]) for place in sorted({place for pair in unclear for place in pair})}
    likeness |= {(i, j): _likeness(sketches[i], sketches[j]) for i, j in unclear}
    return [pair for pair, known in likeness.items() if known is not None and known >= NEAR]


def _is_too_short(text: str) -> bool:
    """Whether it is surely below `_SHORTEST`, which plain ASCII characters are if they are so many."""
    return len(text) < _SHORTEST and text.isascii()


def _with_much_in_common(texts: Sequence[str]) -> dict[tuple[int, int], float | None]:
    """The pairs that may be near copies, and their likeness; None where it is to be estimated.

    With fewer shingles in common than these it stays below `NEAR`. Finding out takes a thirtieth of hashing the
    shingles. Of much text all pairs are given, as all shingles would have to be held at a time.
    """
    places = [place for place, text in enumerate(texts) if len(text) >= _SHORTEST]
    if sum(len(texts[place]) for place in places) > _MOST_AT_A_TIME:
        return dict.fromkeys(combinations(places, 2))
    return _pairs(places, [texts[place] for place in places]) if len(places) > 1 else {}


def _pairs(places: Sequence[int], texts: Sequence[str]) -> dict[tuple[int, int], float | None]:
    """The places of two of these texts with enough in common; all shingles are looked at together, as numbers."""
    import numpy as np  # here, as a question over short passages needs none of it

    known: dict[str, int] = {}

    def numbers(text: str) -> NDArray[np.uint64]:
        if eight_bytes:
            found = np.sort(np.ndarray((len(text) - _SHINGLE + 1,), np.uint64, text.encode(), strides=(1,)))
            return found[np.concatenate(([True], found[1:] != found[:-1]))]  # as `unique` does, which is slower
        return np.array([known.setdefault(shingle, len(known)) for shingle in _shingles(text)], np.uint64)

    eight_bytes = all(map(str.isascii, texts))
    rows = [numbers(text) for text in texts]
    _, every, counts = np.unique(np.concatenate(rows), return_inverse=True, return_counts=True)
    owns = np.split(every, np.cumsum([len(row) for row in rows])[:-1])
    common = [frozenset(own[counts[own] > 1].tolist()) for own in owns]
    least = [_least_in_common(len(own)) for own in owns]
    found: dict[tuple[int, int], float | None] = {}
    for i, j in combinations([i for i, shared in enumerate(common) if len(shared) >= least[i]], 2):
        both = len(common[i] & common[j])
        if both >= max(least[i], least[j]):
            union = len(owns[i]) + len(owns[j]) - both
            found[places[i], places[j]] = both / union if union <= _SKETCH else None
    return found


def _least_in_common(size: int) -> float:
    """How many shingles near copies have in common at least, of which the larger has so many."""
    return NEAR * min(size, _SKETCH) - 1  # the estimate is a rounded quotient


def _sketch(text: str) -> list[int]:
    """The smallest hashes of the text's shingles, ascending."""
    hashes = (hashlib.blake2b(s.encode("utf-8", "surrogatepass"), digest_size=8).digest() for s in _shingles(text))
    return sorted(int.from_bytes(h, "big") for h in hashes)[:_SKETCH]


def _shingles(text: str) -> frozenset[str]:
    return frozenset(text[i : i + _SHINGLE] for i in range(len(text) - _SHINGLE + 1))


def _likeness(one: list[int], other: list[int]) -> float:
    """An estimate of the Jaccard index: the share of common ones among the smallest hashes of both."""
    if not NEAR <= len(one) / len(other) <= 1 / NEAR:
        return 0.0
    both = set(one) & set(other)
    union = sorted({*one, *other})[:_SKETCH]
    return sum(h in both for h in union) / len(union)
