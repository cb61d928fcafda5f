"""A summary in the layout of the paper's Tables 1, 2 and 5: a row per model and defence, columns per data set.

Cells without a number are `--` where there is nothing to measure (vanilla RAG has no certificate), and empty where a
defence is not for that task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robustrag_integrations._util.display import decimals
from robustrag_integrations.evaluation.score.intervals import EMPTY, Interval
from robustrag_integrations.evaluation.score.summary import Line
from robustrag_integrations.evaluation.show.tables import Table

_ORDER = ("mc", "qa", "long")


def layout_table(layout: str, lines: Sequence[Line]) -> Table:
    """The lines of `summarise` as the table of that name, one of `LAYOUTS`."""
    title, belongs, cells_of = LAYOUTS[layout]
    kept = [line for line in lines if belongs(line)]
    setups = dict.fromkeys((line.model, line.setup) for line in kept)
    tasks = dict.fromkeys((line.dataset, line.task) for line in kept)
    datasets = sorted(tasks, key=lambda known: _ORDER.index(known[1]) if known[1] in _ORDER else len(_ORDER))
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    columns: dict[tuple[str, str], dict[str, None]] = {data: {} for data in datasets}
    for line in kept:
        for name, cell in cells_of(line).items():
            columns[line.dataset, line.task][name] = None
            cells.setdefault((line.model, line.setup, line.dataset, line.task), {}).setdefault(name, cell)
    header = [f"{data[0]} ({data[1]}) {name}" for data, names in columns.items() for name in names]
    rows = [
        [*setup, *(cells.get((*setup, *data), {}).get(name, "") for data, names in columns.items() for name in names)]
        for setup in setups
    ]
    return Table(title, ["model", "defence", *header], rows, keys=2)


def _accuracy(line: Line) -> dict[str, str]:
    benign, certified = ("bllmj", "cllmj") if line.task == "long" else ("bacc", "cacc")
    return {benign: _benign(line), certified: _certified(line, "injection")}


def _under_attack(line: Line) -> dict[str, str]:
    name = "rllmj / asr" if line.task == "long" else "racc / asr"
    return {f"{line.attack.name} {name}": f"{_benign(line)} / {_shown(line.asr, 100)}"}


def _kinds(line: Line) -> dict[str, str]:
    return {kind: _certified(line, kind) for kind in ("injection", "modification")}


LAYOUTS: dict[str, tuple[str, Callable[[Line], bool], Callable[[Line], dict[str, str]]]] = {
    "paper-table1": ("Accuracy without an attack, and certified against k' = 1", lambda line: line.clean, _accuracy),
    "paper-table2": ("Accuracy and attack success under attack", lambda line: not line.clean, _under_attack),
    "modification": (
        "Certified against one injected, and against one modified passage",
        lambda line: line.clean and bool(line.certified),
        _kinds,
    ),
}
"""By name: the title, the lines that it is about, and the cells of a line by column."""


def _benign(line: Line) -> str:
    return _shown(line.judge, 1) if line.task == "long" else _shown(line.accuracy, 100)


def _certified(line: Line, kind: str) -> str:
    found = line.certified_against(kind, 1)
    return _shown(EMPTY if found is None else found.score, 1 if line.task == "long" else 100)


def _shown(interval: Interval, scale: int) -> str:
    return "--" if interval.mean is None else decimals(interval.mean, 1, scale)
