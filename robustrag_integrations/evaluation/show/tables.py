"""A table as text for a terminal and as LaTeX (booktabs). Names come from data and are hostile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robustrag_integrations._util.display import printable, table

_LONGEST_CELL = 48
_BETWEEN = 2  # columns
_LONGEST_LATEX = 200
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}", '"': r"\char34{}"},
    **{"[": "{[}", "]": "{]}", "*": "{*}", "'": r"\textquotesingle{}", "-": "{-}"},
    **{"…": r"\ldots{}", "–": "--", "—": "---", "·": r"\textperiodcentered{}", "×": r"$\times$", "′": "$'$"},
    **{"’": "'", "‘": "`", "≤": r"$\le$", "≥": r"$\ge$", "α": r"$\alpha$", "β": r"$\beta$", "η": r"$\eta$"},
}
_NOTHING = ("--", "-")


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


def fitted_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int, width: int | None) -> str:
    """A table that is no wider than the terminal, as far as single columns allow.

    Args:
        header: the columns' names.
        rows: as many cells each.
        keys: number of columns that say what a row is about; every part repeats them.
        width: of the terminal, in characters: columns that do not fit follow in a second table. None for one table
            however wide.
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(len(printable(cell, _LONGEST_CELL)) for cell in column) + _BETWEEN for column in columns]
    parts: list[list[int]] = [[]]
    for i in range(keys, len(header)):
        if width is not None and parts[-1] and sum(widths[j] for j in (*range(keys), *parts[-1], i)) - _BETWEEN > width:
            parts.append([])
        parts[-1].append(i)
    return "\n\n".join(_part([columns[i] for i in (*range(keys), *part)]) for part in parts)


def _part(columns: Sequence[Sequence[str]]) -> str:
    header, *rows = zip(*columns, strict=True)
    return table(header, rows, limits=(_LONGEST_CELL,) * len(columns))


def latex(tables: Iterable[Table]) -> str:
    """The tables as LaTeX that needs `booktabs` and `textcomp`, and can be compiled whatever is in their cells.

    Characters outside of Latin are written as their code points, `[U+4E2D]`, which every engine can set.
    """
    parts = ["% needs \\usepackage{booktabs,textcomp}", *map(_latex_table, tables)]
    return "\n\n".join(parts) + "\n"


def _latex_table(shown: Table) -> str:
    keys = min(shown.keys, len(shown.header))
    lines = [
        r"\begin{table}",
        r"\centering",
        *([rf"\caption{{{_latex_text(shown.title)}}}"] if shown.title else []),
        rf"\begin{{tabular}}{{{'l' * keys}{'r' * (len(shown.header) - keys)}}}",
        r"\toprule",
        _latex_row(shown.header),
        r"\midrule",
        *map(_latex_row, shown.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip {{\footnotesize {_latex_text(note, 600)}}}" for note in shown.notes),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex_text, cells)) + r" \\"


def _latex_text(text: str, limit: int = _LONGEST_LATEX) -> str:
    if text in _NOTHING:
        return "--"
    return "".join(map(_latex_character, printable(text, limit)))


def _latex_character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    known = character.isascii() or 0xC0 <= ord(character) <= 0x17F  # letters with accents
    return character if known else f"{{[}}U+{ord(character):04X}{{]}}"
