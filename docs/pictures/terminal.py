"""A recorded terminal as an animated SVG: lines appear when they did, long waits are cut short."""

from __future__ import annotations

import textwrap
from typing import Any

from docs.pictures.canvas import drawing, rectangle, words
from docs.pictures.record import ROWS
from robustrag_integrations.display import printable
from robustrag_integrations.drawing.elements import h

_LINE, _CHARACTER, _MARGIN = 17, 7.3, 16
_LONGEST, _HOLD = 0.7, 9.0  # seconds: a wait that is shown, and the end before it begins again
_STYLE = """
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6deeb}
.screen{fill:#0b1620;stroke:#3d444d;rx:8px}
.typed{fill:#7ee787}
.bad{fill:#ffa198}
.faint{fill:#8b98a5}
"""


def terminal(run: dict[str, Any]) -> str:
    """The picture of a recorded run (`record_terminal`)."""
    lines = [(0.4, "typed", f"$ {printable(run['command'])}")]
    clock = lines[0][0]
    before = 0.0
    for at, text in run["lines"]:
        clock += min(max(at - before, 0.04), _LONGEST)
        before = at
        lines += [(clock, _tone(text), part) for part in _wrapped(text, run["columns"])]
    whole = clock + _HOLD
    width = round(run["columns"] * _CHARACTER + 2 * _MARGIN)
    height = ROWS * _LINE + 2 * _MARGIN
    sheet = [_STYLE, f".line{{animation:{whole:.2f}s step-end infinite}}"]
    moves = ["0%{transform:translateY(0)}"]
    shown = []
    for number, (at, tone, text) in enumerate(lines):
        percent = 100 * at / whole
        sheet.append(f".l{number}{{animation-name:l{number}}}")
        sheet.append(f"@keyframes l{number}{{0%{{opacity:0}}{percent:.3f}%,to{{opacity:1}}}}")
        if number >= ROWS:
            moves.append(f"{percent:.3f}%{{transform:translateY(-{(number - ROWS + 1) * _LINE}px)}}")
        shown.append(words(_MARGIN, _MARGIN + 12 + number * _LINE, text, f"line l{number} {tone}".rstrip()))
    scrolled = max(0, len(lines) - ROWS) * _LINE
    sheet.append(f"@keyframes scroll{{{''.join(moves)}to{{transform:translateY(-{scrolled}px)}}}}")
    sheet.append(f".lines{{animation:scroll {whole:.2f}s step-end infinite}}")
    still = f".lines,.line{{animation:none}}.lines{{transform:translateY(-{scrolled}px)}}"
    sheet.append(f"@media (prefers-reduced-motion:reduce){{{still}}}")
    window = h("svg", h("g", *shown, cls="lines"), x=0, y=0, width=width, height=height - _MARGIN + 4)
    parts = [rectangle(0.5, 0.5, width - 1, height - 1, "screen"), window]
    return drawing(width, height, f"A terminal in which {run['command']} runs", "".join(sheet), parts)


def _wrapped(text: str, columns: int) -> list[str]:
    """The line in pieces that fit."""
    return textwrap.wrap(printable(text), columns, subsequent_indent="    ", drop_whitespace=False) or [""]


def _tone(text: str) -> str:
    if text.startswith("["):
        return "faint"
    return "bad" if "HIJACKED" in text else ""
