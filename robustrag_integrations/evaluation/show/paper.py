"""A summary in the layout of the paper's tables and figures (section V and its appendix), for the terminal.

Cells without a number are `--` where there is nothing to measure (vanilla RAG has no certificate), and empty where a
defence is not for that task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from robustrag_integrations._util.rounding import decimals
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.summary import CertifiedScore, Line
from robustrag_integrations.evaluation.show.tables import Table, text_table
from robustrag_integrations.prompts import check_exemplars

_NONE = "--"
_TASKS = {"mc": "multiple choice", "qa": "short answers", "long": "long answers"}
_ORDER = ("mc", "qa", "long")
_FAMILIES = {"pia-long": "pia", "poison-long": "poison"}


def layout_table(layout: str, lines: Sequence[Line], width: int | None = None) -> str:
    """The lines as the table or figure of that name.

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


def _runtime(lines: Sequence[Line]) -> list[Table]:
    """Seconds per question and the ratio to vanilla RAG: a row per defence, a pair of columns per data and examples."""
    clean = [line for line in lines if line.clean]
    columns = sorted({(_place_of(line.task), line.dataset, line.task, _shots(line)) for line in clean})
    header = ["model", "defence"]
    for _, dataset, task, shots in columns:
        header += [f"{dataset} ({task}, {shots}-shot) seconds", "ratio"]
    rows = []
    for model, name in dict.fromkeys((line.model, _without(line.setup, "exemplars")) for line in clean):
        row = [model, name]
        for _, *about in columns:
            mine = [line for line in clean if (line.model, _without(line.setup, "exemplars")) == (model, name)]
            row += _timed([line for line in mine if [line.dataset, line.task, _shots(line)] == about])
        rows.append(row)
    return [Table("Time per question, and its ratio to vanilla RAG", header, rows, keys=2)]


def _timed(found: Sequence[Line]) -> list[str]:
    if not found or found[0].seconds is None:
        return ["", ""]
    ratio = found[0].latency_ratio.mean
    return [decimals(found[0].seconds, 3), _NONE if ratio is None else f"{decimals(ratio, 2)}x"]


def _shots(line: Line) -> int:
    """Return the number of worked examples in the prompts."""
    return check_exemplars(line.settings.get("exemplars", 0))


def _by_group_size(lines: Sequence[Line]) -> list[Table]:
    return _sweep("Effect of the group size", "group size", lines, lambda line: line.settings.get("group_size"))


def _by_top_k(lines: Sequence[Line]) -> list[Table]:
    return _sweep("Effect of the number of passages k", "k", lines, lambda line: line.top_k)


def _by_corruption(lines: Sequence[Line]) -> list[Table]:
    """Certified accuracy by k', a column per setup; k' = 0 is the accuracy without an attack."""
    parts = []
    for dataset, task in _datasets(lines):
        mine = [line for line in lines if line.clean and (line.dataset, line.task) == (dataset, task)]
        sizes = sorted({c.corruption_size for line in mine for c in line.certified if c.attack == "injection"})
        rows = [("0", *(_benign(line) for line in mine))]
        rows += [(str(k), *(_score(line, line.certified_against("injection", k)) for line in mine)) for k in sizes if k]
        names = [_named(line, mine) for line in mine]
        title = f"Certified accuracy by corruption size k': {_about(dataset, task)}"
        parts.append(Table(title, ["k'", *names], rows, keys=1))
    return parts


def _sweep(title: str, axis: str, lines: Sequence[Line], value: Callable[[Line], Any]) -> list[Table]:
    """Benign and certified (k' = 1) accuracy by one setting, a pair of columns per defence."""
    parts = []
    for dataset, task in _datasets(lines):
        mine = [line for line in lines if line.clean and (line.dataset, line.task) == (dataset, task)]
        places = sorted({x for line in mine if (x := value(line)) is not None})
        kinds = list(dict.fromkeys((line.model, _defense_name(line)) for line in mine))
        several = len({model for model, _ in kinds}) > 1
        header = [axis]
        for model, name in kinds:
            shown = f"{name}, {model}" if several else name
            header += [f"{shown} bacc", f"{shown} cacc"]
        rows = []
        for x in places:
            cells = [str(x)]
            for kind in kinds:
                at = [line for line in mine if (line.model, _defense_name(line)) == kind and value(line) in (x, None)]
                cells += [_benign(at[0]), _score(at[0], at[0].certified_against("injection", 1))] if at else ["", ""]
            rows.append(cells)
        parts.append(Table(f"{title}: {_about(dataset, task)}", header, rows, keys=1))
    return parts


LAYOUTS: dict[str, Callable[[Sequence[Line]], list[Table]]] = {
    "paper-table1": _table1,
    "paper-table2": _table2,
    "modification": _modification,
    "group-size": _by_group_size,
    "top-k": _by_top_k,
    "corruption": _by_corruption,
    "thresholds": _by_corruption,
    "eta": _by_corruption,
    "runtime": _runtime,
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
    return sorted(found, key=lambda known: _place_of(known[1]))


def _place_of(task: str) -> int:
    return _ORDER.index(task) if task in _ORDER else len(_ORDER)


def _about(dataset: str, task: str) -> str:
    return f"{dataset}, {_TASKS.get(task, task)}"


def _named(line: Line, lines: Sequence[Line]) -> str:
    several = len({other.model for other in lines}) > 1
    return f"{line.setup}, {line.model}" if several else line.setup


def _defense_name(line: Line) -> str:
    """The setup without the setting that is swept."""
    return _without(line.setup, "group_size", "top_k")


def _without(setup: str, *settings: str) -> str:
    names = tuple(f"{name}=" for name in settings)
    return " ".join(part for part in setup.split() if not part.startswith(names))


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
