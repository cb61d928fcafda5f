"""The history of the benchmarks: what was recorded, and what has become worse since.

One JSON object per line and figure, in the order in which they were recorded. Ratios are compared with the last ones of
the same setting (device, model, threads), from the same machine if it has any there, else from another one. Amounts
(milliseconds, megabytes) are compared with those of the same machine alone: amounts of time as multiples of the
`yardstick`, as a machine is not equally fast every day, and by their best rounds, as what else it does only adds.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from benchmarks.results import Ratio
from benchmarks.timing import summary

HISTORY = Path(__file__).parents[1] / "docs" / "benchmarks" / "history.jsonl"
TOLERANCE = 0.15
"""How much worse a figure may become, as a share of what it was."""

_TIMES = ("ms", "second", "seconds", "per second")
"""Units that the speed of the machine decides."""
_BEGIN = "begin a history with `python -m benchmarks --quick --repeats 5 --record`"
Verdict = Literal["worse", "better", "same", "new", "gone"]


class HistoryError(ValueError):
    """The history cannot be read; the message says where, and what to do."""


@dataclass(frozen=True)
class Record:
    """A figure as it was recorded.

    Attributes:
        commit: what was measured; with a "+" if there were changes that are not in it.
        date: of the day, UTC.
        machine: processor and cores, in words; with the GPU's name on CUDA.
        setting: device, model and threads; figures of other settings are not compared.
        part: of the benchmarks.
        name: what over what.
        median, min, max: over the rounds.
        rounds: how many.
        better: "lower" or "higher".
        unit: "ratio" for what can be compared across machines, else what the amount is of.
        yardstick: the milliseconds of a fixed piece of work beside the part (`yardstick`); None where nobody looked.
    """

    commit: str
    date: str
    machine: str
    setting: str
    part: str
    name: str
    median: float
    min: float
    max: float
    rounds: int
    better: str
    unit: str
    yardstick: float | None

    @property
    def compared(self) -> float:
        """The figure that is compared: the median, but the best round of an amount of time."""
        if self.unit not in _TIMES:
            return self.median
        return self.min if self.better == "lower" else self.max


@dataclass(frozen=True)
class Change:
    """A figure beside the last one of its kind.

    Attributes:
        part: of the benchmarks.
        name: what over what.
        now: what was measured; None if it was not measured any more.
        last: what it is compared with; None if there is nothing.
    """

    part: str
    name: str
    now: Record | None
    last: Record | None

    @property
    def expected(self) -> float | None:
        """The last figure, as it would be at the speed that the machine has now."""
        if self.last is None:
            return None
        return self.last.compared * (1.0 if self.now is None else _slower_by(self.now, self.last))

    @property
    def worse_by(self) -> float | None:
        """The share of what was expected by which this figure is worse; negative where it is better."""
        expected = self.expected
        if self.now is None or expected is None:
            return None
        more = self.now.compared - expected
        lost = more if self.now.better == "lower" else -more
        if lost == 0:
            return 0.0
        return lost / abs(expected) if expected else float("inf") * (1 if lost > 0 else -1)

    @property
    def verdict(self) -> Verdict:
        """What to make of it; only "worse" is a failure."""
        if self.now is None:
            return "gone"
        worse = self.worse_by
        if worse is None:
            return "new"
        edge = TOLERANCE + 1e-9
        return "worse" if worse > edge else "better" if worse < -edge else "same"


@dataclass(frozen=True)
class Part:
    """What a part of the benchmarks found.

    Attributes:
        ratios: its figures.
        yardstick: see `Record`.
    """

    ratios: Sequence[Ratio]
    yardstick: float


def records_of(found: Mapping[str, Part], device: str, setting: str) -> list[Record]:
    """Figures of this run, as they would be recorded.

    Args:
        found: each part of the benchmarks.
        device: `cpu` or `cuda`.
        setting: see `Record`.
    """
    day, commit = datetime.datetime.now(datetime.timezone.utc).date().isoformat(), _commit()
    machine = machine_in_words(device)
    return [
        Record(
            commit,
            day,
            machine,
            setting,
            name,
            ratio.name,
            **summary(ratio.values),
            rounds=len(ratio.values),
            better=ratio.direction(device),
            unit=ratio.unit,
            yardstick=part.yardstick,
        )
        for name, part in found.items()
        for ratio in part.ratios
    ]


def append(records: Iterable[Record], file: Path) -> None:
    """Add to the history; it is made if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in records)


