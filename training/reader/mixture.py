"""The mixture of training rows, cut into chunks that depend on nothing but the seed and their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from training.reader.crowds import Attack, crowd_row
from training.reader.names import Namer
from training.reader.rows import Branch, Row, closed_row, keyword_row, long_row, reading_row

ROWS_PER_CHUNK = 400
SMALL_CROWDS_FROM = 25
LARGE_CROWDS_FROM = 60
SPELLED_OPTIONS_FROM = 70
HARDER_FROM = 83
WRITTEN_FROM = 254
MORE_WILD = 0.2

_LATE_ATTACKS: tuple[Attack, ...] = ("none", "injection", "injection", "poison", "poison", "poison")
_POISON_ATTACKS: tuple[Attack, ...] = ("none", "injection", "poison", "poison", "poison", "poison")

Maker = Callable[[Namer], Row]


@dataclass(frozen=True)
class Phase:
    """A stretch of training.

    Attributes:
        first: the number of its first chunk.
        rows: kinds of rows, each with the share of all rows that it and those before it have.
        rest: what the other rows are.
    """

    first: int
    rows: tuple[tuple[float, Maker], ...]
    rest: Maker


def _tempting_keywords(namer: Namer, written: float = 0.0) -> Row:
    return keyword_row(replace(namer, wild=0.4), tempting=0.6, written=written)


_written_keywords = partial(_tempting_keywords, written=0.7)
_written_long = partial(long_row, written=0.6)


_small = partial(crowd_row, large=False)
_large = partial(crowd_row, large=True)
_large_poisoned = partial(_large, attacks=_POISON_ATTACKS, smallest=8)
_early = ((0.08, keyword_row), (0.10, closed_row))
_early_small = (*_early, (0.13, long_row), (0.30, _small))
_late = ((0.14, keyword_row), (0.15, closed_row), (0.18, long_row), (0.30, _small))

# What needs a single passage to be read comes once that has been learned.
PHASES = (
    Phase(0, _early, partial(reading_row, choice=0.2)),
    Phase(SMALL_CROWDS_FROM, _early_small, partial(reading_row, choice=0.2)),
    Phase(26, _early_small, partial(reading_row, choice=0.35)),
    Phase(LARGE_CROWDS_FROM, (*_early_small, (0.37, _large)), partial(reading_row, choice=0.35)),
    # More of what is learned last: crowds of passages, and lower-case copies.
    Phase(
        HARDER_FROM,
        ((0.14, keyword_row), (0.16, closed_row), (0.19, long_row), (0.34, _small), (0.47, _large)),
        partial(reading_row, choice=0.35),
    ),
    # Many attacked crowds: to obey a loud minority is what is learned last of all.
    Phase(101, (*_late, (0.54, partial(_large, attacks=_LATE_ATTACKS))), partial(reading_row, choice=0.3)),
    Phase(112, (*_late, (0.64, partial(_large, attacks=_POISON_ATTACKS))), partial(reading_row, choice=0.3)),
    # The polish, more than half of training, with enough of the rest that nothing is forgotten.
    Phase(
        124,
        ((0.45, _tempting_keywords), (0.78, _large_poisoned), (0.79, closed_row), (0.81, long_row), (0.84, _small)),
        partial(reading_row, choice=0.3),
    ),
    # The polish shows few instructions; at the very end come many, so that a user's own wording is understood.
    Phase(
        242,
        ((0.2, _tempting_keywords), (0.4, _large_poisoned)),
        partial(reading_row, choice=0.25, varied=True),
    ),
    # Lists of keywords as they were written, next to everything else so that nothing is forgotten.
    Phase(
        WRITTEN_FROM,
        ((0.3, _written_keywords), (0.5, _large_poisoned), (0.52, closed_row), (0.55, _written_long), (0.59, _small)),
        partial(reading_row, choice=0.25, varied=True),
    ),
)


def training_row(namer: Namer, number: int) -> Row:
    """A random row of chunk `number`."""
    phase = next(p for p in reversed(PHASES) if number >= p.first)
    pick = namer.random.random()
    make = next((make for share, make in phase.rows if pick < share), phase.rest)
    return make(namer)


def chunk(seed: int, number: int, rows: int = ROWS_PER_CHUNK) -> list[Row]:
    """The rows of a chunk; the same arguments give the same rows."""
    namer = Namer(Random(f"{seed}/{number}"), wild=MORE_WILD if number >= HARDER_FROM else Namer.wild)
    made = [training_row(namer, number) for _ in range(rows)]
    if number < SPELLED_OPTIONS_FROM:
        return made
    return [Row(row.prefix, [spelled(branch) for branch in row.branches]) for row in made]


def spelled(branch: Branch) -> Branch:
    """A multiple-choice branch that answers with the option's words instead of its letter.

    `parse_option` takes either, and copying words is what a small model learns; after 60 chunks it had not learned to
    give letters. An injected letter stays the answer to its injection.
    """
    if "choice" not in branch.task or branch.task == "crowd_choice_letter":
        return branch
    [line] = [line for line in branch.tail.split("\n") if line.startswith(f"{branch.answer}. ")]
    return replace(branch, answer=line.partition(". ")[2])
