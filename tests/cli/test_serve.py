"""`robustrag serve`: what it refuses, warns of, and serves."""

from __future__ import annotations

import json
import os
import re
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
    from robustrag_integrations.serve import server

    found: list[Any] = []
    monkeypatch.setattr(server, "run", lambda app, socket, keep_alive: found.append(app))
    return found


def serve(*options: str) -> int:
    return main(["serve", "--docs", "notes", "--model", MODEL, "--port", "0", *options])


def test_without_a_key_it_says_who_can_ask(
    notes: Path, served: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serve() == 0
    assert "anybody" not in capsys.readouterr().err
    assert serve("--host", "0.0.0.0") == 0
    assert f"warning: anybody who reaches 0.0.0.0 may ask, and read what documents say: set {KEY}" in (
        capsys.readouterr().err
    )
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
        ["--defense", "vanilla"],
        ["--port", "65536"],
        ["--host", "192.0.2.1"],  # not this machine's
        ["--max-concurrent", "0"],
        ["--workers", "0"],
        ["--workers", "-1"],
        ["--workers", "2.5"],
        ["--workers", "257"],
        ["--eta", "0.1"],  # of another defence
        ["--defense", "keyword", "--stop-when-decided"],  # keyword aggregation needs what all groups say
        ["--docs", "elsewhere"],
        ["--cors-origins", "example.org"],
        ["--cors-origins", "http://example.org/page"],
    ],
)
def test_wrong_options_end_before_anything_is_served(notes: Path, served: list[Any], options: list[str]) -> None:
    assert serve(*options) == 2
    assert served == []


def test_a_taken_port_is_said_before_the_model_is_loaded(
    notes: Path, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from robustrag_integrations.serve.server import bound

    with bound("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--docs", "notes", "--model", "python:nothing:here", "--port", port]) == 2
    assert f"cannot listen on --host 127.0.0.1 --port {port}" in capsys.readouterr().err


@needing("PROC")
def test_workers_answer_behind_one_address_are_replaced_and_finish_what_is_under_way(notes: Path) -> None:
    with started(notes, "--workers", "2", "--no-vanilla") as (process, address, lines):
        assert lines[-1].rstrip().endswith("(models: robustrag-consensus; 2 processes)")
        done: list[Any] = []
        askers = [
            threading.Thread(target=lambda: done.append(posted(address, asking(model="robustrag-consensus"))))
            for _ in range(6)
        ]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join(60)
        assert [status for status, _, _ in done] == [200] * 6
        by_process = workers_of(process.pid)
        assert len(by_process) == 2
        (notes / "slow_model.py").write_text("no_model = True")
        os.kill(by_process[0], signal.SIGKILL)
        assert process.stderr is not None
        said = (line for line in process.stderr if "warning: " in line)
        assert "a process ended with code -9; another one takes its place in 1 s" in next(said)
        assert "slow_model" in next(said)
        assert posted(address, asking(model="robustrag-consensus"))[0] == 200
        (notes / "slow_model.py").write_text(SLOW_MODEL)
        (notes / "asked").unlink()
        asker = threading.Thread(target=lambda: done.append(posted(address, asking(model="robustrag-consensus"))))
        asker.start()
        await_file(notes / "asked")
        process.send_signal(signal.SIGTERM)
        asker.join(60)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert done[-1][0] == 200
        assert len(done) == 7
        left = re.findall(r"There appear to be (\d+) leaked semaphore", process.stderr.read())
        assert left in ([], ["1"])  # what was killed could not clean up


@needing("PROC")
def test_workers_stop_when_the_first_process_is_killed(notes: Path) -> None:
    with started(notes, "--workers", "2") as (process, _, _):
        found = workers_of(process.pid)
        process.kill()
        process.wait(60)
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in found) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [pid for pid in found if Path(f"/proc/{pid}").exists()]


@needing("POSIX")
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--docs", "notes", "--model", "python:nothing:here"], 1, "nothing"),
        (["--docs", "empty", "--model", MODEL], 1, "empty"),
    ],
)
def test_what_a_worker_cannot_load_is_said_once_and_ends_the_command(
    notes: Path, options: list[str], code: int, said: str
) -> None:
    (notes / "empty").mkdir()
    command = [sys.executable, "-m", "robustrag_integrations", "serve", "--port", "0", "--workers", "2", *options]
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[2]}:{notes}"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=notes, timeout=100)
    assert ended.returncode == code
    assert ended.stderr.count("error:") == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_workers_with_a_local_model_are_told_what_that_takes(
    notes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from robustrag_integrations.serve import workers

    counts: list[int] = []
    monkeypatch.setattr(workers, "run_workers", lambda work, count, **more: counts.append(count))
    assert serve("--workers", "3") == 0
    assert "copies" not in capsys.readouterr().err
    assert main(["serve", "--docs", "notes", "--port", "0", "--workers", "3"]) == 0
    assert "--workers 3 holds 3 copies of the weights of 'bundled'" in capsys.readouterr().err
    assert counts == [3, 3]


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


def workers_of(pid: int) -> list[int]:
    """The processes that serve, but for the one that multiprocessing keeps for itself."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat, line = (entry / "stat").read_text(), (entry / "cmdline").read_text()
        except OSError:  # it has ended
            continue
        if int(stat.rpartition(")")[2].split()[1]) == pid and "spawn_main" in line:
            found.append(int(entry.name))
    return found


def await_file(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


@needing("POSIX")
def test_it_finishes_the_answers_under_way_when_it_is_told_to_stop(notes: Path) -> None:
    with started(notes, "--no-vanilla") as (process, address, lines):
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
