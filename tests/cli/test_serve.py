"""`robustrag serve`: what it refuses, warns of, and serves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.cli import main
from tests.helpers.endpoint import asking, posted
from tests.needs import needing

KEY = "ROBUSTRAG_API_KEY"
MODEL = "python:slow_model:answer"
SLOW_MODEL = """
import pathlib, time

def answer(prompt):
    pathlib.Path("asked").touch()
    time.sleep(1)
    return "Anna Lind"
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for library in ("starlette", "uvicorn", "bm25s"):
        pytest.importorskip(library, reason="the extra serve is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(KEY, raising=False)
    (tmp_path / "slow_model.py").write_text(SLOW_MODEL)
    (tmp_path / "notes").mkdir()
    for n in range(3):
        (tmp_path / "notes" / f"{n}.txt").write_text(f"Anna Lind runs the mill. Note {n}.")
    return tmp_path


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been served."""
    from robustrag_integrations.cli import serve

    found: list[Any] = []
    monkeypatch.setattr(serve, "serve_until_stopped", lambda app, socket, **more: found.append(app))
    return found


def serve(*options: str) -> int:
    return main(["serve", "--docs", "notes", "--model", MODEL, "--port", "0", *options])


def test_without_a_key_it_says_who_can_ask(
    notes: Path, served: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serve() == 0
    told = capsys.readouterr().err
    assert "anybody" not in told
    assert "(models: robustrag-consensus)" in told
    assert serve("--host", "0.0.0.0", "--vanilla") == 0
    told = capsys.readouterr().err
    assert f"warning: anybody who reaches 0.0.0.0 may ask, and read what documents say: set {KEY}" in told
    assert "(models: robustrag-consensus, vanilla)" in told
    monkeypatch.setenv(KEY, "a-long-key")
    assert serve("--host", "0.0.0.0") == 0
    shown = capsys.readouterr().err
    assert "anybody" not in shown
    assert "a-long-key" not in shown
    assert len(served) == 3


@pytest.mark.parametrize("key", ["", "  ", " padded", "ключ", "two\nlines"])
def test_a_key_that_no_client_can_send_is_refused(
    notes: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv(KEY, key)
    assert serve() == 2
    assert served == []


@pytest.mark.parametrize(
    "options",
    [
        ["--method", "vanilla"],
        ["--port", "65536"],
        ["--host", "192.0.2.1"],  # not this machine's
        ["--max-concurrent", "0"],
        ["--set", "eta=0.1"],  # of another defence
        ["--method", "keyword", "--set", "stop_when_decided=true"],
    ],
)
def test_wrong_options_end_before_anything_is_served(notes: Path, served: list[Any], options: list[str]) -> None:
    assert serve(*options) == 2
    assert served == []


@contextmanager
def started(notes: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """The command in a process of its own; its address, and what it said so far."""
    command = [sys.executable, "-m", "robustrag_integrations", "serve", "--docs", "notes", "--model", MODEL]
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[2]}:{notes}"}
    process = subprocess.Popen(
        [*command, "--port", "0", *options], stderr=subprocess.PIPE, text=True, env=environment, cwd=notes
    )
    try:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if "listening" in line:
                break
        yield process, lines[-1].split("listening on ")[1].split("/v1")[0], lines
    finally:
        process.kill()


def await_file(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


@needing("POSIX")
def test_it_finishes_the_answers_under_way_when_it_is_told_to_stop(notes: Path) -> None:
    with started(notes) as (process, address, lines):
        assert lines[-1].rstrip().endswith("(models: robustrag-consensus)")
        done: list[Any] = []
        asker = threading.Thread(target=lambda: done.append(posted(address, asking(model="robustrag-consensus"))))
        asker.start()
        await_file(notes / "asked")
        process.send_signal(signal.SIGTERM)
        asker.join(60)
        assert process.wait(60) in (0, -signal.SIGTERM)
        status, _, reply = done[0]
        assert status == 200
        assert reply["choices"][0]["message"]["content"] == "Anna Lind"
        assert process.stderr is not None
        log = process.stderr.read()
        assert "POST /v1/chat/completions: 200" in log
        assert "Note" not in log
        assert json.dumps(reply).count("runs the mill. Note") == 0
