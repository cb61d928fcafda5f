"""The lines of a summary as tables: nine columns for everybody, all columns for those who ask.

Names come from data and are hostile.
"""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from robustrag_integrations._util.display import decimals, printable, table
from robustrag_integrations._util.words import count_of
from robustrag_integrations.evaluation.score.intervals import EMPTY, Interval
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK
from robustrag_integrations.evaluation.score.summary import Line, kind_of_warning
from robustrag_integrations.evaluation.show.sentences import PLAIN, TASKS, Block, blocks, setup_in_words

LEGEND: Mapping[str, str] = {
    "method": f"the method and its settings; {PLAIN} (--method vanilla) is one prompt with all passages",
    "attack": "what was planted among the passages; none: the same questions without an attack",
    "right": "a right answer, or none where there is none; of long answers the judge's mean score",
    "abstains": "no answer",
    "attacker's": "the attacker's answer, or what else the attack wants: no answer, a link",
    "attacker's r>=1": "the same, decided by trusted sources or with a radius of at least 1",
    "right r>=1, 2, 3": "right, and nothing that r sources say can change it: decided by trusted sources, or with a "
    "radius of at least r; min_radius=1 shows no other answers than those of r>=1",
}
"""The columns of the main table, with their meaning."""
_BUNDLED = "bundled: a small reader that ships to try things out; its shares say nothing about other models (--model)"
WIDTH = 120  # characters of the main table, if nothing is known of the terminal

_FULL_LEGEND = {
    "cacc": "cacc k': certified against k' corrupted passages among the retrieved",
    "told": "told: abstentions that name the right answer among three with most votes at most",
    "right r>=1": "r>=1: decided by trusted sources or a radius of at least 1, all that min_radius=1 leaves",
    "radius": "radius: mean over right answers / wrong / abstentions",
    "ecacc": "ecacc k': expected certified accuracy, the share that is right with a radius of at least k' (95% "
    "Clopper-Pearson). While any k' sources of each retrieval are replaced, at least this share of such questions "
    "is right, also if the model samples. It is no certificate of any single answer.",
}
_INTERVALS = "[low, high]: 95%, bootstrap; exact for 0/n and n/n"
_LONGEST_CELL = 48
_BETWEEN = 2  # columns
_NARROWEST = 8  # a column of names
_SHARES = ("right", "abstains", "attacker's", "attacker's r>=1", *(f"right r>={r}" for r in (1, 2, 3)))
_MODES = {"injection": "injected", "modification": "modified"}
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

    def as_wrapped_text(self, width: int) -> str:
        """The table for a terminal: its header, and names that are too long, are broken into lines; nothing is cut."""
        cells = [[printable(cell, 300) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells[1:], strict=True)]
        for i, name in enumerate(cells[0]):
            widths[i] = max(widths[i], *map(len, name.split()))
        while sum(widths) + _BETWEEN * (len(widths) - 1) > width and max(widths[: self.keys]) > _NARROWEST:
            widths[widths.index(max(widths[: self.keys]))] -= 1
        header, *rows = (_broken(row, widths) for row in cells)
        lines = [*header, _joined(["-" * w for w in widths], widths), *itertools.chain.from_iterable(rows)]
        notes = [textwrap.fill(printable(note, 600), width, subsequent_indent="  ") for note in self.notes]
        return "\n".join(
            [textwrap.fill(printable(self.title, 400), width), "", *lines, *(["", *notes] if notes else [])]
        )


