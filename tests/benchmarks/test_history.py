"""The history of the benchmarks: what is compared with what, and what counts as worse."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.history import (
    HISTORY,
    HistoryError,
    Part,
    Record,
    again,
    append,
    as_table,
    compare,
    in_doubt,
    machine_in_words,
    read,
    records_of,
)
from benchmarks.results import Ratio
from benchmarks.yardstick import milliseconds

HERE = machine_in_words("cpu")
OURS = Record(
    "abc1234", "2026-11-22", HERE, "cpu, tiny, threads: 1", "p", "a / b", 2.0, 1.9, 2.1, 3, "lower", "ratio", 5.0
)


def measured(median: float, record: Record = OURS) -> Record:
    return replace(record, commit="def5678", median=median, min=median, max=median)


def verdict(now: float, last: Record = OURS) -> str:
    [change] = compare([measured(now, last)], [last])
    return change.verdict


@pytest.mark.parametrize("last", [0.001, 2.0, 4000.0])
def test_over_15_percent_is_worse_where_lower_is_better(last: float) -> None:
    record = measured(last)
    assert [verdict(last * by, record) for by in (1.16, 1.14, 1.15, 1.0, 0.86, 0.84)] == [
        "worse", "same", "same", "same", "same", "better",
    ]  # fmt: skip


@pytest.mark.parametrize("last", [0.001, 2.0, 4000.0])
def test_over_15_percent_is_worse_where_higher_is_better(last: float) -> None:
    record = replace(measured(last), better="higher")
    assert [verdict(last * by, record) for by in (0.84, 0.86, 0.85, 1.0, 1.14, 1.16)] == [
        "worse", "same", "same", "same", "same", "better",
    ]  # fmt: skip


def test_any_more_than_none_is_worse() -> None:
    assert [verdict(now, measured(0.0)) for now in (0.0, 0.5)] == ["same", "worse"]
    assert [verdict(now, measured(-1.0)) for now in (-1.0, -1.1, -0.8)] == ["same", "same", "worse"]


def test_the_last_figure_counts_and_not_the_best() -> None:
    [change] = compare([measured(3.3)], [measured(2.0), measured(3.0)])
    assert (change.last, change.verdict) == (measured(3.0), "same")


def test_ratios_are_compared_across_machines_and_amounts_are_not() -> None:
    away = replace(OURS, machine="another one, 64 cores")
    amount = replace(OURS, name="a: ms", unit="ms")
    [change] = compare([measured(3.0)], [away])
    assert change.verdict == "worse"
    [change] = compare([measured(3.0, amount)], [replace(amount, machine=away.machine)])
    assert change.verdict == "new"
    [change] = compare([measured(3.0, amount)], [amount, replace(amount, machine=away.machine, median=9.0)])
    assert change.verdict == "worse"


@pytest.mark.parametrize(
    ("unit", "better", "yardstick", "now", "found"),
    [
        ("ms", "lower", 10.0, 4.0, "same"),  # half as fast: twice the time is what was expected
        ("ms", "lower", 10.0, 4.7, "worse"),
        ("ms", "lower", 2.5, 2.0, "worse"),
        ("seconds", "lower", 10.0, 2.0, "better"),
        ("per second", "higher", 10.0, 1.0, "same"),
        ("per second", "higher", 10.0, 0.8, "worse"),
        ("MB", "lower", 10.0, 4.0, "worse"),
        ("ratio", "lower", 10.0, 4.0, "worse"),
    ],
)
def test_amounts_of_time_are_compared_at_the_speed_of_the_machine(
    unit: str, better: str, yardstick: float, now: float, found: str
) -> None:
    last = measured(2.0, replace(OURS, unit=unit, better=better))
    changes = compare([replace(measured(now, last), yardstick=yardstick)], [last])
    assert [change.verdict for change in changes] == [found]
    speed = f"times {yardstick / 5 if unit != 'per second' else 5 / yardstick:.2f} to"
    assert (speed in as_table(changes)) == (unit not in ("MB", "ratio"))


@pytest.mark.parametrize(
    ("unit", "better", "noisy", "slow"),
    [
        ("ms", "lower", (2.0, 3.0, 9.0), (2.3, 2.4, 2.4)),
        ("per second", "higher", (0.5, 1.0, 2.0), (1.6, 1.65, 1.65)),
    ],
)
def test_of_amounts_of_time_the_best_rounds_are_compared(
    unit: str, better: str, noisy: tuple[float, float, float], slow: tuple[float, float, float]
) -> None:
    last = replace(OURS, unit=unit, better=better)
    found = []
    for least, middle, most in (noisy, slow):
        changes = compare([replace(OURS, unit=unit, better=better, min=least, median=middle, max=most)], [last])
        found += [change.verdict for change in changes]
    assert found == ["same", "worse"]


def test_amounts_of_time_without_a_yardstick_are_not_compared() -> None:
    last = replace(OURS, unit="ms", yardstick=None)
    assert [change.verdict for change in compare([measured(2.0, replace(last, yardstick=5.0))], [last])] == ["new"]
    older = replace(last, yardstick=5.0)
    [change] = compare([measured(2.0, older)], [older, last])
    assert change.last == older


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\ncpu family\t: 25\n",
            "AMD EPYC (family 25, model 17), ",
        ),
        ("model name\t: ARMv7\n", "ARMv7, "),
    ],
)
def test_generations_of_one_name_are_different_machines(monkeypatch: pytest.MonkeyPatch, said: str, words: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda path: said)
    assert machine_in_words("cpu").startswith(words)


def test_the_yardstick_is_a_time() -> None:
    assert 0 < milliseconds() < 10_000


def test_the_same_machine_goes_before_one_that_recorded_later() -> None:
    [change] = compare([measured(3.0)], [OURS, replace(OURS, machine="another one", median=3.0)])
    assert change.last == OURS


def test_other_settings_are_other_figures() -> None:
    [change] = compare([measured(3.0)], [replace(OURS, setting="cpu, 125m, threads: 1")])
    assert change.verdict == "new"


def test_new_and_vanished_figures_are_shown_and_no_failure() -> None:
    gone = replace(OURS, name="c / d")
    untouched = replace(OURS, part="another part", name="e / f")
    changes = compare([measured(2.0), measured(1.0, replace(OURS, name="g / h"))], [OURS, gone, untouched])
    assert {change.name: change.verdict for change in changes} == {"a / b": "same", "g / h": "new", "c / d": "gone"}
    assert in_doubt(changes) == []
    assert "new here" in as_table(changes)
    assert "gone" in as_table(changes)


def test_what_vanished_before_the_last_recording_is_forgotten() -> None:
    old = replace(OURS, name="c / d", commit="0000000")
    assert [change.name for change in compare([measured(2.0)], [old, OURS])] == ["a / b"]


def test_a_part_is_measured_once_more_and_fails_only_if_it_is_worse_again() -> None:
    noisy, worse = measured(3.0), measured(3.0, replace(OURS, name="c / d"))
    history = [OURS, replace(OURS, name="c / d")]
    first = compare([noisy, worse], history)
    assert in_doubt(first) == ["p"]
    second = compare([measured(2.1), measured(2.9, worse)], history)
    found = again(first, second)
    assert {change.name: change.verdict for change in found} == {"a / b": "same", "c / d": "worse"}
    assert in_doubt(again(first, compare([measured(2.1)], history))) == ["p"]  # the other one was not measured again


def test_the_table_shows_last_now_and_change() -> None:
    table = as_table(compare([measured(2.4)], [OURS]))
    assert "p: a / b" in table
    assert "2.000" in table
    assert "2.400" in table
    assert "+20%" in table
    assert "WORSE by over 15%" in table
    assert "1 of 1 figures compared, 1 worse by over 15%" in table


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history.jsonl"
    records = records_of(
        {"p": Part([Ratio("a / ours", (1.0, 3.0, 2.0)), Ratio("b: ms", (5.0,))], 7.5)}, "cpu", OURS.setting
    )
    append(records[:1], file)
    append(records[1:], file)
    assert read(file) == records
    assert [(r.median, r.min, r.max, r.rounds, r.better, r.unit) for r in records] == [
        (2.0, 1.0, 3.0, 3, "higher", "ratio"),
        (5.0, 5.0, 5.0, 1, "lower", "ms"),
    ]
    assert [record.yardstick for record in records] == [7.5, 7.5]
    assert records[0].machine == HERE
    assert records[0].commit


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is no record"),
        ('{"part": "p"}', "line 2 is no record: it needs commit, date"),
        (json.dumps({**asdict(OURS), "median": float("nan")}), "line 2: median=nan must be a finite number"),
        (json.dumps({**asdict(OURS), "median": "2"}), "line 2: median='2' must be a finite number"),
        (json.dumps({**asdict(OURS), "yardstick": "5"}), "line 2: yardstick='5' must be a finite number"),
        (json.dumps({**asdict(OURS), "median": None}), "line 2: median=None must be a finite number"),
        (json.dumps({**asdict(OURS), "part": 3}), "line 2: part=3 must be a text"),
        (json.dumps({**asdict(OURS), "better": "more"}), "line 2: better='more' must be 'lower' or 'higher'"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text(f"{json.dumps(asdict(OURS))}\n{line}\n")
    with pytest.raises(HistoryError, match=why.replace("(", "\\(")):
        read(file)


@pytest.mark.parametrize("content", [None, b"", b"\n\n", b"\xff\xfe"])
def test_without_a_history_it_says_how_to_begin_one(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "history.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(HistoryError, match="begin a history with `python -m benchmarks"):
        read(file)


@pytest.mark.parametrize(
    ("ratio", "better", "unit"),
    [
        (Ratio("ours / naive", (1.0,), {"cpu": ("<=", 1.0)}), "lower", "ratio"),
        (Ratio("ours / reference", (1.0,), {"cpu": (">=", 1.0)}), "higher", "ratio"),
        (Ratio("naive / ours", (1.0,), {"cuda": (">=", 1.0)}), "higher", "ratio"),
        (Ratio("keyword certification: naive / ours", (1.0,)), "higher", "ratio"),
        (Ratio("prefill: ours warm / vanilla cold", (1.0,)), "lower", "ratio"),
        (Ratio("threads left", (0.0,)), "lower", "ratio"),
        (Ratio("calls per second", (0.0,), better="higher"), "higher", "per second"),
        (Ratio("keywords of ten replies: ms", (0.0,)), "lower", "ms"),
        (Ratio("import: MB in all", (0.0,)), "lower", "MB"),
    ],
)
def test_every_figure_has_a_direction_and_a_unit(ratio: Ratio, better: str, unit: str) -> None:
    assert (ratio.direction("cpu"), ratio.unit) == (better, unit)


def test_the_history_in_the_repository_can_be_read() -> None:
    assert {record.part for record in read(HISTORY)}


class TestCommand:
    """`python -m benchmarks` with one made-up part."""

    @pytest.fixture(autouse=True)
    def part(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
        from benchmarks import __main__ as command

        self.values = [(2.0,)]
        monkeypatch.setitem(command.PARTS, "startup", lambda bench: [Ratio("a / b", self.values.pop(0))])
        monkeypatch.setattr(command, "draw", lambda *_: None)
        self.command, self.file = command, tmp_path / "history.jsonl"
        self.options = ["--quick", "--only", "startup", "--device", "cpu", "--out", str(tmp_path)]

    def run(self, *options: str) -> int:
        return self.command.main([*self.options, *options])

    def test_a_figure_that_is_worse_three_times_fails(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run("--record", str(self.file)) == 0
        self.values = [(2.33,), (2.33,), (2.33,)]
        assert self.run("--check", str(self.file)) == 1
        assert "WORSE" in capsys.readouterr().out

    @pytest.mark.parametrize("rounds", [[(2.33,), (2.27,)], [(2.33,), (2.5,), (2.27,)]])
    def test_a_figure_that_is_not_worse_each_time_passes(self, rounds: list[tuple[float]]) -> None:
        self.run("--record", str(self.file))
        self.values = rounds
        assert self.run("--check", str(self.file)) == 0
        assert not self.values

    def test_what_is_checked_may_be_recorded_too(self) -> None:
        self.run("--record", str(self.file))
        self.values = [(2.2,)]
        assert self.run("--check", str(self.file), "--record", str(self.file)) == 0
        assert [record.median for record in read(self.file)] == [2.0, 2.2]

    def test_without_a_history_nothing_is_measured(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as exit:
            self.run("--check", str(self.file))
        assert exit.value.code == 2
        assert "there is no such file; begin a history" in capsys.readouterr().err
        assert len(self.values) == 1
