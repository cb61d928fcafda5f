"""Wide tables on narrow terminals: columns equal on all lines go above the table, those that do not fit below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robustrag_integrations._util.display import printable, table

_LONGEST_CELL = 48
_BETWEEN = 2  # columns
_NOTHING = frozenset({"", "-", "--"})


@dataclass(frozen=True)
class Table:
    """A table to be shown as text, Markdown, LaTeX or HTML.

    Attributes:
        title: what it shows; may be empty.
        header: the columns' names.
        rows: as many cells each; what data says is in them as it is, and made harmless where it is shown.
        keys: number of columns that say what a row is about.
        notes: remarks below it.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1
    notes: Sequence[str] = ()


def text_table(shown: Table, width: int | None = None) -> str:
    """The table for a terminal of this width; None for any."""
    parts = [printable(shown.title, 200)] if shown.title else []
    parts.append(fitted_table(shown.header, shown.rows, keys=shown.keys, width=width))
    return "\n\n".join(parts + (["\n".join(printable(note, 500) for note in shown.notes)] if shown.notes else []))


def fitted_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int, width: int | None, limit: int = _LONGEST_CELL
) -> str:
    """A table that is no wider than the terminal, as far as single columns allow.

    Args:
        header: the columns' names.
        rows: as many cells each.
        keys: number of columns that say what a row is about; every part repeats them.
        width: of the terminal, in characters; None for one table however wide. A part leaves out rows of which it would
            say nothing.
        limit: characters of a cell.
    """
    if width is None or _width(header, rows, range(len(header)), limit) <= width:
        return _part(header, rows, range(len(header)), limit)
    same = [i for i in range(len(header)) if len(rows) > 1 and len({row[i] for row in rows}) == 1]
    if not [i for i in range(keys, len(header)) if i not in same]:  # a table has columns, be they all alike
        same = [i for i in same if i < keys]
    rest = [i for i in range(len(header)) if i not in same]
    about = [i for i in rest if i < keys]
    parts: list[list[int]] = [[]]
    for i in rest[len(about) :]:
        if parts[-1] and _width(header, rows, [*about, *parts[-1], i], limit) > width:
            parts.append([])
        parts[-1].append(i)
    silent = [row for row in rows if not any(_says(row, part) for part in parts)]  # stand in the first part
    shown = [
        _part(header, [row for row in rows if _says(row, part) or (part is parts[0] and row in silent)],
              [*about, *part], limit)
        for part in parts
    ]  # fmt: skip
    return "\n\n".join([*([_said(header, rows[0], same, width)] if same else []), *shown])


def _says(row: Sequence[str], columns: Sequence[int]) -> bool:
    return any(row[i] not in _NOTHING for i in columns)


def _said(header: Sequence[str], row: Sequence[str], columns: Sequence[int], width: int) -> str:
    """The columns that are the same everywhere, in lines of names and values."""
    lines = ["on all lines:"]
    for i in columns:
        end = "" if i == columns[-1] else ";"
        pair = f" {printable(header[i], _LONGEST_CELL)} {printable(row[i], _LONGEST_CELL)}{end}"
        if len(lines[-1]) + len(pair) > width:
            lines.append(" ")
        lines[-1] += pair
    return "\n".join(lines)


def _part(header: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], limit: int) -> str:
    cells = [tuple(row[i] for i in columns) for row in rows]
    return table(tuple(header[i] for i in columns), cells, limits=(limit,) * len(columns))


def _width(header: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], limit: int) -> int:
    widths = [max(len(printable(row[i], limit)) for row in (header, *rows)) for i in columns]
    return sum(widths) + _BETWEEN * (len(widths) - 1)
