"""The whole page: its parts, their order, and the room for each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from markupsafe import Markup

from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.usage import Prices, prices_of
from robustrag_integrations.drawing.elements import ATTRIBUTES, DRAWN, TAGS, h, to_data, to_html
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.paired import compare
from robustrag_integrations.evaluation.score.run_file import Run, missing_rows
from robustrag_integrations.evaluation.score.summary import Line, summarise
from robustrag_integrations.evaluation.show.lines import comparisons_table, summary_tables
from robustrag_integrations.evaluation.show.paper import LAYOUTS, layout_table
from robustrag_integrations.evaluation.show.report.embedding import (
    BLOCK,
    SharedParts,
    data_element,
    data_script,
    json_text,
    own_file,
    policy,
    template,
)
from robustrag_integrations.evaluation.show.report.listing import (
    COLUMNS,
    WORDS,
    attack_label,
    details,
    legend,
    list_line,
    outcome,
)
from robustrag_integrations.evaluation.show.tables import Table

BYTES = 40_000_000  # of the list and its details; what no longer fits is left out, and the page says so
LINES = 20_000  # rows in the list
_AT_A_TIME = 50  # rows on the screen
_LONGEST_TABLE = 500  # rows
_IN_HEADING = 6  # data sets and models named there
_FILTERS = {"dataset": "Data set", "model": "Model", "setup": "Setup", "attack": "Attack", "outcome": "Outcome"}


class ReportError(RobustRAGError):
    """A page that cannot be written; the message says where and why."""


def write_report(run: Run, target: str | Path) -> Path:
    """Write the page about a run, at once or not at all, with the permissions of the umask.

    Args:
        run: from `read_run`.
        target: the file; what was there is replaced.

    Raises:
        ReportError: the file cannot be written.
    """
    target, page = Path(target), report_page(run)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with draft.open("x", encoding="utf-8", newline="") as file:
            file.write(page)
        draft.replace(target)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise ReportError(f"cannot write {str(target)!r}: {error.strerror}") from error
    return target


def report_page(run: Run) -> str:
    """The page about a run, as HTML."""
    rows = run.rows[:LINES]
    lines = summarise(run.rows, _prices(run.header))
    columns = list(zip(*map(_filtered_by, rows), strict=True)) or [()] * len(_FILTERS)
    places = [tuple(dict.fromkeys(column)) for column in columns]
    data, shown = _data(rows, places)
    style, script = own_file("style.css"), own_file("script.js")
    return template("page.html").render(
        policy=Markup(policy(script, style)),  # noqa: S704 - of digests
        title=one_line(run.name, 80),
        style=Markup(style),  # noqa: S704 - a file of ours
        script=Markup(script),  # noqa: S704 - a file of ours
        name=run.name,
        facts=_facts(run, lines),
        tables=[*summary_tables(lines), *_tables(run, lines)],
        most_rows=_LONGEST_TABLE,
        legend=Markup(to_html(legend())),  # noqa: S704 - it has escaped what is in it
        filters=[
            {"name": n, "label": label, "places": p} for (n, label), p in zip(_FILTERS.items(), places, strict=True)
        ],
        notices=list(_notices(len(run.rows), len(rows), shown)),
        listed=f"{len(rows):,}",
        columns=COLUMNS,
        run=run,
        data=Markup(data),  # noqa: S704 - JSON without a character that markup is made of
    )


def _facts(run: Run, lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Names and values at the head of the page."""
    questions = len({(row["dataset"], row["question_id"]) for row in run.rows})
    failed, left, missing = sum(line.failed for line in lines), len(run.bad) + run.torn, missing_rows(run)
    repeats = dict.fromkeys(line.repeats for line in lines if line.repeats)
    facts = {
        "Data": _names(line.dataset for line in lines),
        "Model": _names(line.model for line in lines),
        "Rows": f"{len(run.rows):,}, from {count_of(questions, 'question')}",
        "Not finished": f"{count_of(missing, 'row')} missing; the same command goes on with them" if missing else "",
        "Repeats itself": one_line("; ".join(repeats), 400),
        "Failed": f"{count_of(failed, 'row')}, in no rate" if failed else "",
        "Left out": f"{count_of(left, 'line')} that cannot be read; see the end of this page" if left else "",
    }
    return [(name, said) for name, said in facts.items() if said]


def _names(found: Iterable[str]) -> str:
    names = list(dict.fromkeys(found))
    more = [f"and {len(names) - _IN_HEADING} more"] if len(names) > _IN_HEADING else []
    return ", ".join([one_line(name, 60) for name in names[:_IN_HEADING]] + more) or "none"


def _config(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration that was run; empty where its file, which is not trusted, does not say."""
    config = header.get("config")
    return config if isinstance(config, Mapping) else {}


def _prices(header: Mapping[str, Any]) -> Prices | None:
    """The prices of a run; None where there are none that make sense."""
    try:
        return prices_of(_config(header).get("prices"))
    except ValueError:
        return None


def _tables(run: Run, lines: Sequence[Line]) -> list[Table]:
    """The table of the paper that the run was made for, and the paired tests."""
    layout = _config(run.header).get("layout")
    asked = [layout_table(layout, lines)] if isinstance(layout, str) and layout in LAYOUTS and lines else []
    compared = comparisons_table(compare(run.rows))
    return [*asked, *([compared] if compared else [])]


def _filtered_by(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["dataset"], row["model"], row["setup"], attack_label(row), WORDS[outcome(row)])


def _data(rows: Sequence[Mapping[str, Any]], places: Sequence[tuple[str, ...]]) -> tuple[str, int]:
    """Return the data elements of the page, and how many rows have their details among them."""
    parts = SharedParts()
    lines = [
        {
            "f": [values.index(v) for values, v in zip(places, _filtered_by(row), strict=True)],
            "n": to_data(list_line(row), parts.number),
        }
        for row in rows
    ]
    listed = json_text({"filters": list(_FILTERS), "lines": lines})
    left = BYTES - len(listed)
    unfolded: list[str] = []
    for number, row in enumerate(rows):
        written = json_text(to_data(details(row), parts.number))
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


def _notices(total: int, listed: int, shown: int) -> Iterator[str]:
    """Name what is not on the page."""
    if listed < total:
        yield f"{total - listed:,} of {total:,} rows are not listed (the tables above count all of them)."
    if shown < listed:
        yield f"The details of {listed - shown:,} rows are left out: the page is limited to {BYTES / 1e6:g} MB."
