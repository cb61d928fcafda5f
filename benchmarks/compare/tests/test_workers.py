"""Rows that workers of an executor make are those of one process; whatever ends them, what is made is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare.workers import WorkerEngine, WorkerError
from robustrag_integrations.evaluation.run.runner import evaluate
from tests.evaluation.rows import rows_in
from tests.evaluation.worlds import lands_config, untimed

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


def kept(output: str) -> list[Row]:
    return [untimed(row) for row in rows_in(output)]


def assert_each_once(output: str) -> None:
    keys = [row["key"] for row in rows_in(output)[1:]]
    assert len(keys) == len(set(keys))


def test_processes_and_threads_make_the_rows_of_one_process(config, output, pool, tmp_path) -> None:
    whole = str(tmp_path / "whole.jsonl")
    evaluate(config(), output=whole)
    done = evaluate(config(), output=output, engine=WorkerEngine(pool))
    assert (done.made, done.failed) == (len(done.rows), 0)
    assert kept(output) == kept(whole)
    with ThreadPoolExecutor(3) as threads:
        cached = WorkerEngine(threads, str(tmp_path / "cache"))
        again = evaluate(config(), engine=cached)
        known = evaluate(config(), engine=cached)
    assert [untimed(row) for row in again.rows] == kept(whole)[1:]
    assert all(row["timing"]["cached_calls"] for row in known.rows)


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
        evaluate(mine, output=output, engine=WorkerEngine(workers))
    before = kept(output)[1:]
    assert all(row in kept(whole) for row in before)
    with ProcessPoolExecutor(2, get_context("spawn")) as workers:
        done = evaluate(mine, output=output, engine=WorkerEngine(workers))
    assert done.made == len(done.rows) - len(before)
    assert kept(output) == kept(whole)
