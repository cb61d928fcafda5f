"""Processes behind one address: how they start, are replaced, and stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needing

pytestmark = needing("POSIX")

ROOT = Path(__file__).parents[2]
WAIT = 60.0  # seconds, for what takes one


@contextmanager
def running(
    folder: Path, count: int, do: str = "serve", *, environment: Mapping[str, str] | None = None, **more: Any
) -> Iterator[subprocess.Popen[str]]:
    """Processes that serve, or do something else; none must be left behind."""
    to_do(folder, do)
    command = [sys.executable, "-m", "tests.serve.works", str(folder), str(count)]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        **more,
    )
    try:
        yield process
        process.wait(WAIT)
        until(lambda: not any(map(runs, pids(folder))))
    finally:
        for pid in (process.pid, *pids(folder)):
            if runs(pid):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def to_do(folder: Path, what: str) -> None:
    """Tell processes that start from now on what to do."""
    (folder / "new").write_text(what)
    (folder / "new").replace(folder / "do")


def said(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline().rstrip()


def pids(folder: Path, state: str = "started") -> list[int]:
    return [int(path.stem) for path in folder.glob(f"*.{state}")]


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_while_others_serve_a_process_that_cannot_start_is_tried_until_it_can(tmp_path: Path) -> None:
    with running(tmp_path, 2) as process:
        assert said(process) == "serving"
        to_do(tmp_path, "cannot start")
        killed, other = pids(tmp_path, "serving")
        os.kill(killed, signal.SIGKILL)
        assert said(process) == "a process ended with code -9; 0.01"
        for pause in (0.02, *[0.04] * 6):
            assert said(process) == f"no such model; {pause}"
        to_do(tmp_path, "crash")
        while "no such model" in (line := said(process)):
            pass
        assert line == "a process ended with code 3 before it served; 0.04"
        assert runs(other)
        to_do(tmp_path, "serve")
        until(lambda: len(pids(tmp_path, "serving")) == 3)
        process.terminate()


def test_what_ends_soon_after_it_started_is_replaced_after_ever_longer_pauses(tmp_path: Path) -> None:
    with running(tmp_path, 1) as process:
        assert said(process) == "serving"
        to_do(tmp_path, "end")
        os.kill(pids(tmp_path)[0], signal.SIGKILL)
        assert said(process) == "a process ended with code -9; 0.01"
        assert said(process) == "a process ended with code 0; 0.02"
        assert said(process) == "a process ended with code 0; 0.04"
        process.terminate()


def test_once_no_process_can_start_it_ends_and_says_why(tmp_path: Path) -> None:
    with running(tmp_path, 2) as process:
        assert said(process) == "serving"
        to_do(tmp_path, "cannot start")
        for pid in pids(tmp_path):
            os.kill(pid, signal.SIGKILL)
        assert process.wait(WAIT) == 1
        assert process.stderr is not None
        *lines, last = process.stderr.read().splitlines()
        assert last.endswith("WorkerError: ('failure', 'no process can start any more: no such model')")
        assert [line.count("no such model") for line in lines[:2]] == [0, 0]


@pytest.mark.parametrize(
    ("do", "why"),
    [
        ("cannot start", "'usage', 'no such model'"),
        ("crash", "'failure', 'a process ended with code 3 before it served'"),
    ],
)
def test_what_cannot_start_at_first_ends_it(tmp_path: Path, do: str, why: str) -> None:
    with running(tmp_path, 2, do) as process:
        assert process.wait(WAIT) == 1
        assert process.stderr is not None
        assert process.stderr.read().rstrip().endswith(f"WorkerError: ({why})")


@pytest.mark.parametrize("do", ["serve", "load"])
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_with_all_processes_when_it_is_told_to_by_whatever_it_was_started(
    tmp_path: Path, told: signal.Signals, do: str
) -> None:
    """A shell without job control has what runs in the background ignore SIGINT."""
    with running(tmp_path, 2, do, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as process:
        until(lambda: len(pids(tmp_path, "serving" if do == "serve" else "started")) == 2)
        if do == "serve":
            assert said(process) == "serving"
        process.send_signal(told)
        assert process.wait(WAIT) == (128 + told if told == signal.SIGTERM else -told)


def test_an_interrupt_that_reaches_all_processes_stops_it_without_a_word_of_theirs(tmp_path: Path) -> None:
    with running(tmp_path, 2, environment={"SLOW_START": "1"}, start_new_session=True) as process:
        until(lambda: len(pids(tmp_path, "starting")) == 2)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(WAIT)
        assert process.stderr is not None
        assert process.stderr.read().count("Traceback") == 1  # its own, which the command line has a word for
        assert not pids(tmp_path, "serving")


def test_who_hangs_is_killed_when_it_is_interrupted_twice_and_termination_twice_is_once(tmp_path: Path) -> None:
    with running(tmp_path, 2, "hang") as process:
        assert said(process) == "serving"
        process.terminate()
        time.sleep(0.1)
        process.terminate()
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 128 + signal.SIGTERM


@pytest.mark.parametrize("do", ["load", "hang"])
def test_whatever_a_process_does_it_ends_when_its_parent_was_killed(tmp_path: Path, do: str) -> None:
    with running(tmp_path, 1, do) as process:
        until(lambda: pids(tmp_path, "started" if do == "load" else "serving"))
        process.kill()