def read(file: Path) -> list[Record]:
    """What was recorded, oldest first.

    Raises:
        HistoryError: there is no such file, nothing in it, or a line that is no record.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HistoryError(f"{file}: {_why(error)}; {_BEGIN}") from error
    found = [_record(line, f"{file}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise HistoryError(f"{file} is empty; {_BEGIN}")
    return found


def compare(now: Sequence[Record], history: Sequence[Record]) -> list[Change]:
    """Each figure beside its last one, then those that were recorded in these parts and are gone."""
    parts = list(dict.fromkeys(record.part for record in now))
    changes = []
    for part in parts:
        own = [record for record in now if record.part == part]
        changes += [Change(part, record.name, record, _last(record, history)) for record in own]
        names = {record.name for record in own}
        changes += [Change(part, last.name, None, last) for last in _latest(own[0], history) if last.name not in names]
    return changes


def again(first: Sequence[Change], second: Sequence[Change]) -> list[Change]:
    """Changes after the parts in doubt were measured once more: the better of two figures counts.

    Noise rarely makes the same figure worse each time; a change of the code does.
    """
    repeated = {(change.part, change.name): change for change in second}
    return [_better(change, repeated.get((change.part, change.name))) for change in first]


def in_doubt(changes: Iterable[Change]) -> list[str]:
    """The parts with a figure that became worse."""
    return list(dict.fromkeys(change.part for change in changes if change.verdict == "worse"))


def as_table(changes: Sequence[Change]) -> str:
    """Last (at the speed of now), now and change of every figure; those that became worse are marked."""
    lines = [f"{'figure':<72}{'last':>10}{'now':>10}{'change':>9}  {'now, extremes':<20} verdict"]
    for change in changes:
        last, now = change.expected, None if change.now is None else change.now.compared
        moved = "" if not last or now is None else f"{now / last - 1:+.0%}"
        extremes = "" if change.now is None else f"{change.now.min:.3f} to {change.now.max:.3f}"
        lines.append(
            f"{f'{change.part}: {change.name}':<72}{_shown(last):>10}{_shown(now):>10}{moved:>9}  {extremes:<20} "
            f"{_VERDICTS[change.verdict]}"
        )
    compared = [change for change in changes if change.worse_by is not None]
    worse = sum(change.verdict == "worse" for change in compared)
    lines.append(f"{len(compared)} of {len(changes)} figures compared, {worse} worse by over {TOLERANCE:.0%}")
    if speeds := [_slower_by(c.now, c.last) for c in compared if c.now and c.last and c.now.unit in _TIMES]:
        lines.append(
            f"last amounts of time are times {min(speeds):.2f} to {max(speeds):.2f}: what a fixed piece of work takes "
            "now, over what it took beside them"
        )
    return "\n".join(lines)


_VERDICTS = {
    "worse": f"WORSE by over {TOLERANCE:.0%}",
    "better": "better",
    "same": "",
    "new": "new here",
    "gone": "gone",
}


def machine_in_words(device: str) -> str:
    """Processor and cores; on CUDA the GPU's name before them."""
    words = f"{_processor()}, {os.cpu_count()} cores"
    if device != "cuda":
        return words
    import torch

    return f"{torch.cuda.get_device_name()}, {words}"


def _processor() -> str:
    """The processor's name, with the numbers that tell its generation where Linux gives them: clouds say "AMD EPYC"."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = said.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{what} {said[key]}" for what, key in (("family", "cpu family"), ("model", "model")) if key in said]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _commit() -> str:
    """What is checked out, as git names it; "unknown" where git does not tell."""
    asked = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(asked, cwd=HISTORY.parent, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _last(record: Record, history: Sequence[Record]) -> Record | None:
    """What a figure is compared with."""
    same = [r for r in history if (r.part, r.name, r.setting) == (record.part, record.name, record.setting)]
    here = [r for r in same if r.machine == record.machine]
    if record.unit in _TIMES:
        here = [r for r in here if r.yardstick is not None]
    usable = here or ([r for r in same if r.unit == "ratio"] if record.unit == "ratio" else [])
    return usable[-1] if usable else None


def _slower_by(now: Record, last: Record) -> float:
    """By which factor an amount of time is expected to have grown as the machine was slower; 1 for all else."""
    if now.unit not in _TIMES or now.yardstick is None or last.yardstick is None:
        return 1.0
    slower = now.yardstick / last.yardstick
    return 1 / slower if now.unit == "per second" else slower


def _latest(record: Record, history: Sequence[Record]) -> list[Record]:
    """All figures of the last recording of a part on this machine."""
    own = [r for r in history if (r.part, r.setting, r.machine) == (record.part, record.setting, record.machine)]
    return [r for r in own if (r.commit, r.date) == (own[-1].commit, own[-1].date)]


def _better(first: Change, second: Change | None) -> Change:
    one, other = first.worse_by, None if second is None else second.worse_by
    return second if second is not None and one is not None and other is not None and other < one else first


def _record(line: str, place: str) -> Record:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise HistoryError(f"{place} is not JSON ({error}); take the line out, or restore the file from git") from error
    wanted = {field.name: field.type for field in fields(Record)}
    if not isinstance(given, dict) or set(given) != set(wanted):
        raise HistoryError(f"{place} is no record: it needs {', '.join(wanted)} and nothing else")
    for name, kind in wanted.items():
        value = given[name]
        right = (
            isinstance(value, str) if kind == "str" else _is_number(value) or (name == "yardstick" and value is None)
        )
        if not right:
            raise HistoryError(f"{place}: {name}={value!r} must be {'a text' if kind == 'str' else 'a finite number'}")
    if given["better"] not in ("lower", "higher"):
        raise HistoryError(f"{place}: better={given['better']!r} must be 'lower' or 'higher'")
    return Record(**given)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}" if abs(number) < 1000 else f"{number:,.0f}"


def _why(error: Exception) -> str:
    return "there is no such file" if isinstance(error, FileNotFoundError) else str(error)
