"""The lines as a table for the terminal and as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from robustrag_integrations.display import printable
from robustrag_integrations.evaluation.retrieval.summary import RetrievalLine
from robustrag_integrations.evaluation.score.intervals import EMPTY
from robustrag_integrations.evaluation.show.lines import interval_cells, plain_cell, with_ends
from robustrag_integrations.evaluation.show.tables import Table, fitted_table
from robustrag_integrations.rounding import decimals

_Column = tuple[str, Callable[[RetrievalLine], str]]
_PLACES: tuple[_Column, ...] = (
    ("data", lambda line: f"{line.dataset} ({line.task})"),
    ("retriever", lambda line: line.retriever),
    ("top k", lambda line: str(line.top_k)),
    ("per source", lambda line: "no limit" if line.per_source is None else str(line.per_source)),
    ("sites", lambda line: str(line.sites)),
)


def retrieval_table(lines: Sequence[RetrievalLine], width: int | None = None) -> str:
    """What an attacker owns, by attack, rule and number of documents; notes follow.

    Args:
        lines: of `summarise_retrieval`.
        width: of the terminal; None for one table however wide.
    """
    if not lines:
        return "There are no rows."
    shared = [(name, show) for name, show in _PLACES if len({show(line) for line in lines}) == 1]
    varying = [column for column in _PLACES if column not in shared]
    said = [f"{name + ':':11} {printable(show(lines[0]), 100)}" for name, show in shared]
    shown = _table(lines, varying)
    drawn = fitted_table(shown.header, shown.rows, keys=shown.keys, width=width, limit=44)
    return "\n".join([*said, "", drawn, "", *shown.notes])


def whole_table(lines: Sequence[RetrievalLine]) -> Table:
    """The same with every column, for papers and pages.

    Args:
        lines: of `summarise_retrieval`.
    """
    return _table(lines, _PLACES)


def retrieval_csv(lines: Sequence[RetrievalLine]) -> str:
    """The lines as CSV (RFC 4180), shares from 0 to 1; no cell is a formula."""
    setups = list(dict.fromkeys(setup for line in lines for setup in line.cacc))
    rows = [_cells(line, setups) for line in lines]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _table(lines: Sequence[RetrievalLine], places: Sequence[_Column]) -> Table:
    """The lines under the columns that say where, and all that say what was found."""
    setups = list(dict.fromkeys(setup for line in lines for setup in line.cacc))
    columns: list[_Column] = [
        *places,
        ("attack", lambda line: line.attack),
        ("one vote", lambda line: line.rule),
        ("m", lambda line: str(line.m)),
        ("n", lambda line: str(line.n)),
        ("rho", lambda line: _ends(line)),
        ("median", lambda line: f"{line.middle:g}"),
        ("90%", lambda line: f"{line.high:g}"),
        ("worst", lambda line: str(line.worst)),
        ("k'", lambda line: "-" if line.displaced is None else decimals(line.displaced, 1)),
        ("votes", lambda line: decimals(line.groups or 0, 1)),
        ("% owned", lambda line: with_ends(line.share, 100)),
        ("% half", lambda line: with_ends(line.half, 100)),
        *((f"cacc {setup}", _cacc(setup)) for setup in setups),
    ]
    rows = [[show(line) for _, show in columns] for line in lines]
    header = [name for name, _ in columns]
    return Table("What an attacker owns", header, rows, keys=len(places) + 3, notes=_notes(lines, bool(setups)))


def _cacc(setup: str) -> Callable[[RetrievalLine], str]:
    return lambda line: with_ends(line.cacc.get(setup, EMPTY), 100)


def _ends(line: RetrievalLine) -> str:
    rho = line.rho
    if rho.mean is None or rho.low is None or rho.high is None:
        return "-"
    return f"{decimals(rho.mean, 2)} [{decimals(rho.low, 1)}, {decimals(rho.high, 1)}]"


def _cells(line: RetrievalLine, setups: Sequence[str]) -> dict[str, Any]:
    cells: dict[str, Any] = {
        name: plain_cell(str(getattr(line, name))) for name in ("dataset", "task", "retriever", "attack", "rule")
    }
    cells |= {name: getattr(line, name) for name in ("top_k", "sites", "m", "n", "failed", "short")}
    cells["per_source"] = "" if line.per_source is None else line.per_source
    cells |= interval_cells("rho", line.rho)
    cells |= {"rho median": line.middle, "rho 90%": line.high, "rho worst": line.worst, "votes": line.groups}
    cells["displaced"] = "" if line.displaced is None else line.displaced
    cells |= interval_cells("share owned", line.share)
    cells |= interval_cells("half owned", line.half)
    for setup in setups:
        name = plain_cell(f"cacc {setup}")
        cells |= interval_cells(name, line.cacc.get(setup, EMPTY))
        cells[f"{name} beyond"] = line.beyond.get(setup, "")
    return cells


def _notes(lines: Sequence[RetrievalLine], certified: bool) -> list[str]:
    found = [
        "m: documents planted into the corpus. rho: votes among the retrieved that hold a planted text, measured with "
        "these texts and this retriever; not a bound."
    ]
    if certified:
        found.append(
            "cacc: answers certified against k' corrupted passages among the retrieved, question by question: as many "
            "as were planted there, or ranked otherwise."
        )
        if any(share for line in lines for share in line.beyond.values()):
            found.append("where k' is more than was certified, an answer counts 0; certify larger sizes to see more.")
    if any((line.per_source or 1) > 1 for line in lines):
        found.append("with several passages per source, certificates cover votes by passage alone.")
    short = {(line.dataset, line.retriever): line for line in lines if line.short}
    failed = {(line.dataset, line.retriever, line.attack): line for line in lines if line.failed}
    found += [
        f"{printable(line.retriever, 80)} gave fewer than {line.top_k} passages for {line.short} of {line.n} "
        "questions; a retriever of yours may have a number of its own (k, similarity_top_k)."
        for line in short.values()
    ]
    found += [
        f"{printable(line.dataset, 80)}, {printable(line.attack, 80)}: {line.failed} questions failed."
        for line in failed.values()
    ]
    return found
