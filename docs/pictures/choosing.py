"""Which method when, as a tree of three questions; each answer names a registered method."""

from __future__ import annotations

from typing import Any

from docs.pictures.canvas import drawing, rectangle, words
from robustrag_integrations.drawing.elements import Element, h

_WIDTH, _STEP, _BOX = 760, 92, 56
_ASKED, _TAKEN = 24, 430  # where questions and methods stand
_BROAD, _METHOD = 300, 306  # how broad their boxes are
_STYLE = """
text{font:14px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:var(--ink)}
.paper{fill:var(--paper);stroke:var(--line);rx:8px}
.question{fill:none;stroke:var(--faint);rx:6px}
.method{fill:var(--good-paper);stroke:var(--good);rx:6px}
.name{font-weight:700;fill:var(--good)}
.way{stroke:var(--faint);stroke-width:1.5}
.small{font-size:13px;fill:var(--faint)}
"""


def decisions() -> dict[str, Any]:
    """The questions in turn, each with the method that its yes leads to, and the method that is left."""
    return {
        "questions": [
            ["Are there options to choose from?", "voting", "the option with most votes; one round"],
            ["Is the answer long?", "keyword, decoding", "phrases, or tokens of a local model"],
            ["Must a model word the final answer?", "keyword", "a second round, in your format"],
        ],
        "else": ["consensus", "what most of them agree on; one round"],
    }


def choosing(tree: dict[str, Any]) -> str:
    """The picture of `decisions`."""
    rows, (last, why) = tree["questions"], tree["else"]
    height = 48 + _STEP * len(rows) + _BOX
    parts = [rectangle(0.5, 0.5, _WIDTH - 1, height - 1, "paper")]
    for number, (question, method, reason) in enumerate(rows):
        y = 24 + number * _STEP
        parts += [
            rectangle(_ASKED, y, _BROAD, _BOX, "question"),
            words(_ASKED + 16, y + 33, question, "", 40),
            _way(_ASKED + _BROAD, y + _BOX / 2, _TAKEN, y + _BOX / 2),
            words(_ASKED + _BROAD + 40, y + _BOX / 2 - 6, "yes", "small"),
            *_method(_TAKEN, y, method, reason),
            _way(_ASKED + _BROAD / 2, y + _BOX, _ASKED + _BROAD / 2, y + _STEP),
            words(_ASKED + _BROAD / 2 + 8, y + _BOX + 23, "no", "small"),
        ]
    parts += _method(_ASKED, 24 + len(rows) * _STEP, last, why)
    steps = [f"{question} Yes: {method} ({reason})." for question, method, reason in rows]
    return drawing(_WIDTH, height, " No: ".join([*steps, f"{last} ({why})."]), _STYLE, parts)


def _method(x: float, y: float, name: str, why: str) -> list[Element]:
    return [
        rectangle(x, y, _METHOD, _BOX, "method"),
        words(x + 16, y + 24, name, "name", 40),
        words(x + 16, y + 43, why, "small", 50),
    ]


def _way(x1: float, y1: float, x2: float, y2: float) -> Element:
    return h("line", cls="way", x1=x1, y1=y1, x2=x2, y2=y2)
