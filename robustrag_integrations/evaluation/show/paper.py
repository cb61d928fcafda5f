"""A summary in the layout of the paper's Tables 1, 2 and 5.

Cells without a number are `--` where there is nothing to measure (vanilla RAG has no certificate), and empty where a
defence is not for that task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from robustrag_integrations._util.rounding import decimals
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.summary import CertifiedScore, Line
from robustrag_integrations.evaluation.show.tables import Table, text_table

_NONE = "--"
_ORDER = ("mc", "qa", "long")
_FAMILIES = {"pia-long": "pia", "poison-long": "poison"}


def layout_table(layout: str, lines: Sequence[Line], width: int | None = None) -> str:
    """The lines as the table of that name.

    Args:
        layout: one of the presets' names.
        lines: of `summarise`.
        width: of the terminal: columns that do not fit follow in a second table. None for one table however wide.

    Raises:
        KeyError: there is no such layout.
    """
    return "\n\n".join(text_table(part, width) for part in layout_tables(layout, lines))


def layout_tables(layout: str, lines: Sequence[Line]) -> list[Table]:
    """The tables of a layout.

    Raises:
        KeyError: there is no such layout.
    """
    return LAYOUTS[layout](lines)


def _table1(lines: Sequence[Line]) -> list[Table]:
    """Benign and certified accuracy against k' = 1: a row per model and defence, a pair of columns per data set."""
    clean = [line for line in lines if line.clean]
    columns = _datasets(clean)
    header = ["model", "defence"]
    for dataset, task in columns:
        names = ("bllmj", "cllmj") if task == "long" else ("bacc", "cacc")
        header += [f"{dataset} ({task}) {name}" for name in names]

    def cells(found: Sequence[Line]) -> list[str]:
        if not found:
            return ["", ""]
        return [_benign(found[0]), _score(found[0], found[0].certified_against("injection", 1))]

    return _titled("Accuracy without an attack, and certified against k' = 1", header, clean, columns, cells)


def _table2(lines: Sequence[Line]) -> list[Table]:
    """Robust accuracy and attack success: a row per model and defence, a column per data set and attack."""
    attacked = [line for line in lines if not line.clean]
    attacks = list(dict.fromkeys(_family(line) for line in attacked))
    columns = _datasets(attacked)
    header = ["model", "defence"]
    for dataset, task in columns:
        name = "rllmj / asr" if task == "long" else "racc / asr"
        header += [f"{dataset} ({task}) {attack} {name}" for attack in attacks]

    def cells(found: Sequence[Line]) -> list[str]:
        by_attack = {_family(line): line for line in reversed(found)}
        return [_under(by_attack[attack]) if attack in by_attack else "" for attack in attacks]

    return _titled("Accuracy and attack success under attack", header, attacked, columns, cells)


def _modification(lines: Sequence[Line]) -> list[Table]:
    """Certified accuracy against k' = 1 by injection and modification: a row per model and defence."""
    clean = [line for line in lines if line.clean and line.certified]
    columns = _datasets(clean)
    header = ["model", "defence"]
    for dataset, task in columns:
        header += [f"{dataset} ({task}) {kind}" for kind in ("injection", "modification")]

    def cells(found: Sequence[Line]) -> list[str]:
        if not found:
            return ["", ""]
        return [_score(found[0], found[0].certified_against(kind, 1)) for kind in ("injection", "modification")]

    title = "Certified against one injected, and against one modified passage"
    return _titled(title, header, clean, columns, cells)


LAYOUTS: dict[str, Callable[[Sequence[Line]], list[Table]]] = {
    "paper-table1": _table1,
    "paper-table2": _table2,
    "modification": _modification,
}


def _titled(
    title: str,
    header: Sequence[str],
    lines: Sequence[Line],
    columns: Sequence[tuple[str, str]],
    cells: Callable[[Sequence[Line]], list[str]],
) -> list[Table]:
    rows = []
    for model, setup in dict.fromkeys((line.model, line.setup) for line in lines):
        row = [model, setup]
        for dataset, task in columns:
            mine = (model, setup, dataset, task)
            row += cells([line for line in lines if (line.model, line.setup, line.dataset, line.task) == mine])
        rows.append(row)
    return [Table(title, header, rows, keys=2)]


def _datasets(lines: Iterable[Line]) -> list[tuple[str, str]]:
    """Data sets and tasks in the paper's order: multiple choice, short answers, long ones."""
    found = dict.fromkeys((line.dataset, line.task) for line in lines)
    return sorted(found, key=lambda known: _ORDER.index(known[1]) if known[1] in _ORDER else len(_ORDER))


def _family(line: Line) -> str:
    """Attacks on long answers share the columns of their short forms."""
    return _FAMILIES.get(line.attack.name, line.attack.name)


def _benign(line: Line) -> str:
    return _number(line, line.judge if line.task == "long" else line.accuracy)


def _score(line: Line, certified: CertifiedScore | None) -> str:
    return _NONE if certified is None else _number(line, certified.score)


def _under(line: Line) -> str:
    return f"{_benign(line)} / {_percent(line.asr)}"


def _number(line: Line, interval: Interval) -> str:
    if interval.mean is None:
        return _NONE
    return decimals(interval.mean, 1) if line.task == "long" else _percent(interval)


def _percent(interval: Interval) -> str:
    return _NONE if interval.mean is None else decimals(interval.mean, 1, 100)
