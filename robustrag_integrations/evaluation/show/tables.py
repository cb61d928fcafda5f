"""The lines of a summary, and comparisons, as tables for the terminal. Names come from data and are hostile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robustrag_integrations._util.display import decimals, printable, table
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.paired import Comparison
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK
from robustrag_integrations.evaluation.score.summary import Line

_LEGEND = {
    "cacc": "cacc k': certified against k' corrupted passages among the retrieved",
    "told": "told: abstentions that name the right answer among three with most votes at most",
    "right r>=1": "r>=1: radius of at least 1, all that min_radius=1 leaves",
    "radius": "radius: mean over right answers / wrong / abstentions",
    "ecacc": "ecacc k': expected certified accuracy, the share that is right with a radius of at least k' (95% "
    "Clopper-Pearson). While any k' groups of each retrieval are replaced, at least this share of questions like these "
    "is right, also if the model samples. It is no certificate of any single answer.",
}
_INTERVALS = "[low, high]: 95%, bootstrap; exact for 0/n and n/n"
_TESTS = (
    "Paired by question. alone: questions of which it holds for that setup and not for the other. difference: in "
    "percentage points, with its paired 95% "
    "interval. p: exact two-sided McNemar test; p (Holm): corrected for all {count} tests here. They were not planned "
    "beforehand: take them as exploratory."
)
_LONGEST_CELL = 48
_BETWEEN = 2  # columns
MOST_WARNINGS = 8  # kinds of warnings below a table

_Column = tuple[str, Callable[[Line], str]]


@dataclass(frozen=True)
class Table:
    """A table; its first `keys` columns say what a row is about. Cells are made harmless where they are shown."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1
    notes: Sequence[str] = ()

    def as_text(self, width: int | None = None) -> str:
        """The table for a terminal of this width, with columns that do not fit below their rows' names; None: any."""
        columns = list(zip(self.header, *self.rows, strict=True))
        widths = [max(len(printable(cell, _LONGEST_CELL)) for cell in column) + _BETWEEN for column in columns]
        keys = range(min(self.keys, len(columns)))
        parts: list[list[int]] = [[]]
        for i in range(len(keys), len(columns)):
            taken = sum(widths[j] for j in (*keys, *parts[-1], i)) - _BETWEEN
            if width is not None and parts[-1] and taken > width:
                parts.append([])
            parts[-1].append(i)
        shown = [printable(self.title, 200)] if self.title else []
        for part in parts if columns else ():
            header, *rows = zip(*(columns[i] for i in (*keys, *part)), strict=True)
            shown.append(table(header, rows, limits=(_LONGEST_CELL,) * len(header)))
        return "\n\n".join([*shown, *(["\n".join(printable(note, 500) for note in self.notes)] if self.notes else [])])


def summary_table(lines: Sequence[Line]) -> Table:
    """The lines as a table; rates in percent with their 95% intervals. Remarks on failures and certificates follow.

    Columns that are equal on all lines (data set, model) are its title. Empty columns are left out.
    """
    if not lines:
        return Table("There are no rows.", (), ())
    names, columns = _columns(lines)
    cells = [[show(line) for _, show in columns] for line in lines]
    used = [i for i in range(len(columns)) if any(row[i] != "-" for row in cells)]
    header = [columns[i][0] for i in used]
    shared = [(name, {show(line) for line in lines}) for name, show in names]
    title = ", ".join(f"{name}: {printable(said.pop(), 100)}" for name, said in shared if len(said) == 1)
    legend = [text for start, text in _LEGEND.items() if any(name.startswith(start) for name in header)]
    remarks = dict.fromkeys(printable(note, 300) for line in lines for note in _remarks(line))
    notes = [*legend, _INTERVALS, *warnings_in_sum(lines), *remarks]
    return Table(title, header, [[row[i] for i in used] for row in cells], header.index("n"), notes)


