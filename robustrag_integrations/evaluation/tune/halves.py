"""Two halves of a set of questions: one to choose with, one that is held out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

LEAST = 4  # questions


@dataclass(frozen=True)
class Halves:
    """The questions that choose and the held-out ones, by their normalised texts; no question is in both."""

    choosing: frozenset[str]
    held_out: frozenset[str]


def halves_of(questions: Iterable[str], seed: int) -> Halves:
    """Split questions by a hash of their text, so that order, ids and copies of a question change nothing.

    Args:
        questions: their texts; of several that say the same, one counts.
        seed: another one splits otherwise.

    Raises:
        ValueError: fewer than 4 questions.
    """
    known = {text_key(question) for question in questions}
    if len(known) < LEAST:
        raise ValueError(
            f"{len(known)} questions are too few to choose settings with: half of them choose and half are held out; "
            f"give at least {LEAST}, better a hundred"
        )
    ordered = sorted(known, key=lambda text: hashlib.sha256(f"{seed}\0{text}".encode()).digest())
    middle = -(-len(ordered) // 2)
    return Halves(frozenset(ordered[:middle]), frozenset(ordered[middle:]))


def text_key(question: str) -> str:
    """A question's text without case and whitespace that mean nothing."""
    return " ".join(question.casefold().split())
