"""The lines of a summary as a table for the terminal and as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from robustrag_integrations._util.display import decimals, printable, significant
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.paired import Comparison
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK
from robustrag_integrations.evaluation.score.summary import Line, warnings_in_all
from robustrag_integrations.evaluation.show.tables import Table, text_table

EXPECTED_IN_WORDS = (
    "ecacc k': expected certified accuracy, the share that is right with a radius of at least k' (95% "
    "Clopper-Pearson). While any k' groups of each retrieval are replaced, at least this share of questions like these "
    "is right, also if the model samples. It is no certificate of any single answer."
)

HELD_IN_WORDS = "r>=1: radius of at least 1, all that min_radius=1 leaves"
RADIUS_IN_WORDS = "radius: mean over right answers / wrong / abstentions"
TOLD_IN_WORDS = "told: abstentions that name the right answer among three with most votes at most"
UNTIMED_IN_WORDS = "no seconds: replies came out of the cache (--no-cache asks anew), or it was the first answer"
INTERVALS_IN_WORDS = "[low, high]: 95%, bootstrap; exact for 0/n and n/n"

_TESTS = (
    "Paired by question; of more than four setups, each is set against the first and no other. alone: questions of "
    "which it holds for that setup and not for the other. difference: in percentage points, with its paired 95% "
    "interval. p: exact two-sided McNemar test; p (Holm): corrected for all {count} tests here. They were not planned "
    "beforehand: take them as exploratory."
)
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # what makes a spreadsheet read a cell as a formula
_LONGEST_CELL = 500
MOST_WARNINGS = 8  # kinds of warnings below a table

_Column = tuple[str, Callable[[Line], str]]


def lines_table(lines: Sequence[Line], width: int | None = None) -> str:
    """The lines as a table for a terminal of this width; None for one table however wide."""
    found = summary_table(lines)
    return "There are no rows." if found is None else text_table(found, width)


def summary_table(lines: Sequence[Line]) -> Table | None:
    """The lines as a table; rates in percent with their 95% intervals. Remarks on failures and certificates follow.

    Columns that are equal on all lines (data set, model) are its title. Empty columns are left out. None for no lines.
    """
    if not lines:
        return None
    columns = _columns(lines)
    cells = [[show(line) for _, show in columns] for line in lines]
    used = [i for i in range(len(columns)) if any(row[i] != "-" for row in cells)]
    header = [columns[i][0] for i in used]
    shared = ((name, {show(line) for line in lines}) for name, show in _names(lines))
    title = ", ".join(f"{name}: {printable(said.pop(), 100)}" for name, said in shared if len(said) == 1)
    return Table(title, header, [[row[i] for i in used] for row in cells], header.index("n"), _below(lines))


def _below(lines: Sequence[Line]) -> list[str]:
    """Remarks on all lines, and on each."""
    about = ["certified: against k' corrupted passages among the retrieved"] if any(a.certified for a in lines) else []
    several = len({line.model for line in lines}) > 1
    remarks = dict.fromkeys(printable(note, 300) for line in lines for note in _remarks(line, several))
    about += [TOLD_IN_WORDS] if any(line.told.mean for line in lines) else []
    about += [HELD_IN_WORDS] if any(line.held.mean is not None for line in lines) else []
    about += [RADIUS_IN_WORDS] if any(" / " in _radius(line) for line in lines) else []
    about += [UNTIMED_IN_WORDS] if any(line.n and line.seconds is None for line in lines) else []
    about += [INTERVALS_IN_WORDS, *repeats_in_sum(lines)]
    about += [EXPECTED_IN_WORDS] if any(line.expected for line in lines) else []
    return [*about, *warnings_in_sum(lines), *remarks]


def lines_csv(lines: Iterable[Line]) -> str:
    """The lines as CSV (RFC 4180), a column per field and five per interval, shares from 0 to 1.

    Cells that come from data and that a spreadsheet would take for a formula begin with an apostrophe.
    """
    rows = [_cells(line) for line in lines]
    out = io.StringIO()
    names = dict.fromkeys(name for row in rows for name in row) or [field.name for field in fields(Line)]
    writer = csv.DictWriter(out, list(names))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def plain_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula, without control characters and at most 500 characters long."""
    shown = printable(text, _LONGEST_CELL)
    risky = {text[:1], text.lstrip()[:1], shown.lstrip(" ·")[:1]} & _FORMULA
    return f"'{shown}" if risky else shown


def comparisons_table(found: Sequence[Comparison], most: int | None = None) -> Table | None:
    """Every two setups side by side; None for no comparison.

    Args:
        found: of `paired.compare`.
        most: the largest number of lines; those with the smallest p come first where there are more. None for all.
    """
    if not found:
        return None
    listed = list(found)
    notes = [_TESTS.format(count=sum(c.p is not None for c in found))]
    if most is not None and len(listed) > most:
        listed = sorted(listed, key=lambda c: 2.0 if c.p is None else c.p)[:most]
        notes.append(f"{len(found) - most} of {len(found)} lines, with larger p, are left out here.")
    about = ("data", "model")  # where they differ
    columns = [(name, show) for name, show in _COMPARED if name not in about or len({show(c) for c in found}) > 1]
    header = [name for name, _ in columns]
    rows = [[show(c) for _, show in columns] for c in listed]
    return Table("Differences between setups on the same questions", header, rows, header.index("n"), notes)


