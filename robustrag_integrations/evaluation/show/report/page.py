"""The page as a whole: what is on it, in what order, and how much of it there is room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from robustrag_integrations.checks import is_whole_number
from robustrag_integrations.drawing.answer import Limits
from robustrag_integrations.drawing.elements import ATTRIBUTES, DRAWN, TAGS, Element, h, to_data, to_html
from robustrag_integrations.drawing.files import write_at_once
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.paired import compare
from robustrag_integrations.evaluation.score.planned import missing_rows
from robustrag_integrations.evaluation.score.presence import answer_presence
from robustrag_integrations.evaluation.score.run_file import Run
from robustrag_integrations.evaluation.score.summary import Line, summarise
from robustrag_integrations.evaluation.show.beside import comparisons_table, presence_table
from robustrag_integrations.evaluation.show.lines import summary_tables
from robustrag_integrations.evaluation.show.paper import LAYOUTS, layout_tables
from robustrag_integrations.evaluation.show.report.embedding import (
    BLOCK,
    SharedParts,
    data_element,
    data_script,
    filled,
    json_text,
    own_file,
    policy,
)
from robustrag_integrations.evaluation.show.report.listing import COLUMNS, details, legend, list_line
from robustrag_integrations.evaluation.show.report.outcomes import WORDS, attack_label, outcome
from robustrag_integrations.evaluation.show.report.overview import (
    Places,
    RunOverview,
    besides,
    figures,
    heading,
    overview,
)
from robustrag_integrations.evaluation.show.report.plain import PlainList, plain_list
from robustrag_integrations.evaluation.show.tables import Table
from robustrag_integrations.usage import Prices, prices_of

MEGABYTE = 1_000_000
_AT_A_TIME = 50  # rows on the screen
_PLAIN = 0.1  # of the page's size, for readers without scripts
_FILTERS = ("dataset", "model", "setup", "attack", "outcome")
_LABELS = ("Data set", "Model", "Setup", "Attack", "Outcome")


@dataclass(frozen=True)
class Size:
    """How large the page may become.

    Attributes:
        megabytes: of the list and its details together; what no longer fits is left out, and the page says so. A tenth
            of it is for readers without scripts, who see as many rows as fit.
        lines: rows in the list.
        limits: how much of each answer is shown.
    """

    megabytes: float = 40
    lines: int = 20_000
    limits: Limits = field(default_factory=Limits)


class ReportError(RobustRAGError):
    """The page cannot be written; the message says where and why."""


def write_report(run: Run, target: str | Path, *, size: Size | None = None) -> Path:
    """Write the page about a run, at once or not at all.

    Args:
        run: from `read_run`.
        target: the file; what was there is replaced.
        size: how large it may become.

    Raises:
        ReportError: the file cannot be written.
    """
    try:
        write_at_once(target, report_page(run, size=size))
    except OSError as error:
        raise ReportError(f"cannot write {str(target)!r}: {error.strerror}") from error
    return Path(target)


def report_page(run: Run, *, size: Size | None = None) -> str:
    """The page about a run, as HTML."""
    size = size or Size()
    rows = run.rows[: size.lines]
    places = Places.of(rows, _FILTERS, _filtered_by)
    findings = RunOverview(run.rows, _prices(run.header))
    plain = plain_list(rows, size.megabytes * MEGABYTE * _PLAIN, size.limits)
    data, shown = _data(rows, places, size, plain.size)
    style, script = own_file("style.css"), own_file("script.js")
    return filled(
        own_file("page.html"),
        {
            "policy": policy(script, style),
            "title": escape(f"{one_line(run.name, 80)}: robust answers"),
            "style": style,
            "script": script,
            "heading": _joined(heading(run, findings)),
            "overview": _joined([*overview(findings, places), *besides(_tables(run, findings.lines))]),
            "figures": _joined(
                [h("section", *drawn, cls="figures")] if (drawn := figures(findings, _seed(run.header))) else []
            ),
            "legend": to_html(legend()),
            "filters": "\n".join(_select(name, label, places) for name, label in zip(_FILTERS, _LABELS, strict=True)),
            "notice": _notice(len(run.rows), len(rows), shown, size, plain),
            "columns": "".join(f'<th scope="col">{escape(name)}</th>' for name in COLUMNS),
            "lines": "\n".join(plain.lines),
            "footer": _joined(_footer(run)),
            "data": data,
        },
    )


def _prices(header: Mapping[str, Any]) -> Prices | None:
    """The prices of a run; None where its file, which is not trusted, has none that make sense."""
    config = header.get("config")
    try:
        return prices_of(config.get("prices")) if isinstance(config, Mapping) else None
    except ValueError:
        return None


def run_tables(run: Run) -> list[Table]:
    """All tables of a run, for Markdown and LaTeX; below the first stands how many rows an unfinished run lacks."""
    lines = summarise(run.rows, _prices(run.header))
    found = [*summary_tables(lines), *_tables(run, lines)]
    if found and (lacking := sum(m.rows for m in missing_rows(run.header, run.rows))):
        found[0] = replace(found[0], notes=[f"Not finished, {lacking:,} rows are missing.", *found[0].notes])
    return found


def _tables(run: Run, lines: Sequence[Line]) -> list[Table]:
    """The table of the paper that the run was made for, how often answers stand in passages, and the paired tests."""
    config = run.header.get("config")
    layout = config.get("layout") if isinstance(config, Mapping) else None
    asked = layout_tables(layout, lines) if isinstance(layout, str) and layout in LAYOUTS and lines else []
    more = (presence_table(answer_presence(run.rows)), comparisons_table(compare(run.rows)))
    return [*asked, *(found for found in more if found is not None)]


def _seed(header: Mapping[str, Any]) -> int | None:
    """The seed of a run, where its file, which is not trusted, has one."""
    config = header.get("config")
    seed = config.get("seed") if isinstance(config, Mapping) else None
    return seed if is_whole_number(seed, 0, 999_999_999) else None


def _filtered_by(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["dataset"], row["model"], row["setup"], attack_label(row), WORDS[outcome(row)])


def _data(rows: Sequence[Mapping[str, Any]], places: Places, size: Size, taken: int) -> tuple[str, int]:
    """The data elements of the page, and how many rows have their details among them."""
    parts = SharedParts()
    lines = [{"f": places.of_row(row), "n": to_data(list_line(row), parts.number)} for row in rows]
    listed = json_text({"filters": _FILTERS, "lines": lines})
    left = size.megabytes * MEGABYTE - taken - len(listed)
    unfolded: list[str] = []
    for number, row in enumerate(rows):
        written = json_text(to_data(details(row, size.limits), parts.number))
        left -= len(written)
        if left < parts.size:
            break
        unfolded.append(data_element(f"row-{number}", written))
    settings = {
        "tags": sorted(TAGS),
        "svg": sorted(DRAWN),
        "attributes": sorted(ATTRIBUTES),
        "block": BLOCK,
        "page": _AT_A_TIME,
        "missing": to_data(
            h("p", "Left out to keep this page small; see the run's file.", cls="cut"), lambda part: part
        ),
    }
    elements = [data_script("settings", settings), data_element("lines", listed), *parts.scripts(), *unfolded]
    return "\n".join(elements), len(unfolded)


def _select(name: str, label: str, places: Places) -> str:
    """A filter's values to choose from; hidden where there is only one."""
    values = places.values[name]
    options = "".join(f'<option value="{i}">{escape(one_line(v, 80))}</option>' for i, v in enumerate(values))
    hidden = " hidden" if len(values) < 2 else ""
    return f'<label{hidden}>{label} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _notice(total: int, listed: int, shown: int, size: Size, plain: PlainList) -> str:
    """What is not on the page, with scripts and without."""
    said = []
    if listed < total:
        said.append(f"{total - listed:,} of {total:,} rows are not listed (the tables above count all of them).")
    if shown < listed:
        said.append(
            f"The details of {listed - shown:,} rows are left out: the page is limited to {size.megabytes:g} MB."
        )
    cut = "".join(f'<p class="cut">{escape(text)}</p>' for text in said)
    unscripted = f"Without scripts {len(plain.lines):,} of {listed:,} rows are listed, some of every setup and attack"
    complete = plain.unfolding == len(plain.lines)
    unscripted += (
        f", {'with their' if complete else f'{plain.unfolding:,} of them with'} details. Filters need scripts."
    )
    return f'{cut}<p class="cut" data-unscripted>{escape(unscripted)}</p>'


def _footer(run: Run) -> list[Element]:
    """What was wrong with the file, and what it was made with."""
    parts = []
    if run.torn:
        parts.append(h("p", "The last line is torn, as after a run that was stopped in mid-write. It is left out."))
    if run.bad:
        items = [h("li", f"line {b.number}: {one_line(b.reason, 200)}") for b in run.bad[:20]]
        more = len(run.bad) - len(items)
        last = h("li", f"and {more:,} more") if more else None
        parts += [h("p", f"Not rows, and left out: {len(run.bad):,}"), h("ul", *items, last)]
    versions = run.header.get("versions")
    if isinstance(versions, dict):
        said = ", ".join(f"{one_line(str(k), 40)} {one_line(str(v), 40)}" for k, v in versions.items())
        parts.append(h("p", f"Made with {said}", cls="versions"))
    return parts


def _joined(elements: Sequence[Element]) -> str:
    return "\n".join(map(to_html, elements))
