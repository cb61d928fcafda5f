"""The mixture of training rows, cut into chunks that depend on nothing but the seed and their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from training.reader.crowds import Attack, crowd_row
from training.reader.names import Namer
from training.reader.rows import Branch, Row, closed_row, keyword_row, long_row, reading_row

ROWS_PER_CHUNK = 400
SMALL_CROWDS_FROM = 25
LARGE_CROWDS_FROM = 60
MORE_CHOICE_FROM = 26
SPELLED_OPTIONS_FROM = 70
HARDER_FROM = 83
MORE_WILD = 0.2
LAST_FROM = 101
LAST_ATTACKS: tuple[Attack, ...] = ("none", "injection", "injection", "poison", "poison", "poison")
POLISH_FROM = 124
POLISH_ATTACKS: tuple[Attack, ...] = ("none", "injection", "poison", "poison", "poison", "poison")
WILD_KEYWORDS = 0.4
FINISH_FROM = 242
POISON_FROM = 112
POISON_ATTACKS: tuple[Attack, ...] = ("none", "injection", "poison", "poison", "poison", "poison")


def training_row(namer: Namer, number: int) -> Row:
    """A random row of chunk `number`: what needs a single passage to be read comes once that has been learned."""
    pick = namer.random.random()
    if number >= FINISH_FROM:
        return _finish_row(namer, pick)
    if number >= POLISH_FROM:
        return _polish_row(namer, pick)
    if number >= POISON_FROM:
        return _last_row(namer, pick, crowds=0.64, attacks=POISON_ATTACKS)
    if number >= LAST_FROM:
        return _last_row(namer, pick, crowds=0.54, attacks=LAST_ATTACKS)
    if number >= HARDER_FROM:
        return _harder_row(namer, pick)
    if pick < 0.08:
        return keyword_row(namer)
    if pick < 0.10:
        return closed_row(namer)
    if pick < 0.13 and number >= SMALL_CROWDS_FROM:
        return long_row(namer)
    if pick < 0.30 and number >= SMALL_CROWDS_FROM:
        return crowd_row(namer, large=False)
    if pick < 0.37 and number >= LARGE_CROWDS_FROM:
        return crowd_row(namer, large=True)
    return reading_row(namer, choice=0.2 if number < MORE_CHOICE_FROM else 0.35)


def _polish_row(namer: Namer, pick: float) -> Row:
    """More than half of training: what is learned last, with enough of the rest that nothing is forgotten."""
    if pick < 0.45:
        return keyword_row(replace(namer, wild=WILD_KEYWORDS), tempting=0.6)
    if pick < 0.78:
        return crowd_row(namer, large=True, attacks=POLISH_ATTACKS, smallest=8)
    if pick < 0.79:
        return closed_row(namer)
    if pick < 0.81:
        return long_row(namer)
    if pick < 0.84:
        return crowd_row(namer, large=False)
    return reading_row(namer, choice=0.3)


def _finish_row(namer: Namer, pick: float) -> Row:
    """The polish shows few instructions; at the very end come many, so that a user's own wording is understood."""
    if pick < 0.2:
        return keyword_row(replace(namer, wild=WILD_KEYWORDS), tempting=0.6)
    if pick < 0.4:
        return crowd_row(namer, large=True, attacks=POLISH_ATTACKS, smallest=8)
    return reading_row(namer, choice=0.25, varied=True)


def _last_row(namer: Namer, pick: float, crowds: float, attacks: Sequence[Attack]) -> Row:
    """At the very end, many attacked crowds: to obey a loud minority is what is learned last of all."""
    if pick < 0.14:
        return keyword_row(namer)
    if pick < 0.15:
        return closed_row(namer)
    if pick < 0.18:
        return long_row(namer)
    if pick < 0.30:
        return crowd_row(namer, large=False)
    if pick < crowds:
        return crowd_row(namer, large=True, attacks=attacks)
    return reading_row(namer, choice=0.3)


def _harder_row(namer: Namer, pick: float) -> Row:
    """The last part of training has more of what is learned last: crowds of passages, and lower-case copies."""
    if pick < 0.14:
        return keyword_row(namer)
    if pick < 0.16:
        return closed_row(namer)
    if pick < 0.19:
        return long_row(namer)
    if pick < 0.34:
        return crowd_row(namer, large=False)
    if pick < 0.47:
        return crowd_row(namer, large=True)
    return reading_row(namer, choice=0.35)


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
