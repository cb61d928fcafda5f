"""Figures as SVG files: the drawings of `charts`, with title, legend and style in one picture."""

from __future__ import annotations

import os
import tempfile
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from robustrag_integrations.drawing import charts
from robustrag_integrations.drawing.elements import Element, h, to_html
from robustrag_integrations.drawing.text import one_line

_IN_A_ROW, _BETWEEN, _MARGIN = 3, 24, 16
_LINE, _LETTER = 17, 7.2  # the height of a line, and the widest that a letter is on average
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#14191d}.head{font-weight:600}.about{fill:#55616b}"
    ".tick{font-size:10.5px;fill:#55616b}.grid{stroke:#cfd7dc;stroke-width:.7}.base{stroke:#55616b}"
    ".curve{fill:none;stroke:currentColor;stroke-width:1.6}.point{fill:currentColor}"
    ".interval{stroke:currentColor;stroke-width:1.2;opacity:.55}"
) + "".join(f".series-{number}{{color:{colour}}}" for number, colour in enumerate(charts.COLOURS))


def save_figure(figure: charts.Figure, path: str | Path) -> Path:
    """Draw a figure to an SVG file, atomically; the same data give the same bytes.

    Args:
        figure: what to draw.
        path: the file; what was there is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    write_at_once(path, figure_svg(figure))
    return Path(path)


def figure_svg(figure: charts.Figure) -> str:
    """Return a figure as SVG: its title above, panels of the same axes, and its legend below."""
    columns = min(len(figure.panels), _IN_A_ROW)
    width = 2 * _MARGIN + columns * charts.WIDTH + (columns - 1) * _BETWEEN
    letters = int((width - 2 * _MARGIN) / _LETTER)
    parts: list[Element] = []
    y = _MARGIN
    for text, look in ((figure.title, "head"), (charts.axes_in_words(figure), ""), (figure.about, "about")):
        y = _text(parts, text, _MARGIN, y, letters, look)
    for start in range(0, len(figure.panels), columns):
        row, below = figure.panels[start : start + columns], y + _LINE
        places = [_MARGIN + i * (charts.WIDTH + _BETWEEN) for i in range(len(row))]
        room = int(charts.WIDTH / _LETTER)
        y = max(_text(parts, panel.title, x, below, room, "head") for x, panel in zip(places, row, strict=True))
        for x, panel in zip(places, row, strict=True):
            size = {"x": str(x), "y": str(y), "width": str(charts.WIDTH), "height": str(charts.HEIGHT)}
            drawing = charts.panel_drawing(panel, figure)
            parts.append(replace(drawing, attributes={**drawing.attributes, **size}))
        y += charts.HEIGHT
    x = _MARGIN
    for label, number in figure.looks.items():
        text = one_line(label, letters - 4)
        wide = int(24 + len(text) * _LETTER)
        if x > _MARGIN and x + wide > width - _MARGIN:
            x, y = _MARGIN, y + _LINE
        key = charts.key(number)
        parts.append(replace(key, attributes={**key.attributes, "x": str(x), "y": str(y + 5)}))
        parts.append(h("text", text, x=x + 18, y=y + 15))
        x += wide + _BETWEEN // 2
    height = y + _LINE + _MARGIN
    paper = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return f"{head}<style>{_STYLE}</style>{paper}{''.join(map(to_html, parts))}</svg>\n"


def write_at_once(path: str | Path, text: str) -> None:
    """Write a file atomically, with the permissions of the umask.

    Raises:
        OSError: it cannot be written; a file that was there is as it was.
    """
    target, draft = Path(path), None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            draft = file.name
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, target)
    except OSError:
        if draft is not None:
            with suppress(OSError):
                os.unlink(draft)
        raise


def _text(parts: list[Element], text: str, x: int, y: int, letters: int, look: str) -> int:
    """Add a text in up to four lines of this many letters, and return the position below it."""
    lines: Sequence[str] = textwrap.wrap(one_line(text, 4 * letters), letters)[:4]
    for number, line in enumerate(lines, 1):
        parts.append(h("text", line, x=x, y=y + number * _LINE - 4, cls=look))
    return y + len(lines) * _LINE


def _umask() -> int:
    """Return the umask of this process; the only way to read it is to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
