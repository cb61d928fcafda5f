"""Killing evaluation and certification runs at random moments, and looking at what they leave.

`python -m tests.evaluation.killing 100` kills each kind of run a hundred times (`kill -9`), resumes it after each, and
compares the file it ends with to that of an undisturbed run. Nothing but `timing` may differ.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.evaluation.worlds import LIGHT, untimed, write_questions

_START = "import sys; from robustrag_integrations.cli import main; sys.exit(main(sys.argv[1:]))"


def eval_command(folder: Path, output: str) -> list[str]:
    """A run of some dozens of rows that needs neither torch nor spaCy."""
    data = write_questions(folder, count=4)
    return [
        *("eval", "--data", data, "--task", "mc", "--model", LIGHT, "--defense", "no-rag", "vanilla", "voting"),
        *("--attack", "pia", "--rank", "first", "middle", "last", "--certify", "1", "2", "--top-k", "4"),
        *("--cache", str(folder / "cache"), "--concurrency", "3", "--output", output),
    ]


def certify_command(folder: Path, output: str) -> list[str]:
    """A certification of some questions."""
    data = write_questions(folder, count=25)
    return [
        *("certify", data, "--defense", "voting", "--model", LIGHT, "--corruption-size", "1", "2", "--metric", "exact"),
        *("--cache", str(folder / "cache"), "--output", output),
    ]


COMMANDS = {"eval": eval_command, "certify": certify_command}


def start(command: Sequence[str], *, seconds: float = 0.0) -> subprocess.Popen[bytes]:
    """The command in a process of its own, whose model takes so many seconds for a call."""
    environment = {**os.environ, "LIGHT_SECONDS": str(seconds), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", _START, *command],
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(command: Sequence[str]) -> None:
    """Run the command to its end."""
    process = start(command)
    _, said = process.communicate(timeout=300)
    if process.returncode:
        raise AssertionError(f"exit code {process.returncode}: {said.decode()[-2000:]}")


def rows(path: str) -> list[dict[str, Any]]:
    """What a file holds, without timing; whole lines only."""
    data = Path(path).read_bytes() if Path(path).exists() else b""
    return [untimed(json.loads(line)) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def kill_at_random(command: Sequence[str], output: str, kills: int, rng: random.Random, *, fresh: int) -> int:
    """Kill the command so many times while it writes; how many of the kills hit a running process.

    A run that has come to its end in between begins anew, `fresh` is the number of lines that it then has.
    """
    hit = 0
    for _ in range(kills):
        if len(rows(output)) >= fresh:
            Path(output).unlink()
        before = len(rows(output))
        process = start(command, seconds=0.002)
        wanted = before + rng.randint(0, 4)
        while process.poll() is None and len(rows(output)) < wanted:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            hit += 1
        process.communicate(timeout=300)
        known = [row["key"] for row in rows(output) if "key" in row]
        if len(known) < before - 1 or len(known) != len(set(known)):
            raise AssertionError(f"{before} lines before, {len(known)} rows after, {len(set(known))} of them different")
    return hit


def check(kind: str, kills: int, seed: int = 0) -> str:
    """Kill one kind of run, finish it, and compare it with an undisturbed one."""
    rng = random.Random(f"{kind} {seed}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole, killed = str(folder / "whole.jsonl"), str(folder / "killed.jsonl")
        finish(COMMANDS[kind](folder, whole))
        hit = kill_at_random(COMMANDS[kind](folder, killed), killed, kills, rng, fresh=len(rows(whole)))
        finish(COMMANDS[kind](folder, killed))
        if rows(killed) != rows(whole):
            raise AssertionError(f"{kind}: after {kills} kills the file differs from that of an undisturbed run")
        return f"{kind}: {kills} kills, {hit} of a running process; the final file is that of an undisturbed run"


if __name__ == "__main__":
    for name in COMMANDS:
        print(check(name, int(sys.argv[1]) if len(sys.argv) > 1 else 100), flush=True)