_COMPARED: tuple[tuple[str, Callable[[Comparison], str]], ...] = (
    ("data", lambda c: f"{c.dataset} ({c.task})"),
    ("model", lambda c: c.model),
    ("attack", lambda c: str(c.attack)),
    ("measure", lambda c: c.measure),
    ("setup", lambda c: c.setup),
    ("against", lambda c: c.against),
    ("n", lambda c: str(c.n)),
    ("alone", lambda c: "-" if c.alone is None else str(c.alone)),
    ("other alone", lambda c: "-" if c.other_alone is None else str(c.other_alone)),
    ("difference", lambda c: _ends(c.difference, 100)),
    ("p", lambda c: _p(c.p)),
    ("p (Holm)", lambda c: _p(c.p_holm)),
)


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else decimals(value, 4 if value < 0.01 else 3)


_NAMES: tuple[_Column, ...] = (
    ("data", lambda line: f"{line.dataset} ({line.task})"),
    ("model", lambda line: line.model),
    ("top k", lambda line: "-" if line.top_k is None else str(line.top_k)),
)


def _names(lines: Sequence[Line]) -> list[_Column]:
    """Return the columns that identify a line's rows; the metric where it is not each task's own."""
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
        ("bacc", lambda line: _ends(line.accuracy, 100) if line.clean else "-"),
        ("racc", lambda line: "-" if line.clean else _ends(line.accuracy, 100)),
        ("bllmj", lambda line: _ends(line.judge, 1) if line.clean else "-"),
        ("rllmj", lambda line: "-" if line.clean else _ends(line.judge, 1)),
        ("asr", lambda line: _ends(line.asr, 100)),
        ("both", lambda line: _ends(line.both, 100)),
        ("abstained", lambda line: _ends(line.abstention, 100)),
        ("told", lambda line: _ends(line.told, 100) if line.told.mean else "-"),
        ("all found", lambda line: _ends(line.found, 100)),
        *(_certified_column(*size, lines) for size in sizes),
        *(_expected_column(size) for size in sorted({e.corruption_size for line in lines for e in line.expected})),
        ("right r>=1", lambda line: _ends(line.held, 100)),
        ("wrong r>=1", lambda line: _ends(line.held_wrong, 100)),
        ("radius", _radius),
        ("calls", lambda line: _number(line.model_calls, 1)),
        ("rounds", lambda line: _number(line.rounds, 1)),
        ("tokens in", lambda line: _number(line.prompt_tokens, 0)),
        ("cached", lambda line: _number(line.cached_tokens, 0)),
        ("out", lambda line: _number(line.completion_tokens, 0)),
        ("reasoning", lambda line: _number(line.reasoning_tokens, 0)),
        ("seconds", lambda line: _number(line.seconds, 2)),
        ("x vanilla", lambda line: _number(line.latency_ratio, 2)),
    ]


def _certified_column(attack: str, size: int, lines: Sequence[Line]) -> _Column:
    def show(line: Line) -> str:
        found = line.certified_against(attack, size)
        return "-" if found is None else _ends(found.score, 1 if line.task == "long" else 100)

    name = "cllmj" if all(line.task == "long" for line in lines) else "cacc"
    return f"{name} k'={size}{' mod.' if attack == 'modification' else ''}", show


def _expected_column(size: int) -> _Column:
    def show(line: Line) -> str:
        return next((_ends(e.share, 100) for e in line.expected if e.corruption_size == size), "-")

    return f"ecacc k'={size}", show


def repeats_in_sum(lines: Sequence[Line]) -> list[str]:
    """A line for each model that may not repeat itself."""
    models = dict.fromkeys((line.model, line.repeats) for line in lines if line.repeats)
    return [printable(f"{model}: {said}", 400) for model, said in models if not said.startswith("deterministic")]


def warnings_in_sum(lines: Sequence[Line]) -> list[str]:
    """The warnings of all lines, the commonest first: a line each, and one for those that are left out."""
    found = warnings_in_all(line.warnings for line in lines)
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
    if 0 < line.with_tokens < line.n:
        among = f"the {line.with_tokens} of {line.n} answers whose calls all told them"
        found.append(f"{about}: tokens are means over {among}")
    for c in line.certified:
        if c.undecided:
            against = f"{c.attack} k'={c.corruption_size}"
            text = f"{about}: {c.undecided} of {c.score.n} certificates against {against} undecided, counted as 0"
            if c.estimate.mean is not None:
                text += f"; lowest sampled scores there: {significant(c.estimate.mean)} on average, no guarantee"
            found.append(text)
    return found


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
    if not known or not any(known):
        return "0" if known else "-"
    return " / ".join("-" if mean is None else decimals(mean, 2) for mean in means)


def _cells(part: Any, prefix: str = "") -> dict[str, Any]:
    """A line or a part of it as cells by column: what is inside a part has the part's name before its own."""
    cells: dict[str, Any] = {}
    for field in fields(part):
        name, value = f"{prefix}{field.name}", getattr(part, field.name)
        if isinstance(value, Interval):
            cells |= {f"{name} {key}".removesuffix(" mean"): said for key, said in vars(value).items()}
        elif isinstance(value, tuple):
            for one in value:
                about = [getattr(one, key) for key in ("attack", "corruption_size") if hasattr(one, key)]
                cells |= _cells(one, f"{' '.join([name, *map(str, about)])} ")
        elif isinstance(value, AttackSpec):
            more = {} if value.name == "none" else {f"attack {key}": said for key, said in vars(value).items()}
            cells |= {**more, "attack": value.name}
        elif is_dataclass(value):
            cells |= _cells(value, f"{name} ")
        elif isinstance(value, Mapping):
            cells[name] = " ".join(f"{key}:{count}" for key, count in value.items())
        else:
            cells[name] = value
    return {name: _cell(value) for name, value in cells.items()}


def _cell(value: Any) -> Any:
    return "" if value is None else plain_cell(value) if isinstance(value, str) else value