def _broken(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The lines of a row of which no cell is wider than its column."""
    wrapped = [textwrap.wrap(cell, w, break_on_hyphens=False) or [""] for cell, w in zip(row, widths, strict=True)]
    return [_joined(parts, widths) for parts in itertools.zip_longest(*wrapped, fillvalue="")]


def _joined(parts: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * _BETWEEN).join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip()


def main_tables(lines: Sequence[Line]) -> list[Table]:
    """A table for each data set, task, model and metric, nine columns wide; shares in percent, without intervals.

    Where answers were certified, a second one says what is proved.
    """
    return [table for block in blocks(lines) for table in (_main_table(block), *_proved(block))]


def _main_table(block: Block) -> Table:
    attacks = [line.attack for line in block if not line.clean]
    names = [(setup_in_words(line), _attack_cell(line.attack, attacks)) for line in block]
    shares = list(zip(*map(_shares, block), strict=True))
    kept = [(name, column) for name, column in zip(_SHARES, shares, strict=True) if any(s.n for s in column)]
    rows = [(*row, *(_percent(column[i]) for _, column in kept)) for i, row in enumerate(names)]
    header = ("method", "attack", *(name for name, _ in kept))
    notes = [f"{name}: {meaning}" for name, meaning in LEGEND.items() if name.split(",")[0] in header]
    ends = [(s.mean - s.low, s.high - s.mean) for _, c in kept for s in c if None not in (s.mean, s.low, s.high)]
    if ends:
        off = decimals(max(map(max, ends)), 0, 100)
        notes.append(f"With so many questions chance alone moves a share by up to {off} points (95%).")
    return Table(_title(block, attacks), header, rows, 2, notes)


def _shares(line: Line) -> tuple[Interval, ...]:
    right = _as_share(line.judge) if line.task == "long_form" else line.accuracy
    under_attack = (EMPTY, EMPTY) if line.clean else (line.asr, line.asr_held)
    return (right, line.abstention, *under_attack, *(line.held or (EMPTY,) * 3))


def _as_share(score: Interval) -> Interval:
    mean, low, high = (None if end is None else end / 100 for end in (score.mean, score.low, score.high))
    return Interval(mean, low, high, score.n)


def _percent(share: Interval) -> str:
    return "-" if share.mean is None else decimals(share.mean, 0, 100)


def _title(block: Block, attacks: Sequence[AttackSpec]) -> str:
    """What all rows share: data, model, number of passages, and what is planted where."""
    first, counts = block[0], sorted({line.n for line in block})
    questions = count_of(counts[-1], "question") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} questions"
    sizes, ranks = {a.corruption_size for a in attacks}, {a.rank for a in attacks}
    metric = (
        "" if first.metric in (None, METRIC_OF_TASK.get(first.task)) else f", by {printable(first.metric or '', 60)}"
    )
    top = {line.top_k for line in block}
    passages = f", {count_of(k, 'passage')} each" if len(top) == 1 and (k := first.top_k) else ""
    planted = [f"{sizes.pop()} planted"] if len(sizes) == 1 else []
    planted += [f"at rank: {ranks.pop()}"] if len(ranks) == 1 else []
    about = (
        f"{printable(first.dataset, 80)} ({TASKS.get(first.task, first.task)}{metric}), {printable(first.model, 80)}"
    )
    attacked = f"; {', '.join(planted)}" if planted else ""
    return f"Percent of {questions}: {about}{passages}{attacked}"


def _attack_cell(attack: AttackSpec, attacks: Sequence[AttackSpec]) -> str:
    """The attack, and of its size, rank, repeats and seed what differs among the attacks."""
    if attack.name == "none":
        return "none"
    size = f" {attack.corruption_size} planted" if len({a.corruption_size for a in attacks}) > 1 else ""
    rank = f" {attack.rank}" if len({a.rank for a in attacks}) > 1 else ""
    repeat = f" x{attack.repeat}" if len({a.repeat for a in attacks}) > 1 and attack.repeat else ""
    seed = f" seed {attack.seed}" if len({a.seed for a in attacks}) > 1 else ""
    return f"{attack.name}{size}{rank}{repeat}{seed}"


def _proved(block: Block) -> list[Table]:
    attackers = sorted({(c.attack, c.corruption_size) for line in block for c in line.certified})
    if not attackers:
        return []
    columns = [_certified_column(*attacker, block) for attacker in attackers]
    certified = [line for line in block if line.certified]
    rows = [(setup_in_words(line), *(show(line) for _, show in columns)) for line in certified]
    header = ("method", *(f"{size} {_MODES.get(mode, mode)}" for mode, size in attackers))
    what = "the judge's score" if block[0].task == "long_form" else "the share that is right"
    note = (
        f"tau: at least this is {what}, whatever attackers write in so many passages. Injected ones come in anywhere, "
        "and the last ones drop out; modified ones are changed in place. Undecided ones count as 0. [low, high]: 95%."
    )
    return [Table("Certified: the mean tau, of 100", header, rows, 1, [note])]


def summary_table(lines: Sequence[Line]) -> Table:
    """All columns of the lines; rates in percent with their 95% intervals.

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
    legend = [text for start, text in _FULL_LEGEND.items() if any(name.startswith(start) for name in header)]
    notes = [*legend, _INTERVALS]
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
        ("bacc", lambda line: with_ends(line.accuracy, 100) if line.clean else "-"),
        ("racc", lambda line: "-" if line.clean else with_ends(line.accuracy, 100)),
        ("bllmj", lambda line: with_ends(line.judge, 1) if line.clean else "-"),
        ("rllmj", lambda line: "-" if line.clean else with_ends(line.judge, 1)),
        ("asr", lambda line: with_ends(line.asr, 100)),
        ("both", lambda line: with_ends(line.both, 100)),
        ("abstained", lambda line: with_ends(line.abstention, 100)),
        ("told", lambda line: with_ends(line.told, 100) if line.told.mean else "-"),
        ("all found", lambda line: with_ends(line.found, 100)),
        *(_certified_column(*attacker, lines) for attacker in attackers),
        *(_expected_column(size) for size in sorted({size for line in lines for size in line.expected})),
        ("right r>=1", lambda line: with_ends(line.held[0] if line.held else EMPTY, 100)),
        ("wrong r>=1", lambda line: with_ends(line.held_wrong, 100)),
        ("radius", _radius),
        ("calls", lambda line: in_digits(line.model_calls, 1)),
        ("tokens in", lambda line: in_digits(line.prompt_tokens, 0)),
        ("out", lambda line: in_digits(line.completion_tokens, 0)),
        ("seconds", lambda line: in_digits(line.seconds, 2)),
    ]


