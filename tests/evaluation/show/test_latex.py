"""LaTeX that stands whatever names are in it."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.lines import summary_table
from robustrag_integrations.evaluation.show.tables import Table, latex
from tests.evaluation.rows import PIA, certificate, row

HOSTILE = [
    r"\input{/etc/passwd}",
    r"\end{tabular}\write18{rm}",
    "100% & more \\\\ \\hline",
    "$x^2_3$ # ~ {a}",
    "[2em] *",
    "a | b || c",
    "[x](javascript:alert(1)) ![y](http://evil.example/p.png)",
    "<img src=x onerror=alert(1)> <script>",
    "`code` **bold** _it_ ~~no~~",
    "www.evil.example http://evil.example a@evil.example",
    "line\nbreak\r\n| new | row |",
    "\x1b[31mred\u202e",
    "中文 ñ ő α 😀",
    "",
    "--",
]
CONTROL = re.compile(
    r"\\(?:[&%$#_{}]|text[a-z]+\{\}|char34\{\}|ldots\{\}|times|le|ge|alpha|beta|eta"
    r"|(?:begin|end)\{(?:table|tabular)\}(?:\{[lr]+\})?|centering|caption|toprule|midrule|bottomrule|par|smallskip|footnotesize|\\$)"
)


def table_of(cells: list[str]) -> Table:
    return Table(cells[0], ["name", "value"], [[cell, "1.0"] for cell in cells], 1, [cells[-1]])


def check_latex(text: str, rows: int) -> None:
    """Every backslash is one of ours, braces match, and every row has one separator."""
    lines = text.splitlines()
    assert len([line for line in lines if line.endswith(r" \\")]) == rows
    for line in lines[1:]:
        rest = CONTROL.sub(" ", line)
        assert "\\" not in rest, line
        assert not set("%#~^\x1b\u202e") & set(rest), line
        assert not re.match(r" *[\[*]", rest), line
        depth = 0
        for character in re.sub(r"\\[{}]", "", line):
            depth += (character == "{") - (character == "}")
            assert depth >= 0, line
        assert depth == 0, line
        assert rest.count("$") % 2 == 0
        assert all(c.isascii() or 0xC0 <= ord(c) <= 0x17F for c in line), line
    for line in lines:
        if line.endswith(r" \\"):
            assert len(re.findall(r"(?<!\\)&", line)) == 1


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
@example(HOSTILE)
def test_any_names_are_text(names: list[str]) -> None:
    check_latex(latex([table_of(names)]), 1 + len(names))


def test_plain_names_stay_readable() -> None:
    found = Table("Accuracy", ["setup", "bacc"], [["keyword alpha=0.2", "50.0 [20, 80]"], ["no", "--"]])
    assert r"keyword alpha=0.2 & 50.0 {[}20, 80{]} \\" in latex([found])
    assert r"no & -- \\" in latex([found])
    assert r"\begin{tabular}{lr}" in latex([found])


def test_the_summary_is_exported_with_what_all_lines_share_and_its_remarks() -> None:
    rows: list[dict[str, Any]] = [row(i, certificates=[certificate(1.0)], model="a_b") for i in range(4)]
    rows += [row(i, attack=PIA, model="a_b", scores={"hijacked": i < 2}) for i in range(4)]
    found = summary_table(summarise(rows))
    assert found is not None
    assert found.title == "data: demo (qa), model: a_b, top k: 10"
    assert r"a\_b" in latex([found])
    assert r"certified: against k\textquotesingle{}" in latex([found])
    assert summary_table([]) is None
