"""Rows that workers of an executor make are those of one process; whatever ends them, what is made is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.evaluation.run.bench import LocalEngine
from robustrag_integrations.evaluation.run.config import ConfigError
from robustrag_integrations.evaluation.run.runner import RunStopped, evaluate
from robustrag_integrations.evaluation.run.workers import WorkerError
from tests.evaluation.rows import rows_in
from tests.evaluation.worlds import lands_config, untimed
from tests.needs import ROOT, or_skip

Row = dict[str, Any]


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., Any]:
    return partial(lands_config, tmp_path)


@pytest.fixture
def output(tmp_path: Path) -> str:
    return str(tmp_path / "run.jsonl")


@pytest.fixture
def pool() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, get_context("spawn")) as workers:
        yield workers


class Stops:
    """A watcher that is interrupted after so many rows."""

    def __init__(self, after: int) -> None:
        self._left = after

    def start(self, total: int, known: int, notes: object) -> None:
        pass

    def row(self, row: Row) -> None:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


def kept(output: str) -> list[Row]:
    return [untimed(row) for row in rows_in(output)]


def assert_each_once(output: str) -> None:
    keys = [row["key"] for row in rows_in(output)[1:]]
    assert len(keys) == len(set(keys))


def test_processes_and_threads_make_the_rows_of_one_process(config, output, pool, tmp_path) -> None:
    whole = str(tmp_path / "whole.jsonl")
    evaluate(config(), output=whole)
    done = evaluate(config(), output=output, executor=pool)
    assert (done.made, done.failed) == (len(done.rows), 0)
    assert kept(output) == kept(whole)
    with ThreadPoolExecutor(3) as threads:
        cached = LocalEngine(str(tmp_path / "cache"))
        again = evaluate(config(), executor=threads, engine=cached)
        known = evaluate(config(), executor=threads, engine=cached)
    assert [untimed(row) for row in again.rows] == kept(whole)[1:]
    assert all(row["timing"]["cached_calls"] for row in known.rows)


@pytest.mark.parametrize("after", [1, 9])
def test_an_interrupt_keeps_what_is_made_and_the_rest_is_made_once(config, output, pool, tmp_path, after) -> None:
    whole = str(tmp_path / "whole.jsonl")
    evaluate(config(), output=whole)
    with pytest.raises(KeyboardInterrupt):
        evaluate(config(), output=output, executor=pool, watcher=Stops(after))
    half = len(rows_in(output)) - 1
    assert half >= after
    assert_each_once(output)
    done = evaluate(config(), output=output, executor=pool)
    assert done.made == len(done.rows) - half
    assert kept(output) == kept(whole)


def test_a_killed_worker_stops_the_run_and_loses_no_row_that_came(config, output, tmp_path, monkeypatch) -> None:
    deadly = tmp_path / "deadly"
    monkeypatch.setenv("LIGHT_DEADLY", str(deadly))
    mine = config(models=["python:tests.evaluation.light:deadly"])
    whole = str(tmp_path / "whole.jsonl")
    evaluate(mine, output=whole)
    deadly.touch()
    with (
        ProcessPoolExecutor(2, get_context("spawn")) as workers,
        pytest.raises(WorkerError, match="ended before its row was made"),
    ):
        evaluate(mine, output=output, executor=workers)
    before = kept(output)[1:]
    assert all(row in kept(whole) for row in before)
    with ProcessPoolExecutor(2, get_context("spawn")) as workers:
        done = evaluate(mine, output=output, executor=workers)
    assert done.made == len(done.rows) - len(before)
    assert kept(output) == kept(whole)


def test_a_failing_row_is_recorded_as_in_one_process(config, output, pool, tmp_path) -> None:
    mine = config(models=["python:tests.evaluation.light:partly_broken"])
    whole = str(tmp_path / "whole.jsonl")
    alone, shared = evaluate(mine, output=whole), evaluate(mine, output=output, executor=pool)
    assert alone.failed == shared.failed > 0
    assert kept(output) == kept(whole)


def test_what_cannot_be_used_is_said_in_the_words_of_one_process(config, pool) -> None:
    with pytest.raises(ConfigError, match="samples, so that no certificate would hold"):
        evaluate(config(models=["python:tests.evaluation.light:sampler"]), executor=pool)
    with pytest.raises(RunStopped, match="no such luck"):
        evaluate(config(models=["python:tests.evaluation.light:broken"], ranks=[1, 2, 3, 4]), executor=pool)


_RUN = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from robustrag_integrations.evaluation.run.runner import evaluate
from tests.evaluation.worlds import lands_config
if __name__ == "__main__":
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        evaluate(lands_config(Path(sys.argv[1])), output=sys.argv[2], executor=pool)
"""


def test_ctrl_c_reaches_the_workers_and_a_resumed_run_ends_like_an_undisturbed_one(config, output, tmp_path) -> None:
    or_skip("POSIX")
    whole = str(tmp_path / "whole.jsonl")
    evaluate(config(), output=whole)
    script = tmp_path / "script.py"
    script.write_text(_RUN)
    environment = {**os.environ, "LIGHT_SECONDS": "0.1", "PYTHONPATH": str(ROOT)}
    called = [sys.executable, str(script), str(tmp_path), output]
    process = subprocess.Popen(called, env=environment, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True)
    ends = time.monotonic() + 120
    while not (Path(output).exists() and len(rows_in(output)) > 3) and time.monotonic() < ends:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in said.decode()
    half = len(rows_in(output)) - 1
    assert 3 <= half < len(rows_in(whole)) - 1
    assert_each_once(output)
    with ThreadPoolExecutor(2) as threads:
        done = evaluate(config(), output=output, executor=threads)
    assert done.made == len(done.rows) - half
    assert kept(output) == kept(whole)


@pytest.mark.parametrize("engine", ["RAY", "DASK"])
def test_ray_and_dask_make_the_rows_and_resume(engine: str, tmp_path: Path) -> None:
    or_skip(engine)
    environment = {**os.environ, "HOME": str(tmp_path)}
    called = [sys.executable, str(ROOT / "examples" / "evaluate_on_machines.py"), engine.lower(), str(tmp_path)]
    for half in (10, None):  # rows of half the questions are there when the second run begins
        limit = [] if half is None else [str(half)]
        done = subprocess.run(
            [*called, *limit], env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
    kind = engine.lower()
    assert f"{kind}: 80 rows, 40 made now, 0 failed\n{kind}: 80 rows, 0 made now, 0 failed" in done.stdout
    path = str(tmp_path / "rows.jsonl")
    assert_each_once(path)
    shared = kept(path)
    Path(path).unlink()
    subprocess.run(
        [*called[:2], "processes", str(tmp_path)], env=environment, check=True, capture_output=True, timeout=240
    )
    assert kept(path) == shared
