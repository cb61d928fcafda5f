"""A server that preloads the application forks its workers while other threads answer: the workers answer too."""

from __future__ import annotations

import subprocess
import sys

import pytest

from robustrag_integrations import forks
from robustrag_integrations.forks import lock_held_over_forks, renew_in_children
from tests.needs import needing

pytestmark = needing("FORK")

# In a process of its own, since pytest's has threads that nobody here knows of. `work` is what threads of the parent do
# all the time, and what every child does once.
_PRELOADED = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")  # Python warns of forks next to threads, which is what servers do
{setup}
expected = work()
stopped = threading.Event()
def busy():
    while not stopped.is_set():
        work()
threads = [threading.Thread(target=busy, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
hung = 0
for number in range({forks}):
    time.sleep(0.003 * (number % 7))
    child = os.fork()
    if not child:
        os._exit(0 if work() == expected else 3)
    until = time.monotonic() + 20
    done, status = os.waitpid(child, os.WNOHANG)
    while not done and time.monotonic() < until:
        time.sleep(0.002)
        done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    hung += not done or status != 0
stopped.set()
for thread in threads:
    thread.join(20)
print("hung", hung, "parent", work() == expected, flush=True)
os._exit(0)
"""

_KEYWORDS = """
from robustrag_integrations.keywords import SpacyKeywordExtractor
extract = SpacyKeywordExtractor()
def work():
    return extract("The highest mountain of the world is Mount Everest, in Nepal.")
"""
_OWN_PIPELINE = """
import spacy
from robustrag_integrations.keywords import SpacyKeywordExtractor
from robustrag_integrations.keywords.pipelines import SHIPPED_FOLDER
nlp = spacy.load(SHIPPED_FOLDER)
def work():
    return SpacyKeywordExtractor(nlp)("Quito lies in Ecuador.")
"""
_ANSWERS = """
from robustrag_integrations import CallableModel, KeywordAggregation
def model(prompt):
    time.sleep(0.004)
    return "Paris"
defense = KeywordAggregation(CallableModel(model, max_concurrency=2))
def work():
    return defense.answer("Where?", ["It is Paris."] * 4).text
"""
_TIME_LIMITS = _ANSWERS.replace("max_concurrency=2", "max_concurrency=2, timeout=10")
_JUDGE = """
from robustrag_integrations import CallableModel
from robustrag_integrations.metrics import LLMJudge
judge = LLMJudge(CallableModel(lambda prompt: "85"))
def work():
    return [judge(f"answer {n}", ["Paris"]) for n in range(20)] and judge.unreadable
"""
_LANGCHAIN = """
from langchain_core.language_models import FakeListChatModel
from langchain_robustrag.limits import CallLimit
limit = CallLimit(2)
def work():
    with limit.slot(None):
        time.sleep(0.004)
    return True
"""


def _hung(setup: str, forks: int = 12) -> str:
    program = _PRELOADED.format(setup=setup, forks=forks)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=290, check=False)
    return done.stdout.strip() or done.stderr[-2000:]


@pytest.mark.parametrize(
    "setup",
    [_KEYWORDS, _OWN_PIPELINE, _ANSWERS, _TIME_LIMITS, _JUDGE],
    ids=["keywords", "own", "answers", "time", "judge"],
)
def test_children_forked_while_threads_answer_do_the_same_work(setup: str) -> None:
    assert _hung(setup) == "hung 0 parent True"


def test_a_chains_slots_are_free_in_children() -> None:
    pytest.importorskip("langchain_core")
    assert _hung(_LANGCHAIN) == "hung 0 parent True"


def _in_a_child(check: str) -> int:
    return subprocess.run([sys.executable, "-c", check], timeout=60, check=False).returncode


def test_a_lock_that_is_made_while_a_fork_waits_is_waited_for_too() -> None:
    assert (
        _in_a_child(
            """
import os, threading, time, warnings
warnings.simplefilter("ignore")
from robustrag_integrations.forks import lock_held_over_forks
first, made, held = lock_held_over_forks(), [], threading.Event()
def hold() -> None:
    with first:
        held.set()
        time.sleep(0.3)
        made.append(lock_held_over_forks())
        made[0].acquire()
    time.sleep(0.5)
    made[0].release()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if not child:
    os._exit(0 if made[0].acquire(timeout=5) else 3)
thread.join()
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        )
        == 0
    )


def test_forking_waits_for_who_holds_a_lock_and_the_child_finds_it_free() -> None:
    assert (
        _in_a_child(
            "import os, threading, time\n"
            "from robustrag_integrations.forks import lock_held_over_forks\n"
            "lock, inside = lock_held_over_forks(), threading.Event()\n"
            "state = []\n"
            "def change():\n"
            "    with lock:\n"
            "        state.append(1); inside.set(); time.sleep(0.2); state.append(2)\n"
            "threading.Thread(target=change).start()\n"
            "inside.wait()\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    os._exit(0 if lock.acquire(timeout=1) and state == [1, 2] else 1)\n"
            "assert lock.acquire(timeout=1)\n"
            "lock.release()\n"
            "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        == 0
    )


def test_a_fork_waits_for_a_thread_that_takes_a_later_lock_before_an_earlier_one() -> None:
    assert (
        _in_a_child(
            "import os, threading, time\n"
            "from robustrag_integrations.forks import lock_held_over_forks\n"
            "first, second, inside = lock_held_over_forks(), lock_held_over_forks(), threading.Event()\n"
            "def change():\n"
            "    with second:\n"
            "        inside.set(); time.sleep(0.2)\n"
            "        with first: pass\n"
            "threading.Thread(target=change).start()\n"
            "inside.wait()\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    os._exit(0 if first.acquire(timeout=1) and second.acquire(timeout=1) else 1)\n"
            "assert first.acquire(timeout=1) and second.acquire(timeout=1)\n"
            "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        == 0
    )


def test_locks_and_owners_are_held_weakly() -> None:
    class Owner:
        pass

    owners = [Owner() for _ in range(50)]
    locks = [lock_held_over_forks() for _ in range(50)]
    for owner in owners:
        renew_in_children(owner, lambda owner: None)
    held, renewed = len(forks._held), len(forks._renewed)
    del owners, locks, owner
    kept, last = lock_held_over_forks(), Owner()
    renew_in_children(last, lambda owner: None)
    assert len(forks._held) <= held - 49
    assert len(forks._renewed) <= renewed - 49
    assert kept.acquire(timeout=1)
