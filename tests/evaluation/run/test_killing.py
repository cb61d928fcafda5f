from __future__ import annotations

import signal
import time

import pytest

from tests.evaluation.killing import COMMANDS, check, eval_command, finish, rows, start


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_run_that_was_killed_ends_like_an_undisturbed_one(kind) -> None:
    assert "undisturbed" in check(kind, kills=4)


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path) -> None:
    whole, output = str(tmp_path / "whole.jsonl"), str(tmp_path / "run.jsonl")
    process = start(eval_command(tmp_path, output), seconds=0.4)
    while len(rows(output)) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Run the same command again to resume" in said.decode()
    assert "Traceback" not in said.decode()
    made = len(rows(output))
    finish(eval_command(tmp_path, output))
    finish(eval_command(tmp_path, whole))
    assert 3 <= made < len(rows(whole))
    assert rows(output) == rows(whole)
