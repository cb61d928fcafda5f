"""Load test: many questions at a time against a server on loopback, next to clients that only send the requests.

    python -m benchmarks.load --questions 256 --concurrency 64 --rounds 2 --out load

Every question is about a depot of its own, whose code ten documents give, so that an answer that belongs to another
question shows. The server, a process of its own, waits a fixed time and keeps its own times to compare with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.arguments import count, make_folder
from benchmarks.load_askers import ASKERS, STYLES, Asker, question


@dataclass
class Load:
    """The results of one run; times in seconds, memory in MiB.

    Attributes:
        style: what asked, and how it was called.
        questions, concurrency: how many in all, and at a time.
        documents: per question, one request each; the final answer is one more.
        answered: how many got an answer.
        wrong: the questions whose answer is not their own.
        failed: what was raised, by question.
        elapsed: for all.
        computing: what this process computed meanwhile.
        errors: what made sources fail, as the answers have it.
        times: of each question.
        server_times: of each request, as the server measured it.
        memory: that this process held, again and again while it ran.
    """

    style: str
    questions: int
    concurrency: int
    documents: int = 10
    answered: int = 0
    wrong: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    elapsed: float = 0.0
    computing: float = 0.0
    errors: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    server_times: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return the run in numbers."""
        return {
            "style": self.style,
            "questions": self.questions,
            "concurrency": self.concurrency,
            "documents": self.documents,
            "lost": self.questions - self.answered,
            "why": dict(Counter(said[:200] for said in self.failed.values()).most_common(3)),
            "another question's answer": len(self.wrong),
            "sources that failed": len(self.errors),
            "requests": len(self.server_times),
            "questions per second": round(self.questions / self.elapsed, 1),
            "requests per second": round(len(self.server_times) / self.elapsed),
            "ms of computing per request": round(1000 * self.computing / max(1, len(self.server_times)), 3),
            "p50 s": _percentile(self.times, 50),
            "p99 s": _percentile(self.times, 99),
            "server p50 s": _percentile(self.server_times, 50),
            "server p99 s": _percentile(self.server_times, 99),
            "memory after a tenth, MiB": round(self._memory_at(0.1)),
            "memory in the end, MiB": round(self._memory_at(1.0)),
        }

    def _memory_at(self, share: float) -> float:
        return self.memory[min(int(share * len(self.memory)), len(self.memory) - 1)] if self.memory else 0.0


def _percentile(values: list[float], share: int) -> float:
    return round(statistics.quantiles(values, n=100, method="inclusive")[share - 1], 4) if len(values) > 1 else 0.0


@contextmanager
def load_server(wait: float) -> Iterator[str]:
    """Start a server in a process of its own that waits this many seconds before it answers, and return its address."""
    command = [sys.executable, "-m", "benchmarks.load_server", str(wait)]
    root = Path(__file__).resolve().parents[1]
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdin is not None  # noqa: S101 - as asked for
    assert process.stdout is not None  # noqa: S101
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def measure(
    style: str,
    questions: int,
    concurrency: int,
    wait: float,
    documents: int = 10,
    *,
    asker_of: Callable[[str, int, int], Asker] | None = None,
    warm: int = 0,
) -> Load:
    """Measure one run in one style.

    Args:
        style: one of `STYLES`.
        questions: how many are asked.
        concurrency: how many at a time.
        wait: what the server takes, in seconds.
        documents: per question.
        asker_of: what asks, in place of the style's own.
        warm: further questions that are asked before the clock starts, at once.
    """
    load = Load(style, questions, concurrency, documents)
    kind, _, called = style.partition(" ")
    with load_server(wait) as server:
        asker = (asker_of or ASKERS[kind])(server, concurrency, documents)
        numbers, before = range(questions), range(questions, questions + warm)
        with _watched_memory(load):
            if called == "async":
                asyncio.run(_ask_all_async(load, asker, numbers, before))
            else:
                _ask_all(load, asker, numbers, before)
        asker.close()
        load.errors = asker.errors
        with urllib.request.urlopen(f"{server}/times", timeout=60) as reply:  # noqa: S310 - our own server
            load.server_times = json.load(reply)[warm * (documents + 1) :]
    return load


@contextmanager
def _clocked(load: Load) -> Iterator[None]:
    computing, began = time.process_time(), time.perf_counter()
    yield
    load.elapsed, load.computing = time.perf_counter() - began, time.process_time() - computing


async def _ask_all_async(load: Load, asker: Asker, numbers: range, before: range) -> None:
    slots = asyncio.Semaphore(load.concurrency)

    async def one(number: int) -> None:
        async with slots:
            with _noted(load, number) as note:
                note(await asker.aask(number))

    await asyncio.gather(*map(asker.aask, before))
    with _clocked(load):
        await asyncio.gather(*map(one, numbers))
    await asker.aclose()


def _ask_all(load: Load, asker: Asker, numbers: range, before: range) -> None:
    ask = asker.ask
    assert ask is not None  # noqa: S101 - the styles say which can

    def one(number: int) -> None:
        with _noted(load, number) as note:
            note(ask(number))

    with ThreadPoolExecutor(load.concurrency) as pool:
        list(pool.map(ask, before))
        with _clocked(load):
            list(pool.map(one, numbers))


@contextmanager
def _noted(load: Load, number: int) -> Iterator[Callable[[str], None]]:
    """Time one question, and record its answer or its exception."""
    began = time.perf_counter()

    def note(answer: str) -> None:
        load.times.append(time.perf_counter() - began)
        load.answered += 1
        if answer != question(number, load.documents)[2]:
            load.wrong.append(number)

    try:
        yield note
    except Exception as error:
        load.failed[number] = f"{type(error).__name__}: {error}"


@contextmanager
def _watched_memory(load: Load) -> Iterator[None]:
    done = threading.Event()

    def watch() -> None:
        while True:
            load.memory.append(resident())
            if done.wait(0.5):
                load.memory.append(resident())
                return

    thread = threading.Thread(target=watch, name="memory")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def resident() -> float:
    """Return this process's memory in MiB; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    import resource

    return pages * resource.getpagesize() / 2**20


def main(arguments: list[str] | None = None) -> None:
    """Run all styles in turn, print the figures, and write them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=count, default=400, help="how many are asked (default 400)")
    parser.add_argument("--concurrency", type=count, default=64, help="how many of them at a time (default 64)")
    parser.add_argument(
        "--documents", type=count, default=10, help="per question, a request each; the answer is one more (default 10)"
    )
    parser.add_argument("--wait", type=float, default=0.02, help="seconds that the server takes (default 0.02)")
    parser.add_argument(
        "--styles",
        nargs="+",
        choices=STYLES,
        default=list(STYLES),
        metavar="STYLE",
        help=f"of {', '.join(STYLES)}; quoted",
    )
    parser.add_argument("--rounds", type=count, default=1, help="how often each style runs, in turn with the others")
    parser.add_argument("--out", type=Path, default=Path("load"), help="folder for the figures")
    args = parser.parse_args(arguments)
    make_folder(parser, "--out", args.out)
    sizes = args.questions, args.concurrency, args.wait, args.documents
    loads = []
    for style in args.styles * args.rounds:
        loads.append(measure(style, *sizes, warm=args.concurrency))
        print(json.dumps(loads[-1].figures(), indent=2), flush=True)
        if loads[-1].failed:
            print("first failure:", next(iter(loads[-1].failed.values())), file=sys.stderr)
    (args.out / "load.json").write_text(json.dumps([load.figures() for load in loads], indent=2) + "\n")


if __name__ == "__main__":
    main()
