"""Runs that are killed (`kill -9`) while they write, and resumed, end like an undisturbed one: only timing differs.

`python -m tests.evaluation.run.test_killing 100` kills each kind of run a hundred times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.worlds import LIGHT, untimed, write_questions

_START = "import sys; from robustrag_integrations.cli import main; sys.exit(main(sys.argv[1:]))"


def command(kind: str, folder: Path, output: str) -> list[str]:
    """A run of some dozens of rows that needs neither torch nor spaCy."""
    where = ["--cache", str(folder / "cache"), "--output", output]
    if kind == "certify":
        data = write_questions(folder, count=25)
        more = ["--corruption-size", "1", "2", "--set", "metric=exact"]
        return ["certify", "--data", data, "--method", "voting", "--model", LIGHT, *more, *where]
    return [
        *("eval", "--data", write_questions(folder, count=4), "--task", "multiple_choice", "--model", LIGHT),
        *("--method", "vanilla", "voting", "--attack", "pia", "--set", "ranks=first,middle,last"),
        *("--certify", "1", "2", "--set", "top_k=4", "--concurrency", "3", *where),
    ]


def start(arguments: list[str], *, seconds: float = 0.0) -> subprocess.Popen[bytes]:
    """The command in a process of its own, whose model takes so many seconds for a call."""
    environment = {**os.environ, "LIGHT_SECONDS": str(seconds), "OMP_NUM_THREADS": "1"}
    called = [sys.executable, "-c", _START, *arguments]
    folder = Path(__file__).resolve().parents[3]
    return subprocess.Popen(called, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(arguments: list[str]) -> None:
    """Run the command to its end."""
    process = start(arguments)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()[-2000:]


def rows(path: str) -> list[dict[str, Any]]:
    """What a file holds, without timing; whole lines only."""
    data = Path(path).read_bytes() if Path(path).exists() else b""
    return [untimed(json.loads(line)) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def check(kind: str, kills: int) -> None:
    """Kill one kind of run, finish it, and compare it with an undisturbed one."""
    rng = random.Random(kind)
    with tempfile.TemporaryDirectory() as place:
        whole, output = f"{place}/whole.jsonl", f"{place}/killed.jsonl"
        finish(command(kind, Path(place), whole))
        for _ in range(kills):
            if len(rows(output)) >= len(rows(whole)):  # it has come to its end in between: begin anew
                Path(output).unlink()
            before = len(rows(output))
            process = start(command(kind, Path(place), output), seconds=0.002)
            wanted = before + rng.randint(0, 4)
            while process.poll() is None and len(rows(output)) < wanted:
                time.sleep(0.002)
            time.sleep(rng.random() * 0.02)
            process.kill()
            process.communicate(timeout=300)
            known = [row["key"] for row in rows(output) if "key" in row]
            assert before - 1 <= len(known) == len(set(known))
        finish(command(kind, Path(place), output))
        assert rows(output) == rows(whole)


@pytest.mark.parametrize("kind", ["eval", "certify"])
def test_a_run_that_was_killed_ends_like_an_undisturbed_one(kind: str) -> None:
    check(kind, kills=4)


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    output = str(tmp_path / "run.jsonl")
    process = start(command("eval", tmp_path, output), seconds=0.4)
    while len(rows(output)) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Run the same command again to resume" in said.decode()
    assert "Traceback" not in said.decode()
    assert len(rows(output)) >= 3


if __name__ == "__main__":
    for each in ("eval", "certify"):
        check(each, int(sys.argv[1]) if len(sys.argv) > 1 else 100)