def _columns(lines: Sequence[Line]) -> tuple[list[_Column], list[_Column]]:
    """The columns that identify a line's rows, and those of the table."""
    names: list[_Column] = [
        ("data", lambda line: f"{line.dataset} ({line.task})"),
        ("model", lambda line: line.model),
        ("top k", lambda line: "-" if line.top_k is None else str(line.top_k)),
    ]
    if any(line.metric not in (None, METRIC_OF_TASK.get(line.task)) for line in lines):
        names.append(("metric", lambda line: line.metric or "-"))
    attackers = sorted({(c.attack, c.corruption_size) for line in lines for c in line.certified})
    return names, [
        *((name, show) for name, show in names if len({show(line) for line in lines}) > 1),
        ("setup", lambda line: line.setup),
        ("attack", lambda line: str(line.attack)),
        ("n", lambda line: str(line.n)),
        ("failed", lambda line: str(line.failed) if line.failed else "-"),
        ("bacc", lambda line: _ends(line.accuracy, 100) if line.clean else "-"),
        ("racc", lambda line: "-" if line.clean else _ends(line.accuracy, 100)),
        ("bllmj", lambda line: _ends(line.judge, 1) if line.clean else "-"),
        ("rllmj", lambda line: "-" if line.clean else _ends(line.judge, 1)),
        ("asr", lambda line: _ends(line.asr, 100)),
        ("both", lambda line: _ends(line.both, 100)),
        ("abstained", lambda line: _ends(line.abstention, 100)),
        ("told", lambda line: _ends(line.told, 100) if line.told.mean else "-"),
        ("all found", lambda line: _ends(line.found, 100)),
        *(_certified_column(*attacker, lines) for attacker in attackers),
        *(_expected_column(size) for size in sorted({size for line in lines for size in line.expected})),
        ("right r>=1", lambda line: _ends(line.held, 100)),
        ("wrong r>=1", lambda line: _ends(line.held_wrong, 100)),
        ("radius", _radius),
        ("calls", lambda line: _number(line.model_calls, 1)),
        ("tokens in", lambda line: _number(line.prompt_tokens, 0)),
        ("out", lambda line: _number(line.completion_tokens, 0)),
        ("seconds", lambda line: _number(line.seconds, 2)),
    ]


def _certified_column(attack: str, size: int, lines: Sequence[Line]) -> _Column:
    def show(line: Line) -> str:
        found = [c.score for c in line.certified if (c.attack, c.corruption_size) == (attack, size)]
        return _ends(found[0], 1 if line.task == "long" else 100) if found else "-"

    name = "cllmj" if all(line.task == "long" for line in lines) else "cacc"
    return f"{name} k'={size}{' mod.' if attack == 'modification' else ''}", show


def _expected_column(size: int) -> _Column:
    return f"ecacc k'={size}", lambda line: _ends(line.expected[size], 100) if size in line.expected else "-"


def warnings_in_sum(lines: Sequence[Line]) -> list[str]:
    """The warnings of all lines, the commonest first: a line each, and one for those that are left out."""
    found: Counter[str] = Counter()
    for line in lines:
        found.update(line.warnings)
    of = f"of {sum(line.n for line in lines)} answers"
    said = [f"warning of {count} {of}: {text}" for text, count in found.most_common()]
    more = [f"and {len(said) - MOST_WARNINGS} more kinds of warnings"] if len(said) > MOST_WARNINGS else []
    return [printable(text, 500) for text in (*said[:MOST_WARNINGS], *more)]


def _remarks(line: Line) -> list[str]:
    about = ", ".join([line.dataset, line.setup, str(line.attack)])
    found = [f"{about}: {count} failed: {error}" for error, count in line.errors.items()]
    if line.unreadable:
        who = "the judge's replies held no score" if line.task == "long" else f"the metric {line.metric} failed on them"
        found.append(f"{about}: {line.unreadable} of {line.n} scores are 0 because {who}")
    for c in line.certified:
        if c.undecided:
            against = f"certificates against {c.attack} k'={c.corruption_size}"
            found.append(f"{about}: {c.undecided} of {c.score.n} {against} undecided, counted as 0")
    return found


def comparisons_table(found: Sequence[Comparison]) -> Table:
    """The comparisons of `paired.compare`; data and model have columns where they differ."""
    columns = [(n, show) for n, show in _COMPARED if n not in ("data", "model") or len({show(c) for c in found}) > 1]
    header = [name for name, _ in columns]
    rows = [[show(c) for _, show in columns] for c in found]
    notes = [_TESTS.format(count=sum(c.p is not None for c in found))]
    return Table("Differences between setups on the same questions", header, rows, header.index("n"), notes)


_COMPARED: tuple[tuple[str, Callable[[Comparison], str]], ...] = (
    ("data", lambda c: f"{c.dataset} ({c.task})"),
    ("model", lambda c: c.model),
    ("attack", lambda c: str(c.attack)),
    ("measure", lambda c: c.measure),
    ("setup", lambda c: c.setup),
    ("against", lambda c: c.against),
    ("n", lambda c: str(c.n)),
    ("alone", lambda c: _number(c.alone, 0)),
    ("other alone", lambda c: _number(c.other_alone, 0)),
    ("difference", lambda c: _ends(c.difference, 100)),
    ("p", lambda c: _p(c.p)),
    ("p (Holm)", lambda c: _p(c.p_holm)),
)


def _p(value: float | None) -> str:
    return "<0.0001" if value is not None and value < 0.0001 else _number(value, 4 if value and value < 0.01 else 3)


def _ends(interval: Interval, scale: int) -> str:
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
    if not any(known):
        return "0" if known else "-"
    return " / ".join("-" if mean is None else decimals(mean, 2) for mean in means)
