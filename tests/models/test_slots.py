"""Slots for calls in threads: no more at a time than there are, and each is given back whatever happens."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from robustrag_integrations.models.slots import Slots


@pytest.mark.parametrize("count", [1, 3])
def test_no_more_hold_one_than_there_are(count: int) -> None:
    slots, lock = Slots(count), threading.Lock()
    full, here, most = threading.Barrier(count), 0, 0

    def call(number: int) -> None:
        nonlocal here, most
        with slots:
            with lock:
                here, most = here + 1, max(most, here + 1)
            full.wait(timeout=60)  # as many as there are come together, four times
            with lock:
                here -= 1

    with ThreadPoolExecutor(4 * count) as pool:
        list(pool.map(call, range(4 * count)))
    assert (here, most) == (0, count)


@pytest.mark.parametrize("count", [1, 3])
def test_who_finds_none_free_waits_for_one(count: int) -> None:
    slots, came = Slots(count), threading.Event()

    def call() -> None:
        with slots:
            came.set()

    waiting = threading.Thread(target=call, daemon=True)
    with slots, ExitStack() as others:
        for _ in range(count - 1):
            others.enter_context(slots)
        waiting.start()
        assert not came.wait(0.2)
    assert came.wait(60)
    waiting.join(60)


def test_one_is_given_back_by_a_call_that_fails() -> None:
    slots = Slots(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), slots:
            1 / 0  # noqa: B018
    with slots:
        pass


def test_more_than_any_process_has_threads_cost_nothing() -> None:
    with Slots(sys.maxsize), Slots(10**30):
        pass
