"""Rows made on a Ray cluster: questions are sharded over workers with Ray Data, and rows come back as they are made.

All rows of a question go to one worker at a time, so that the calls they share are asked once. A worker that dies is
replaced and its shard done again elsewhere; rows that come twice are the same rows, and count once. What has not come
back when the driver dies is made by the next run.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.evaluation.run.bench import Bench
from robustrag_integrations.evaluation.run.planning import Job

SHARD = 8  # rows of one question that a worker makes before it hands them over
_STORE = 100 * 1024 * 1024  # bytes of object store on a cluster of our own; rows are small

Shards = tuple[tuple[Job, ...], ...]


@dataclass(frozen=True)
class RayEngine:
    """Makes rows on a Ray cluster.

    Every machine of the cluster needs this package, and what a model's name stands for: the folder of a local model,
    the key of a server in its environment, the module of a function.

    Attributes:
        cache: the folder of the cache of model calls, on each machine; None for none.
        workers: how many workers make rows; None for one per CPU of the cluster.
        address: of the cluster, for example `auto`; None uses the one this process is connected to, or starts one on
            this machine.
    """

    cache: str | None = None
    workers: int | None = None
    address: str | None = None

    def run(self, jobs: Sequence[Job], on_row: Callable[[dict[str, Any]], None], on_job: Callable[[Job], None]) -> None:
        """Make the rows, and hand over each as soon as its shard is done; which are begun is not known here.

        Raises:
            ImportError: Ray is not installed.
            ModelError, ConfigError: a model or a defence cannot be set up on a worker.
        """
        try:
            import ray
            import ray.data
        except ImportError as error:
            raise ImportError("--engine ray needs Ray: pip install 'robustrag-integrations[ray]'") from error
        with _connected(ray, self.address):
            _prepare(ray, jobs)
            shards = shards_of(jobs)
            for text in self._rows(ray, shards):
                on_row(json.loads(text))

    def _rows(self, ray: Any, shards: Shards) -> Iterator[str]:
        resources = ray.cluster_resources()
        cpus = int(resources.get("CPU", 1))
        workers = min(self.workers or cpus, len(shards))
        gpus = resources.get("GPU", 0) if any(job.setup.model.local for shard in shards for job in shard) else 0
        numbers = ray.data.from_items([{"shard": n} for n in range(len(shards))], override_num_blocks=len(shards))
        made = numbers.map_batches(
            Worker,
            fn_constructor_kwargs={"shards": [ray.put(shards)], "cache": self.cache},
            compute=ray.data.ActorPoolStrategy(size=workers),
            batch_size=1,
            num_cpus=min(1.0, cpus / workers),
            num_gpus=min(1.0, gpus / workers),
        )
        for row in made.iter_rows():
            yield str(row["row"])


class Worker:
    """Makes the rows of shards, one at a time; what a Ray actor holds.

    Args:
        shards: a list of the one reference to all shards, which a worker fetches once.
        cache: the folder of the cache; None for none.
    """

    def __init__(self, shards: Sequence[Any], cache: str | None) -> None:
        import ray

        self._shards: Shards = ray.get(shards[0])
        self._bench = Bench(cache)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        """The rows of a batch of shards, as JSON."""
        jobs = [job for number in batch["shard"] for job in self._shards[int(number)]]
        return {"row": [json.dumps(self._bench.row_now(job), allow_nan=False) for job in jobs]}


def shards_of(jobs: Sequence[Job]) -> Shards:
    """The jobs by question, at most `SHARD` together."""
    questions: dict[tuple[str, str, str], list[Job]] = {}
    for job in jobs:
        questions.setdefault((job.dataset, job.task, job.question.id), []).append(job)
    return tuple(
        tuple(group[start : start + SHARD]) for group in questions.values() for start in range(0, len(group), SHARD)
    )


def _prepare(ray: Any, jobs: Sequence[Job]) -> None:
    """Build every setup once on a worker, so that errors come before anything runs."""
    one_each = list({(job.setup, job.task): job for job in jobs}.values())

    def prepare(some: Sequence[Job]) -> None:
        Bench().prepare(some)

    try:
        ray.get(ray.remote(num_cpus=1, max_retries=3)(prepare).remote(one_each))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """A connection to the cluster; one that was opened here is closed again. No usage statistics are sent."""
    if ray.is_initialized():
        with _quiet(ray):
            yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {"object_store_memory": _STORE, "_node_ip_address": "127.0.0.1"} if address is None else {}
    ray.init(
        address=address or "local",
        include_dashboard=None if address else False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        **own,
    )
    try:
        with _quiet(ray):
            yield
    finally:
        ray.shutdown()


@contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Ray Data without its own progress bars and reports."""
    context = ray.data.DataContext.get_current()
    before = context.enable_progress_bars
    context.enable_progress_bars = False
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = before
        logger.setLevel(level)
