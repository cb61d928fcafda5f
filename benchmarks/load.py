"""Load: many questions at a time against a server on loopback, through both integrations, async and threaded.

    python -m benchmarks.load --questions 10000 --concurrency 64 --out docs/load

Every question is about a depot of its own, whose code three documents give, so that an answer that belongs to another
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
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOCUMENTS = 3  # per question; one call each, and one in the end
STYLES = ("langchain async", "langchain threads", "llamaindex async", "llamaindex threads")


@dataclass
class Load:
    """What one run was like; times in seconds, memory in MiB.

    Attributes:
        style: the integration, and how it was called.
        questions, concurrency: how many in all, and at a time.
        answered: how many got an answer.
        wrong: the questions whose answer is not their own.
        failed: what was raised, by question.
        elapsed: for all.
        times: of each question.
        server_times: of each request, as the server measured it.
        memory: (time, resident memory of this process) while it ran.
    """

    style: str
    questions: int
    concurrency: int
    answered: int = 0
    wrong: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    elapsed: float = 0.0
    times: list[float] = field(default_factory=list)
    server_times: list[float] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """The run in numbers."""
        return {
            "style": self.style,
            "questions": self.questions,
            "concurrency": self.concurrency,
            "lost": self.questions - self.answered,
            "another question's answer": len(self.wrong),
            "requests": len(self.server_times),
            "questions per second": round(self.questions / self.elapsed, 1),
            "p50 s": _percentile(self.times, 50),
            "p99 s": _percentile(self.times, 99),
            "server p50 s": _percentile(self.server_times, 50),
            "server p99 s": _percentile(self.server_times, 99),
            "memory after a tenth, MiB": round(self._memory_at(0.1)),
            "memory in the end, MiB": round(self._memory_at(1.0)),
        }

    def _memory_at(self, share: float) -> float:
        return self.memory[min(int(share * len(self.memory)), len(self.memory) - 1)][1] if self.memory else 0.0


def _percentile(values: list[float], share: int) -> float:
    return round(statistics.quantiles(values, n=100, method="inclusive")[share - 1], 4) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Asker:
    """How to ask question number n, sync and async, and how to close the connections of both."""

    ask: Callable[[int], str]
    aask: Callable[[int], Awaitable[str]]
    close: Callable[[], None]
    aclose: Callable[[], Awaitable[None]]


@contextmanager
def load_server(wait: float) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.load_server", "--wait", str(wait)]
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


def question(number: int) -> tuple[str, list[str], str]:
    """A question, its documents, and the only answer that is its own."""
    code = f"K{number * 7919 % 1_000_003:06d}X{number}"
    return f"What is the code of depot {number}?", [f"The code of depot {number} is {code}."] * DOCUMENTS, code


def phrase(response: str) -> set[str]:
    """The whole response as its only keyword: the load is on calls, not on linguistics."""
    return {response}


def langchain_asker(address: str, concurrency: int) -> Asker:
    """Through LangChain."""
    import httpx
    from langchain_core.documents import Document
    from langchain_openai import ChatOpenAI

    from langchain_robustrag import create_robust_documents_chain

    http, ahttp = _clients(httpx)
    llm = ChatOpenAI(
        model="load",
        base_url=f"{address}/v1",
        api_key="none",
        temperature=0,
        max_retries=0,
        http_client=http,
        http_async_client=ahttp,
    )
    chain = create_robust_documents_chain(llm, extractor=phrase, max_concurrency=concurrency * DOCUMENTS)

    def given(number: int) -> dict[str, Any]:
        asked, documents, _ = question(number)
        return {"input": asked, "context": [Document(text) for text in documents]}

    async def aask(number: int) -> str:
        return str(await chain.ainvoke(given(number)))

    return Asker(lambda number: str(chain.invoke(given(number))), aask, http.close, ahttp.aclose)


def llamaindex_asker(address: str, concurrency: int) -> Asker:
    """Through LlamaIndex."""
    import httpx
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.llms.openai_like import OpenAILike

    from llamaindex_robustrag import RobustRAGSynthesizer

    http, ahttp = _clients(httpx)
    llm = OpenAILike(
        model="load",
        api_base=f"{address}/v1",
        api_key="none",
        is_chat_model=True,
        context_window=4096,
        temperature=0.0,
        max_retries=0,
        http_client=http,
        async_http_client=ahttp,
    )
    workers = concurrency * DOCUMENTS
    synthesizer = RobustRAGSynthesizer(llm=llm, group_by="passage", extractor=phrase, num_workers=workers, attempts=1)

    def given(number: int) -> tuple[str, list[NodeWithScore]]:
        asked, documents, _ = question(number)
        return asked, [NodeWithScore(node=TextNode(text=t, id_=f"{number}/{i}")) for i, t in enumerate(documents)]

    async def aask(number: int) -> str:
        return str(await synthesizer.asynthesize(*given(number)))

    return Asker(lambda number: str(synthesizer.synthesize(*given(number))), aask, http.close, ahttp.aclose)


def _clients(httpx: Any) -> tuple[Any, Any]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
    return httpx.Client(limits=limits, timeout=120), httpx.AsyncClient(limits=limits, timeout=120)


def measure(style: str, questions: int, concurrency: int, wait: float) -> Load:
    """One run in one style."""
    load = Load(style, questions, concurrency)
    asker_of = langchain_asker if style.startswith("langchain") else llamaindex_asker
    with load_server(wait) as address:
        asker = asker_of(address, concurrency)
        with _watched_memory(load):
            began = time.perf_counter()
            if style.endswith("async"):
                asyncio.run(_ask_all_async(load, asker))
            else:
                with ThreadPoolExecutor(concurrency) as pool:
                    list(pool.map(lambda number: _ask(load, number, asker), range(questions)))
            load.elapsed = time.perf_counter() - began
        asker.close()
        with urllib.request.urlopen(f"{address}/times", timeout=60) as reply:  # noqa: S310 - our own server
            load.server_times = json.load(reply)
    return load


async def _ask_all_async(load: Load, asker: Asker) -> None:
    slots = asyncio.Semaphore(load.concurrency)

    async def one(number: int) -> None:
        async with slots:
            with _noted(load, number) as note:
                note(await asker.aask(number))

    await asyncio.gather(*map(one, range(load.questions)))
    await asker.aclose()


def _ask(load: Load, number: int, asker: Asker) -> None:
    with _noted(load, number) as note:
        note(asker.ask(number))


@contextmanager
def _noted(load: Load, number: int) -> Iterator[Callable[[str], None]]:
    """Time one question; what is called with its answer, or the exception, goes into the record."""
    began = time.perf_counter()

    def note(answer: str) -> None:
        load.times.append(time.perf_counter() - began)
        load.answered += 1
        if answer != question(number)[2]:
            load.wrong.append(number)

    try:
        yield note
    except Exception as error:
        load.failed[number] = f"{type(error).__name__}: {error}"


@contextmanager
def _watched_memory(load: Load, pause: float = 0.5) -> Iterator[None]:
    done = threading.Event()
    began = time.perf_counter()

    def watch() -> None:
        while True:
            load.memory.append((time.perf_counter() - began, _resident()))
            if done.wait(pause):
                load.memory.append((time.perf_counter() - began, _resident()))
                return

    thread = threading.Thread(target=watch, name="memory")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _resident() -> float:
    """MiB of this process; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    import resource

    return pages * resource.getpagesize() / 2**20


def picture(loads: list[Load], path: Path) -> None:
    """Memory over time, a line per run."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for load in loads:
        axes.plot([t for t, _ in load.memory], [m for _, m in load.memory], label=load.style)
    axes.set(xlabel="seconds", ylabel="resident memory, MiB", title="Memory under load", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Run all styles, print the figures, and write them with the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--wait", type=float, default=0.02, help="seconds that the server takes for an answer")
    parser.add_argument("--styles", nargs="+", choices=STYLES, default=list(STYLES))
    parser.add_argument("--out", type=Path, default=Path("load"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    loads = []
    for style in args.styles:
        loads.append(measure(style, args.questions, args.concurrency, args.wait))
        print(json.dumps(loads[-1].figures(), indent=2), flush=True)
        if loads[-1].failed:
            print("first failure:", next(iter(loads[-1].failed.values())), file=sys.stderr)
    (args.out / "load.json").write_text(json.dumps([load.figures() for load in loads], indent=2) + "\n")
    picture(loads, args.out / "memory.png")


if __name__ == "__main__":
    main()
