"""The lines of a summary as a table for the terminal and as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from robustrag_integrations.display import printable
from robustrag_integrations.evaluation.score.expected import ExpectedAccuracy
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK
from robustrag_integrations.evaluation.score.summary import CertifiedScore, Line
from robustrag_integrations.evaluation.score.warned import together
from robustrag_integrations.evaluation.show.tables import Table, fitted_table
from robustrag_integrations.rounding import decimals, significant

EXPECTED_IN_WORDS = (
    "ecacc k': expected certified accuracy, the share that is right with a radius of at least k' (95% "
    "Clopper-Pearson). While any k' groups of each retrieval are replaced, at least this share of questions like these "
    "is right, also if the model samples. It is no certificate of any single answer."
)

RADIUS_IN_WORDS = "radius: mean over right answers / wrong / abstentions"
INTERVALS_IN_WORDS = "[low, high]: 95%, bootstrap; exact for 0/n and n/n"

_Found = TypeVar("_Found")

_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # what makes a spreadsheet read a cell as a formula
_LONGEST_CELL = 500
MOST_WARNINGS = 8  # kinds of warnings below a table

_NOBODY = Line("", "", "", "", "", None, AttackSpec())

_Column = tuple[str, Callable[[Line], str]]


def lines_table(lines: Sequence[Line], width: int | None = None) -> str:
    """The lines as a table; rates in percent with their 95% intervals. Remarks on failures and certificates follow.

    What is the same on all lines (data set, model) stands above it. Empty columns are left out.

    Args:
        lines: of `summarise`.
        width: of the terminal: columns that do not fit follow in a second table. None for one table however wide.
    """
    if not lines:
        return "There are no rows."
    header, rows = _used(lines)
    above = [f"{name + ':':9} {said}" for name, said in _headline(lines)]
    shown = fitted_table(header, rows, keys=header.index("n"), width=width, limit=44)
    return "\n".join([*above, *([""] if above else []), shown, "", *_below(lines)])


def summary_tables(lines: Sequence[Line]) -> list[Table]:
    """The same table for Markdown and LaTeX; none for no lines."""
    if not lines:
        return []
    header, rows = _used(lines)
    title = ", ".join(f"{name}: {said}" for name, said in _headline(lines))
    return [Table(title, header, rows, header.index("n"), _below(lines))]


def _used(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """The columns that say something on some line: their names, and the cells of each line."""
    columns = _columns(lines)
    cells = [[show(line) for _, show in columns] for line in lines]
    used = [i for i in range(len(columns)) if any(row[i] != "-" for row in cells)]
    return [columns[i][0] for i in used], [[row[i] for i in used] for row in cells]


def _below(lines: Sequence[Line]) -> list[str]:
    """Remarks on all lines, and on each."""
    about = ["certified: against k' corrupted passages among the retrieved"] if any(a.certified for a in lines) else []
    several = len({line.model for line in lines}) > 1
    remarks = dict.fromkeys(printable(note, 300) for line in lines for note in _remarks(line, several))
    about += [RADIUS_IN_WORDS] if any(" / " in _radius(line) for line in lines) else []
    return [*about, INTERVALS_IN_WORDS, *_notes(lines), *remarks]


def lines_csv(lines: Iterable[Line]) -> str:
    """The lines as CSV (RFC 4180), shares from 0 to 1.

    Cells that come from data and that a spreadsheet would take for a formula begin with an apostrophe.
    """
    listed = list(lines)
    rows = [_cells(line) for line in listed]
    certified = [
        {**_all_cells(line.certified, _certified_cells), **_all_cells(line.expected, _expected_cells)}
        for line in listed
    ]
    header = dict.fromkeys(name for cells in (*(rows or [_cells(_NOBODY)]), *certified) for name in cells)
    return csv_text(list(header), ({**row, **more} for row, more in zip(rows, certified, strict=True)))


def csv_text(header: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV under a header; what a row lacks stays empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def plain_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula, without control characters and at most 500 characters long."""
    shown = printable(text, _LONGEST_CELL)
    risky = {text[:1], text.lstrip()[:1], shown.lstrip(" ·")[:1]} & _FORMULA
    return f"'{shown}" if risky else shown


