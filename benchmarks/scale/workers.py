"""How an evaluation on Ray gains from workers: `python -m benchmarks.scale.workers`.

Two models: one that waits, as for an API, and the bundled reader, which computes. Workers take some seconds to start;
what is compared is the pace after that.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import count
from benchmarks.scale.world import Scene
from robustrag_integrations.evaluation.run.config import read_config
from robustrag_integrations.evaluation.run.engines.ray import RayEngine
from robustrag_integrations.evaluation.run.planning import Job, make_plan

WAIT = 0.25  # seconds of a call
MODELS = {
    f"an API of {1000 * WAIT:.0f} ms a call": "python:benchmarks.scale.workers:waits",
    "bundled reader": "bundled",
}
_WARM = 0.2  # of the rows, which come before the pace counts


def waits(prompt: str) -> str:
    """A model behind a function that takes its time."""
    time.sleep(WAIT)
    return "Strelsau" if "Strelsau" in prompt else "I don't know"


def jobs(model: str, questions: int, folder: str) -> Sequence[Job]:
    """Keyword aggregation over ten passages, one row per question."""
    data = _lands(Path(folder), questions) if model != "bundled" else "demo"
    given = {"data": [data], "models": [model], "defenses": ["keyword"], "attacks": ["none"], "tasks": ["qa"]}
    return make_plan(read_config({**given, "top_k": [10]})).jobs[:questions]


def _lands(folder: Path, questions: int) -> str:
    scene, path = Scene(), folder / "towns.jsonl"
    rows = [
        {"id": f"q{n}", "question": scene.question(n), "answer": "Strelsau", "incorrect": "Zenda"}
        | {"passages": [{"text": text, "source": f"s{i}"} for i, text in enumerate(scene.texts(n))]}
        for n in range(questions)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def measured(todo: Sequence[Job], workers: int) -> tuple[float, float]:
    """Questions per second once all workers are at work, and seconds until the first row."""
    came: list[float] = []
    began = time.perf_counter()
    RayEngine(workers=workers).run(todo, lambda row: came.append(time.perf_counter()))
    start = max(workers, int(_WARM * len(came)))
    return (len(came) - start) / (came[-1] - came[start - 1]), came[0] - began


def main(arguments: list[str] | None = None) -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.workers", description=__doc__)
    parser.add_argument("--questions", type=count, default=72, help="questions of each run")
    parser.add_argument("--workers", type=count, nargs="+", default=[1, 2, 4], help="numbers of workers")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print("| model | workers | questions a second | of ideal | first row after |\n|---|---:|---:|---:|---:|")
    for title, model in MODELS.items():
        alone: float | None = None
        for workers in options.workers:
            with tempfile.TemporaryDirectory() as folder:
                pace, first = measured(jobs(model, options.questions, folder), workers)
            alone = alone or pace / workers
            print(f"| {title} | {workers} | {pace:.2f} | {pace / workers / alone:.0%} | {first:.0f} s |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
