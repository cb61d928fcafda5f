"""Texts that are the same, or nearly: copies of one text under several origins.

The same are texts that differ in case, width, whitespace and invisible characters alone. How near others are is the
share of common shingles (runs of eight characters), estimated from the smallest hashes of each text (bottom-k MinHash;
exact for texts of ordinary length). It takes time linear in the texts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from robustrag_integrations._util.display import without_selectors
from robustrag_integrations._util.normalise import compatible, few_marks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Sketch: TypeAlias = NDArray[np.uint64]

NEAR = 0.7  # share of common shingles from which texts are near copies

_SHINGLE = 8  # characters
_SHORTEST = 100  # characters; shorter texts are alike by chance
_LONGEST = 20_000  # characters that are looked at
_SKETCH = 1000  # hashes kept of each text
_MIXING = 0x9E3779B97F4A7C15  # odd, and its powers differ in all their bits


def comparable(text: str) -> str:
    """Return the text without the parts in which copies may differ."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = compatible(few_marks(without_selectors(text))).casefold()
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())


def first_of_same(texts: Sequence[str]) -> list[int]:
    """Per text the place of the first one that is the same; texts with nothing in them are their own."""
    known: dict[str, int] = {}
    plain = map(comparable, texts)
    return [known.setdefault(text, place) if text else place for place, text in enumerate(plain)]


def sketch_of(text: str) -> Sketch | None:
    """Return the smallest hashes of a text's shingles, ascending; None for a short text."""
    plain = comparable(text[:_LONGEST])[:_LONGEST]
    if len(plain) < _SHORTEST:
        return None
    import numpy as np  # here, as a question over short passages needs none of it

    factors = np.array([pow(_MIXING, power, 1 << 64) for power in range(1, _SHINGLE + 1)], np.uint64)
    characters = np.frombuffer(plain.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    hashes = np.convolve(characters, factors, "valid")  # modulo 2^64
    hashes = (hashes ^ hashes >> np.uint64(32)) * np.uint64(_MIXING)
    return np.unique(hashes ^ hashes >> np.uint64(29))[:_SKETCH]


def near_copies(of_texts: Sequence[Sketch | None]) -> list[tuple[int, int]]:
    """Return the pairs of texts that are near copies, given their sketches."""
    sketches = [(place, sketch) for place, sketch in enumerate(of_texts) if sketch is not None]
    if len(sketches) < 2:
        return []
    import numpy as np

    every = np.sort(np.concatenate([sketch for _, sketch in sketches]))
    repeated = every[1:][every[1:] == every[:-1]]
    shared = [
        (place, sketch)
        for place, sketch in sketches
        if len(repeated) >= NEAR * len(sketch) <= np.isin(sketch, repeated).sum()
    ]
    return [(i, j) for (i, one), (j, other) in combinations(shared, 2) if _likeness(one, other) >= NEAR]


def _likeness(one: Sketch, other: Sketch) -> float:
    """An estimate of the Jaccard index: the share of common ones among the smallest hashes of both."""
    import numpy as np

    union = np.union1d(one, other)[:_SKETCH]
    return float(np.isin(union, np.intersect1d(one, other, assume_unique=True)).mean())
