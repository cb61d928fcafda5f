"""Small worlds of keyword sets for attacks by the hundred thousand: sources are rows of bits, attacks are arrays."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.defenses.keyword.threshold import Threshold

WORDS = "abcdxy"  # no source says x or y before it is replaced
Bits = NDArray[np.int64]  # [..., sources, words]


@dataclass(frozen=True)
class SmallTally:
    """Sources that say letters.

    Attributes:
        sets: per source the letters that it says; None for an abstention.
        rule: which letters are kept.
    """

    sets: tuple[frozenset[str] | None, ...]
    rule: Threshold

    @classmethod
    def random(cls, rng: random.Random) -> SmallTally:
        sources = rng.randint(2, 9)
        said: list[Collection[str] | None] = ["a", "a", "a", "ab", "ab", "abc", "b", "c", "cd", "d", "", None]
        agreed = rng.choice(["a", "ab", "a"])
        sets = [agreed if rng.random() < 0.6 else rng.choice(said) for _ in range(sources)]
        alpha = Fraction(rng.choice(["0", "0.2", "0.3", "0.4", "0.5", "0.5", "0.6", "0.75", "1"]))
        beta = None if rng.random() < 0.3 else rng.choice([1, 2, 3, 4, 9])
        return cls(tuple(None if s is None else frozenset(s) for s in sets), Threshold(alpha, beta))

    @property
    def bits(self) -> Bits:
        """[sources, words and whether the source answers]."""
        return np.array([[*(w in (said or ()) for w in WORDS), said is not None] for said in self.sets], np.int64)

    def kept(self, said: Bits) -> NDArray[np.bool_]:
        """[..., words], which are kept; written from the definition.

        Args:
            said: [..., sources, words and whether the source answers].
        """
        counts = said.sum(axis=-2)
        count, answering = counts[..., :-1], counts[..., -1:]
        alpha, rule = self.rule.alpha, self.rule
        lead = alpha.denominator * count - alpha.numerator * answering
        reached = lead >= 0
        if rule.beta is not None:
            reached |= count >= rule.beta
        kept: NDArray[np.bool_] = reached & (count >= 1)
        return kept

    def attacked(self, places: Sequence[int], count: int, draws: np.random.Generator) -> Bits:
        """Replies with these sources replaced: every reply of theirs if they are at most `count`, else so many."""
        each = len(WORDS) + 1
        size = len(places) * each
        codes = np.arange(2**size) if 2**size <= count else draws.integers(0, 2**size, count)
        new = (codes[:, None] >> np.arange(size)) & 1
        replies: Bits = np.repeat(self.bits[None], len(codes), axis=0)
        replies[:, list(places)] = silenced(new.reshape(len(codes), len(places), each))
        return replies


def silenced(said: Bits) -> Bits:
    """Replies of which those that do not answer say nothing."""
    return said * said[..., -1:]


def places_of(sources: int, size: int, draws: np.random.Generator, most: int) -> list[tuple[int, ...]]:
    """`size` sources, at most so many choices."""
    found = {tuple(sorted(map(int, draws.permutation(sources)[:size]))): None for _ in range(4 * most)}
    return [places for places in found if places][:most]
