"""Cells on dark notebooks: words have the notebook's colour, marks can be seen on black and on white."""

from __future__ import annotations

import re

from robustrag_integrations.drawing.notebook import INLINE

PAPERS = ((1.0, 1.0, 1.0), (0.067, 0.067, 0.067))  # white, and what dark notebooks have: #111


def luminance(rgb: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, paper: tuple[float, ...]) -> float:
    low, high = sorted((luminance(tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))), luminance(paper)))
    return (high + 0.05) / (low + 0.05)


def test_no_words_have_a_colour_of_their_own_and_no_cell_a_solid_background() -> None:
    for name, style in INLINE.items():
        for key, value in re.findall(r"(?<![-\w])(color|background(?:-color)?):([^;]+)", style):
            assert value.startswith(("inherit", "none", "rgba(", "linear-gradient(")) or name in MARKS, (
                name,
                key,
                value,
            )
            assert key != "color" or value == "inherit", name


MARKS = {"supports"}


def test_marks_can_be_seen_on_white_and_on_black() -> None:
    for colour in re.findall(r"#[0-9a-f]{6}", " ".join(INLINE.values())):
        assert min(contrast(colour, paper) for paper in PAPERS) >= 2.8, colour
