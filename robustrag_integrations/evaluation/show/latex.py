"""Tables for papers: LaTeX (booktabs). Names come from data and are hostile: all are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations.evaluation.show.tables import Table

_LONGEST_CELL = 200
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}", '"': r"\char34{}"},
    **{"[": "{[}", "]": "{]}", "*": "{*}", "'": r"\textquotesingle{}", "-": "{-}"},
    **{"…": r"\ldots{}", "–": "--", "—": "---", "·": r"\textperiodcentered{}", "×": r"$\times$", "′": "$'$"},
    **{"’": "'", "‘": "`", "≤": r"$\le$", "≥": r"$\ge$", "α": r"$\alpha$", "β": r"$\beta$", "η": r"$\eta$"},
}
_NOTHING = ("--", "-")


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


def _latex_text(text: str, limit: int = _LONGEST_CELL) -> str:
    if text in _NOTHING:
        return "--"
    return "".join(map(_latex_character, printable(text, limit)))


def _latex_character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    known = character.isascii() or 0xC0 <= ord(character) <= 0x17F  # letters with accents
    return character if known else f"{{[}}U+{ord(character):04X}{{]}}"
