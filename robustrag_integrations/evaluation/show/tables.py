"""Wide tables on narrow terminals: columns that do not fit follow below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robustrag_integrations._util.display import printable, table

_LONGEST_CELL = 48
_BETWEEN = 2  # columns


@dataclass(frozen=True)
class Table:
    """A table to be shown as text, Markdown, LaTeX or HTML.

    Attributes:
        title: its caption; may be empty.
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
        width: of the terminal, in characters: columns that do not fit follow in a second table. None for one table
            however wide.
        limit: characters of a cell.
    """
    about = list(range(keys))
    parts: list[list[int]] = [[]]
    for i in range(keys, len(header)):
        if width is not None and parts[-1] and _width(header, rows, [*about, *parts[-1], i], limit) > width:
            parts.append([])
        parts[-1].append(i)
    return "\n\n".join(_part(header, rows, [*about, *part], limit) for part in parts)


def _part(header: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], limit: int) -> str:
    cells = [tuple(row[i] for i in columns) for row in rows]
    return table(tuple(header[i] for i in columns), cells, limits=(limit,) * len(columns))


def _width(header: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], limit: int) -> int:
    widths = [max(len(printable(row[i], limit)) for row in (header, *rows)) for i in columns]
    return sum(widths) + _BETWEEN * (len(widths) - 1)
