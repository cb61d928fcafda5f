"""Load on `robustrag serve`: questions a second of one process behind its address, and of several.

    python -m benchmarks.load_serve --questions 1000 --concurrency 64 --workers 1 2 --rounds 3 --out docs/load

Three programs share the machine: the endpoint, whose processes are counted here; what asks, one process; and the
model's server, which waits a fixed time. Each question brings its own documents.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.arguments import count, spread_over
from benchmarks.folders import make_folder
from benchmarks.load import load_server, measure
from benchmarks.load_askers import Asker, question

_STARTED = 120  # seconds that the endpoint has to start
_KEPT = ("questions", "concurrency", "documents", "lost", "why", "another question's answer", "questions per second")


@contextmanager
def endpoint(model: str, workers: int, concurrency: int, documents: int) -> Iterator[str]:
    """The address of `robustrag serve` in so many processes.

    Args:
        model: the address of the model's server.
        workers: how many processes.
        concurrency: how many questions are in flight in all.
        documents: per question.
    """
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+") as log:
        (Path(folder) / "page.txt").write_text("Nobody asks about this page.")
        command = [
            sys.executable,
            "-m",
            "robustrag_integrations",
            "serve",
            "--docs",
            f"{folder}/page.txt",
            "--port",
            "0",
        ]
        command += ["--model", "openai:load", "--base-url", f"{model}/v1", "--workers", str(workers), "--no-vanilla"]
        command += ["--allow-documents", "--max-documents", str(documents), "--accept-sampling"]
        command += ["--max-concurrent", str(concurrency), "--max-waiting", str(concurrency)]
        environment = {**os.environ, "OPENAI_API_KEY": "none"}
        process = subprocess.Popen(command, cwd=root, stderr=log, env=environment)  # noqa: S603 - our own command
        try:
            yield _address(process, Path(log.name))
        finally:
            process.terminate()
            process.wait(60)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + _STARTED
    while time.monotonic() < end and process.poll() is None:
        _, found, rest = log.read_text().partition("listening on ")
        if found:
            return rest.partition("/v1")[0]
        time.sleep(0.05)
    raise RuntimeError(f"the endpoint did not start: {log.read_text()[-2000:]}")


def serve_asker(address: str, concurrency: int, documents: int) -> Asker:
    """One request per question, with its documents, as aiohttp sends it."""
    import aiohttp

    sessions: list[Any] = []

    async def aask(number: int) -> str:
        if not sessions:
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        asked, texts, _ = question(number, documents)
        body = {
            "model": "robustrag-keyword",
            "messages": [{"role": "user", "content": asked}],
            "robustrag": {"documents": [{"text": text} for text in texts], "retrieve": False},
        }
        async with sessions[0].post(f"{address}/v1/chat/completions", json=body) as reply:
            said = await reply.json()
            if reply.status != 200:
                raise RuntimeError(f"{reply.status}: {said}")
            return str(said["choices"][0]["message"]["content"])

    async def aclose() -> None:
        for session in sessions:
            await session.close()

    return Asker(None, aask, lambda: None, aclose)


def measure_serving(workers: int, questions: int, concurrency: int, documents: int, wait: float) -> dict[str, Any]:
    """One run.

    Args:
        workers: processes of the endpoint.
        questions: how many are asked.
        concurrency: how many at a time.
        documents: per question.
        wait: what the model's server takes for a request, in seconds.
    """
    with load_server(wait) as model, endpoint(model, workers, concurrency, documents) as address:
        load = measure(
            "serve async",
            questions,
            concurrency,
            wait,
            documents,
            address=address,
            asker_of=serve_asker,
            warm=concurrency,
        )
    found = load.figures()
    return {
        "workers": workers,
        **{name: found[name] for name in _KEPT},
        "ms of computing per question of what asks": round(1000 * load.computing / questions, 2),
        "p50 s": found["p50 s"],
        "p99 s": found["p99 s"],
    }


def main(arguments: list[str] | None = None) -> None:
    """Run all numbers of processes in turn, print the figures and write them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load_serve", description=__doc__.splitlines()[0])
    spread_over(parser, 1000, 64, "seconds that the model's server takes for a request", 0.02)
    parser.add_argument(
        "--workers", nargs="+", type=count, default=[1, 2], help="processes of the endpoint, one run each"
    )
    parser.add_argument("--rounds", type=count, default=1, help="how often, in turn")
    parser.add_argument("--out", type=Path, default=Path("load"), help="folder for the figures")
    args = parser.parse_args(arguments)
    make_folder(parser, "--out", args.out)
    found = []
    for workers in args.workers * args.rounds:
        found.append(measure_serving(workers, args.questions, args.concurrency, args.documents, args.wait))
        print(json.dumps(found[-1], indent=2), flush=True)
    (args.out / "serve.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
