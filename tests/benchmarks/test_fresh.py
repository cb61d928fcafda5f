"""Processes of their own: what they print comes back, why they fail is seen, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fresh import figures

_TELLS = """
import json, os, sys
print("under way", file=sys.stderr)
print(json.dumps([os.getpid(), sys.argv[1]]))
"""
_WAITS = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(60)"
# The handler is set because a shell may have its background jobs ignore interrupts.
_ASKS = f"""
import signal
from benchmarks.fresh import figures
signal.signal(signal.SIGINT, signal.default_int_handler)
figures("-c", {_WAITS!r})
"""


def test_what_another_process_prints_comes_back_and_its_progress_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    process, word = figures("-c", _TELLS, "$HOME; k' = 1")
    assert process != os.getpid()
    assert word == "$HOME; k' = 1"
    assert capfd.readouterr().err == "under way\n"


def test_a_process_that_fails_fails_the_call_and_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError, match="exit status 1"):
        figures("-c", "print([1.0]); raise ValueError('no such tensor')")
    assert "ValueError: no such tensor" in capfd.readouterr().err


def test_an_interrupt_ends_the_process_too() -> None:
    root = Path(__file__).resolve().parents[2]
    asking = subprocess.Popen([sys.executable, "-c", _ASKS], cwd=root, stderr=subprocess.PIPE)
    assert asking.stderr is not None
    waiting = int(asking.stderr.readline())
    os.kill(asking.pid, signal.SIGINT)
    _, said = asking.communicate(timeout=30)
    assert b"KeyboardInterrupt" in said
    with pytest.raises(ProcessLookupError):
        os.kill(waiting, 0)
