"""Benchmarks of start-up: imports and the first answer of a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.inference import Bench
from benchmarks.results import Ratio, Target, said

# Seconds that the process computed, and the most memory that it held, in MB. On Linux the kernel's figure of this
# program alone: the other one begins with the memory of the program that started it. Compiled files are written
# whatever the environment says.
_MEASURE = """
import resource, sys, time
sys.dont_write_bytecode = False
def _memory():
    try:
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)
def _timed(work):
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)
"""
_IMPORT = """
def _work():
    import {module}
"""
_ANSWER = """
def _work():
    import robustrag_integrations as r
    global defense
    defense = r.{method}(r.CallableModel(lambda prompt: "{reply}"))
    defense.answer(*_asked)
_asked = "Who built the bridge?", [f"Account {{i}}: the bridge was built by Bo Ek." for i in range(10)]
"""
_FRAMEWORKS = {
    "langchain_robustrag": "langchain_core.language_models, langchain_core.output_parsers, langchain_core.prompts, "
    "langchain_core.retrievers, langchain_core.runnables, langchain_core.tools",
    "llamaindex_robustrag": "llama_index.core",
}


def ratios(bench: Bench) -> list[Ratio]:
    """Measure every figure in fresh processes, after one that does not count (it writes the compiled files)."""

    def measured(code: str) -> tuple[list[float], ...]:
        runs = [printed(_MEASURE + code) for _ in range(bench.repeats + 1)][1:]
        return tuple(list(column) for column in zip(*runs, strict=True))

    def row(name: str, values: list[float], most: float | None = None) -> Ratio:
        bound: dict[str, Target] = {} if most is None else {"cpu": ("<=", most), "cuda": ("<=", most)}
        return said(Ratio(name, tuple(values), bound))

    def of_one(code: str) -> tuple[list[float], list[float]]:
        milliseconds, memory = measured(code + "print([_timed(_work), _memory()])")
        return milliseconds, memory

    milliseconds, memory = of_one(_IMPORT.format(module="robustrag_integrations"))
    found = [
        row("import robustrag_integrations: ms", milliseconds, 50.0),
        row("import robustrag_integrations: MB in all", memory, 30.0),
    ]
    for method, reply in _REPLIES.items():
        milliseconds, memory = of_one(_ANSWER.format(method=method, reply=reply))
        found.append(row(f"import and first answer, {method}: ms", milliseconds, 1000.0))
        found.append(row(f"import and first answer, {method}: MB in all", memory))
    for package, framework in _FRAMEWORKS.items():
        if find_spec(framework.split(".")[0]):
            code = f"import {framework}\n{_IMPORT.format(module=package)}"
            found.append(row(f"import {package} after its framework: ms", of_one(code)[0]))
    found.append(row("robustrag --help: ms", of_one(_HELP)[0]))
    return found


_REPLIES = {
    "KeywordAggregation": "It was built by Bo Ek.",
    "ConsensusAggregation": "It was built by Bo Ek, or I don't know.",
    "VanillaRAG": "It was built by Bo Ek.",
}
_HELP = """
def _work():
    import contextlib, io
    from robustrag_integrations.cli import main
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(["--help"])
"""


def printed(code: str) -> Any:
    """Run code in a new Python process, and return the JSON that it prints. Its standard error is passed through."""
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - our own code
    return json.loads(done.stdout)
