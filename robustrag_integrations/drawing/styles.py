"""Colours and marks of curves and bars: a defence has its colour in every figure of every run."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

COLOURS = (
    "#c23b22", "#0f7a68", "#3f74c4", "#b27a12", "#8d58ad", "#5c7080",
    "#2f97b3", "#a6567a", "#6f8c1f", "#7a5230", "#d0679d", "#4a4e9c",
)  # fmt: skip
"""On white paper; the page's style sheet has the same, and their like for dark screens."""

_OWN = (
    *("vanilla", "keyword", "decoding", "voting", "consensus", "no-rag"),
    *("mis", "mis-sampling", "radar", "trustrag", "instruction", "detector"),
)


@dataclass(frozen=True)
class Style:
    """What a curve looks like.

    Attributes:
        colour: a number below `len(COLOURS)`: what it is of, a defence.
        variant: from 0, among those of one colour: the defence's settings. It chooses the mark, the line and the shade.
    """

    colour: int
    variant: int = 0


def colour_of(name: str) -> int:
    """The number of the colour of a defence, the same in every run; that of an unknown name follows from it."""
    if name in _OWN:
        return _OWN.index(name)
    return zlib.crc32(name.encode("utf-8", "replace")) % len(COLOURS)


def styles_of(labels: Iterable[tuple[str, str]], known: Mapping[str, Style] | None = None) -> dict[str, Style]:
    """A style per label.

    Args:
        labels: labels of curves, each with what it is of. Labels of one colour get variants in this order.
        known: the styles of labels that have one.
    """
    found: dict[str, Style] = {}
    known = known or {}
    for label, of in labels:
        if label in known:
            found[label] = known[label]
        elif label not in found:
            colour = colour_of(of)
            taken = {s.variant for s in (*known.values(), *found.values()) if s.colour == colour}
            found[label] = Style(colour, next(i for i in range(len(taken) + 1) if i not in taken))
    return found