def _headline(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """What all lines have in common."""
    found = []
    for name, show in _names(lines):
        values = {show(line) for line in lines}
        if len(values) == 1:
            found.append((name, printable(values.pop(), 100)))
    return found


_NAMES: tuple[_Column, ...] = (
    ("data", lambda line: f"{line.dataset} ({line.task})"),
    ("model", lambda line: line.model),
    ("top k", lambda line: "-" if line.top_k is None else str(line.top_k)),
)


def _names(lines: Sequence[Line]) -> list[_Column]:
    """What says which rows a line is about; the metric where it is not each task's own."""
    chosen = any(line.metric not in (None, METRIC_OF_TASK.get(line.task)) for line in lines)
    return [*_NAMES, *([("metric", lambda line: line.metric or "-")] if chosen else [])]


def _columns(lines: Sequence[Line]) -> list[_Column]:
    varying = [(name, show) for name, show in _names(lines) if len({show(line) for line in lines}) > 1]
    sizes = sorted({(c.attack, c.corruption_size) for line in lines for c in line.certified})
    return [
        *varying,
        ("setup", lambda line: line.setup),
        ("attack", lambda line: str(line.attack)),
        ("n", lambda line: str(line.n)),
        ("failed", lambda line: str(line.failed) if line.failed else "-"),
        ("bacc", lambda line: _percent(line.bacc)),
        ("racc", lambda line: _percent(line.racc)),
        ("bllmj", lambda line: _points(line.bllmj)),
        ("rllmj", lambda line: _points(line.rllmj)),
        ("asr", lambda line: _percent(line.asr)),
        ("both", lambda line: _percent(line.both)),
        ("abstained", lambda line: _percent(line.abstention)),
        ("all found", lambda line: _percent(line.found)),
        *(_certified_column(*size, lines) for size in sizes),
        *(_expected_column(size) for size in sorted({e.corruption_size for line in lines for e in line.expected})),
        ("radius", _radius),
        ("calls", lambda line: _number(line.model_calls, 1)),
        ("rounds", lambda line: _number(line.rounds, 1)),
        ("tokens in", lambda line: _number(line.prompt_tokens, 0)),
        ("cached", lambda line: _number(line.cached_tokens, 0)),
        ("out", lambda line: _number(line.completion_tokens, 0)),
        ("reasoning", lambda line: _number(line.reasoning_tokens, 0)),
        ("cost", lambda line: _money(line.money)),
        ("seconds", lambda line: _number(line.seconds, 2)),
        ("x vanilla", lambda line: _number(line.latency_ratio.mean, 2)),
    ]


def _certified_column(attack: str, size: int, lines: Sequence[Line]) -> _Column:
    name = "cllmj" if all(line.task == "long" for line in lines) else "cacc"

    def show(line: Line) -> str:
        found = line.certified_against(attack, size)
        if found is None:
            return "-"
        return _points(found.score) if line.task == "long" else _percent(found.score)

    return f"{name} k'={size}{' mod.' if attack == 'modification' else ''}", show


def _expected_column(size: int) -> _Column:
    def show(line: Line) -> str:
        found = line.expected_against(size)
        return "-" if found is None else _percent(found.share)

    return f"ecacc k'={size}", show


def _notes(lines: Sequence[Line]) -> list[str]:
    """What is to be said once."""
    warned = warnings_in_sum(lines)
    found = repeats_in_sum(lines)
    if any(line.expected for line in lines):
        found.append(EXPECTED_IN_WORDS)
    return [*found, *warned]


def repeats_in_sum(lines: Sequence[Line]) -> list[str]:
    """A line for each model that may not repeat itself."""
    models = dict.fromkeys((line.model, line.repeats) for line in lines if line.repeats)
    return [printable(f"{model}: {said}", 400) for model, said in models if not said.startswith("deterministic")]


def warnings_in_sum(lines: Sequence[Line]) -> list[str]:
    """The warnings of all lines, the commonest first: a line each, and one for those that are left out."""
    found = together(line.warnings for line in lines)
    rows = sum(line.n for line in lines)
    said = [f"warning of {count} of {rows} answers: {text}" for text, count in found.items()]
    more = [f"and {len(said) - MOST_WARNINGS} more kinds of warnings"] if len(said) > MOST_WARNINGS else []
    return [printable(text, _LONGEST_CELL) for text in (*said[:MOST_WARNINGS], *more)]


def _remarks(line: Line, several_models: bool) -> list[str]:
    about = ", ".join([line.dataset, *([line.model] if several_models else []), line.setup, str(line.attack)])
    found = [f"{about}: {count} failed: {error}" for error, count in line.errors.items()]
    if line.unreadable:
        who = "the judge's replies held no score" if line.task == "long" else f"the metric {line.metric} failed on them"
        found.append(f"{about}: {line.unreadable} of {line.n} scores are 0 because {who}")
    if line.moved:
        found.append(
            f"{line.dataset}, {line.attack}: in {line.moved} of {line.n} questions the planted passages stand higher "
            f"than rank {line.attack.rank}, since there were fewer passages"
        )
    if 0 < line.told < line.n:
        found.append(f"{about}: tokens are means over the {line.told} of {line.n} answers whose calls all told them")
    for c in line.certified:
        if c.undecided:
            against = f"{c.attack} k'={c.corruption_size}"
            text = f"{about}: {c.undecided} of {c.score.n} certificates against {against} undecided, counted as 0"
            if c.estimate.mean is not None:
                text += f"; lowest sampled scores there: {significant(c.estimate.mean)} on average, no guarantee"
            found.append(text)
    return found


def _percent(interval: Interval) -> str:
    return with_ends(interval, 100)


def _points(interval: Interval) -> str:
    return with_ends(interval, 1)


def with_ends(interval: Interval, scale: int) -> str:
    """A mean with its interval, times a scale; "-" where there is none."""
    if interval.mean is None:
        return "-"
    mean = decimals(interval.mean, 1, scale)
    if interval.low is None or interval.high is None:
        return mean
    return f"{mean} [{decimals(interval.low, 0, scale)}, {decimals(interval.high, 0, scale)}]"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else decimals(value, digits)


def _radius(line: Line) -> str:
    """Its mean over the right answers, the wrong ones and the abstentions; 0 for a method without one."""
    means = [found.mean for found in (line.radius, line.radius_wrong, line.radius_abstained)]
    known = [mean for mean in means if mean is not None]
    if not known or not any(known):
        return "0" if known else "-"
    return " / ".join("-" if mean is None else decimals(mean, 2) for mean in means)


def _money(value: float | None) -> str:
    return "-" if value is None else significant(value)


_INTERVALS = ("bacc", "racc", "bllmj", "rllmj", "asr", "both", "abstention", "found", "latency_ratio")
_RADII = ("radius", "radius_wrong", "radius_abstained")
_MEANS = (
    "model_calls",
    "rounds",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "told",
    "money",
    "seconds",
)


def _cells(line: Line) -> dict[str, Any]:
    """The cells of every line, by column."""
    cells: dict[str, Any] = {
        "dataset": plain_cell(line.dataset),
        "task": plain_cell(line.task),
        "model": plain_cell(line.model),
        "metric": plain_cell(line.metric or ""),
        "setup": plain_cell(line.setup),
        "defense": plain_cell(line.defense),
        "top_k": _blank(line.top_k),
        **attack_cells(line.attack),
        "n": line.n,
        "failed": line.failed,
        "errors": plain_cell("; ".join(f"{count}x {error}" for error, count in line.errors.items())),
    }
    for name in (*_INTERVALS, *_RADII):
        cells |= interval_cells(name, getattr(line, name))
    cells |= {name: _blank(getattr(line, name)) for name in _MEANS}
    cells["unreadable"] = line.unreadable
    cells["repeats"] = plain_cell(line.repeats)
    cells["moved"] = line.moved
    cells["warned"] = sum(line.warnings.values())
    cells["warnings"] = plain_cell("; ".join(f"{count}x {text}" for text, count in line.warnings.items()))
    cells["radii"] = " ".join(f"{radius}:{count}" for radius, count in line.radii.items())
    return cells


def attack_cells(attack: AttackSpec) -> dict[str, Any]:
    """The CSV cells that say what a line was attacked with; all but the name are empty for no attack."""
    clean = attack.name == "none"
    return {
        "attack": plain_cell(attack.name),
        "mode": "" if clean else plain_cell(attack.mode),
        "rank": "" if clean else plain_cell(str(attack.rank)),
        "corruption_size": "" if clean else attack.corruption_size,
        "seed": "" if clean else attack.seed,
        "repeat": _blank(attack.repeat),
    }


def _certified_cells(score: CertifiedScore) -> dict[str, Any]:
    """The cells of one attacker that was certified against: cacc, or cllmj for long answers."""
    name = f"certified {score.attack} {score.corruption_size}"
    return {
        **interval_cells(name, score.score),
        f"{name} guaranteed": score.guaranteed,
        f"{name} undecided": score.undecided,
        **interval_cells(f"{name} estimate", score.estimate),
    }


def _expected_cells(found: ExpectedAccuracy) -> dict[str, Any]:
    """The cells of expected certified accuracy against one number of replaced groups."""
    name = f"expected certified {found.corruption_size}"
    return {**interval_cells(name, found.share), f"{name} held": found.held}


def _all_cells(found: Iterable[_Found], cells: Callable[[_Found], dict[str, Any]]) -> dict[str, Any]:
    return {name: value for one in found for name, value in cells(one).items()}


def interval_cells(name: str, interval: Interval) -> dict[str, Any]:
    """The CSV cells of an interval, by column."""
    return {
        name: _blank(interval.mean),
        f"{name} low": _blank(interval.low),
        f"{name} high": _blank(interval.high),
        f"{name} n": interval.n,
        f"{name} interval": interval.method,
    }


def _blank(value: Any) -> Any:
    return "" if value is None else value