def _certified_column(attack: str, size: int, lines: Sequence[Line]) -> _Column:
    def show(line: Line) -> str:
        found = [c.score for c in line.certified if (c.attack, c.corruption_size) == (attack, size)]
        return with_ends(found[0], 1 if line.task == "long_form" else 100) if found else "-"

    name = "cllmj" if all(line.task == "long_form" for line in lines) else "cacc"
    return f"{name} k'={size}{' mod.' if attack == 'modification' else ''}", show


def _expected_column(size: int) -> _Column:
    return f"ecacc k'={size}", lambda line: with_ends(line.expected[size], 100) if size in line.expected else "-"


def remarks(lines: Sequence[Line]) -> list[str]:
    """What weakens the numbers, each once: failed rows, certificates that were not decided, and answers' warnings."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for line in lines:
        for text, count in line.warnings.items():
            examples.setdefault(kind_of_warning(text), text)
            counts[kind_of_warning(text)] += count
    of = f"of {sum(line.n for line in lines)} answers"
    said = [f"Warning of {count} {of}, such as: {examples[kind]}" for kind, count in counts.most_common()]
    more = [f"and {len(said) - MOST_WARNINGS} more kinds of warnings"] if len(said) > MOST_WARNINGS else []
    found = dict.fromkeys(note for line in lines for note in _remarks(line))
    if any(line.model == "bundled" for line in lines):
        found[_BUNDLED] = None
    return [printable(text, 500) for text in (*found, *said[:MOST_WARNINGS], *more)]


def _remarks(line: Line) -> list[str]:
    about = ", ".join([line.dataset, line.setup, str(line.attack)])
    found = [f"{about}: {count} failed: {error}" for error, count in line.errors.items()]
    if line.unreadable:
        who = (
            "the judge's replies held no score"
            if line.task == "long_form"
            else f"the metric {line.metric} failed on them"
        )
        found.append(f"{about}: {line.unreadable} of {line.n} scores are 0 because {who}")
    for c in line.certified:
        if c.undecided:
            against = f"certificates against {c.attack} k'={c.corruption_size}"
            found.append(f"{about}: {c.undecided} of {c.score.n} {against} undecided, counted as 0")
    return found


def with_ends(interval: Interval, scale: int) -> str:
    """A mean with its interval, times a scale; "-" where there is none."""
    if interval.mean is None:
        return "-"
    mean = decimals(interval.mean, 1, scale)
    if interval.low is None or interval.high is None:
        return mean
    return f"{mean} [{decimals(interval.low, 0, scale)}, {decimals(interval.high, 0, scale)}]"


def in_digits(value: float | None, digits: int) -> str:
    """A number; "-" for none."""
    return "-" if value is None else decimals(value, digits)


def _radius(line: Line) -> str:
    """Its mean over the right answers, the wrong ones and the abstentions; 0 for a method without one."""
    means = [found.mean for found in (line.radius, line.radius_wrong, line.radius_abstained)]
    known = [mean for mean in means if mean is not None]
    if not any(known):
        return "0" if known else "-"
    return " / ".join("-" if mean is None else decimals(mean, 2) for mean in means)
