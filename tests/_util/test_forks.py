"""A server that preloads the application forks its workers: these answer, or say that they were forked too late."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.needs import needing

pytestmark = needing("FORK")

# In a process of its own, since pytest's has threads that nobody here knows of.
_SETUP = """
import asyncio, os, signal, threading, time, warnings
warnings.simplefilter("ignore")  # Python warns of forks next to threads, which is what servers do
from robustrag_integrations import CallableModel, KeywordAggregation

def said(prompt):
    time.sleep(0.005)
    return "Paris"

async def asaid(prompt):
    await asyncio.sleep(0.005)
    return "Paris"

def in_a_child(work):
    child = os.fork()
    if not child:
        signal.alarm(60)  # it hangs
        try:
            os._exit(work())
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def extractor(text):
    return {text}

defenses = [
    KeywordAggregation(model, extractor=extractor)
    for model in (
        CallableModel(said, max_concurrency=2),
        CallableModel(said, max_concurrency=2, timeout=20),
        CallableModel(async_fn=asaid, max_concurrency=2, timeout=20),
    )
]

def work():
    answers = [defense.answer("Where?", [f"It is Paris. {i}" for i in range(4)]) for defense in defenses]
    answers += [asyncio.run(defense.aanswer("Where?", [f"It is Paris. {i}" for i in range(4)])) for defense in defenses]
    return sum(answer.text != "Paris" for answer in answers)
"""


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _SETUP + program], capture_output=True, text=True, timeout=200, check=False
    )
    return done.stdout.strip() or done.stderr[-2000:]


@pytest.mark.parametrize("warm", ["pass", "work()"], ids=["cold", "used"])
def test_children_that_are_forked_between_questions_answer_and_so_do_their_children(warm: str) -> None:
    program = f"{warm}\nprint(in_a_child(work), in_a_child(lambda: work() or in_a_child(work)), work())"
    assert _run(program) == "0 0 0"


def test_a_child_that_was_forked_while_a_thread_answered_says_so_and_the_parent_goes_on() -> None:
    program = """
begun, go_on = threading.Event(), threading.Event()
def slow(prompt):
    begun.set()
    go_on.wait(60)
    return "Paris"
slow_one = KeywordAggregation(CallableModel(slow), extractor=extractor)
answered = []
passages = [f"It is Paris. {i}" for i in range(4)]
thread = threading.Thread(target=lambda: answered.append(slow_one.answer("Where?", passages).text))
thread.start()
begun.wait(60)
print(in_a_child(work), in_a_child(lambda: in_a_child(work)))
go_on.set()
thread.join(60)
print(answered, in_a_child(work))
"""
    lines = _run(program).splitlines()
    assert lines[0].startswith("RuntimeError this process was forked while another thread was answering")
    assert "fork before the first question" in lines[0]
    assert lines[2:] == ["9 9", "['Paris'] 0"]
