"""A Ray cluster of two nodes on this machine: the rows of one process, whatever dies in between."""

from __future__ import annotations

import logging
import os
import time
from functools import partial
from importlib.util import find_spec

import pytest

from robustrag_integrations.evaluation.run.config import ConfigError
from robustrag_integrations.evaluation.run.engines.ray import SHARD, RayEngine, shards_of
from robustrag_integrations.evaluation.run.planning import make_plan
from robustrag_integrations.evaluation.run.runner import evaluate
from tests.evaluation.rows import rows_in
from tests.evaluation.worlds import lands_config, untimed

if find_spec("ray") is None:
    pytest.skip("needs the extra ray", allow_module_level=True)

pytestmark = pytest.mark.timeout(600)

_STORE = 80 * 1024 * 1024
_TRIES = 3  # Ray gives its helpers a fixed time to start, which a busy machine does not always keep


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """A folder that models write to; workers inherit its name."""
    folder = tmp_path_factory.mktemp("notes")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LIGHT_NOTES", str(folder))
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.setenv("RAY_ENABLE_METRICS_COLLECTION", "0")
        patched.setenv("OMP_NUM_THREADS", "1")
        yield folder


@pytest.fixture(scope="module")
def cluster(notes):
    made = _started()
    import ray

    ray.init(address=made.address, logging_level=logging.ERROR, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def _started():
    from ray.cluster_utils import Cluster

    for left in reversed(range(_TRIES)):
        made = Cluster()
        try:
            made.add_node(num_cpus=1, object_store_memory=_STORE, include_dashboard=False)
            made.add_node(num_cpus=1, object_store_memory=_STORE)
            made.wait_for_nodes(timeout=60)
        except Exception:
            made.shutdown()
            if not left:
                raise
            time.sleep(2)
        else:
            return made
    raise AssertionError("unreachable")


@pytest.fixture
def config(tmp_path):
    return partial(lands_config, tmp_path, count=5)


def test_a_shard_is_a_question_and_never_long(config) -> None:
    jobs = make_plan(config()).jobs
    shards = shards_of(jobs)
    assert sorted(job.key for shard in shards for job in shard) == sorted(job.key for job in jobs)
    assert all(len({(j.task, j.question.id) for j in shard}) == 1 and len(shard) <= SHARD for shard in shards)


def test_two_nodes_make_the_rows_that_one_process_makes(cluster, config, notes, tmp_path) -> None:
    alone, spread = str(tmp_path / "alone.jsonl"), str(tmp_path / "spread.jsonl")
    mine = config(models=["python:tests.evaluation.light:noting"])
    done = evaluate(mine, output=spread, engine=RayEngine(workers=2))
    workers = {p.name for p in notes.iterdir()}
    assert done.failed == 0
    assert len(workers) >= 2
    assert str(os.getpid()) not in workers
    evaluate(mine, output=alone)
    assert [untimed(r) for r in rows_in(spread)] == [untimed(r) for r in rows_in(alone)]


def test_nothing_is_lost_when_a_worker_dies_in_the_middle(cluster, config, notes, tmp_path) -> None:
    output = str(tmp_path / "run.jsonl")
    mine = config(models=["python:tests.evaluation.light:dying"])
    done = evaluate(mine, output=output, engine=RayEngine(workers=2, cache=str(tmp_path / "cache")))
    assert (notes / "died").exists()
    assert (done.made, done.failed) == (len(make_plan(mine).jobs), 0)
    alone = evaluate(mine)
    assert [untimed(r) for r in rows_in(output)[1:]] == [untimed(r) for r in alone.rows]


class Interrupted:
    """A watcher that has had enough after some rows."""

    def __init__(self, after: int) -> None:
        self._left = after

    def start(self, total, known, notes) -> None:
        pass

    def job(self, job) -> None:
        pass

    def row(self, row) -> None:
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


def test_an_interrupted_run_goes_on_where_it_stopped_on_either_engine(cluster, config, tmp_path) -> None:
    output = str(tmp_path / "run.jsonl")
    with pytest.raises(KeyboardInterrupt):
        evaluate(config(), output=output, engine=RayEngine(workers=2), watcher=Interrupted(7))
    assert len(rows_in(output)) == 8
    whole = evaluate(config())
    done = evaluate(config(), output=output)
    assert done.made == len(whole.rows) - 7
    assert [untimed(r) for r in rows_in(output)[1:]] == [untimed(r) for r in whole.rows]


def test_what_cannot_work_is_said_before_anything_runs(cluster, config) -> None:
    with pytest.raises(ConfigError, match="decoding on 'python"):
        evaluate(config(tasks=["qa"], defenses=["decoding"]), engine=RayEngine(workers=2))


def test_nothing_is_lost_when_a_node_goes_away(cluster, config, tmp_path) -> None:
    """The last test: the cluster has one node less after it."""
    output = str(tmp_path / "run.jsonl")
    leaving = list(cluster.worker_nodes)[-1]

    class Removing(Interrupted):
        def row(self, row) -> None:
            self._left -= 1
            if not self._left:
                cluster.remove_node(leaving, allow_graceful=False)

    done = evaluate(config(), output=output, engine=RayEngine(workers=2), watcher=Removing(9))
    assert done.failed == 0
    assert [untimed(r) for r in rows_in(output)[1:]] == [untimed(r) for r in evaluate(config()).rows]
