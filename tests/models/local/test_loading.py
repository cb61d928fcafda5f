"""Threads that load models at once: each gets a whole one, and so does every load after them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra local is not installed")

# In a process of its own: what goes wrong stays wrong for all later loads.
LOADS = """
import sys, threading, time
from robustrag_integrations.models.local.model import LocalModel
from robustrag_integrations.models.providers import NamedModel

loads = {
    "bundled": LocalModel.bundled,
    "named": NamedModel("bundled").load,
    "low": lambda: LocalModel.bundled(dtype="bfloat16"),
}
done = []

def load(name):
    loads[name]()
    done.append(name)

threads = [threading.Thread(target=load, args=(name,)) for name in sys.argv[2:]]
for thread in threads:
    thread.start()
    time.sleep(float(sys.argv[1]))
for thread in threads:
    thread.join()
load("bundled")
print(len(done))
"""


@pytest.mark.parametrize(("pause", "names"), [("0", ["bundled"] * 3), ("0.05", ["named", "bundled", "low"])])
def test_every_thread_and_every_later_load_gets_a_whole_model(pause: str, names: list[str]) -> None:
    assert run(LOADS, pause, *names) == str(len(names) + 1)


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()[-1]
