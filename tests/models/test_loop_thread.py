"""The loop in which synchronous callers run asynchronous calls never waits for itself."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Iterator

from robustrag_integrations.models.event_loops import LoopThread


async def _numbers() -> AsyncGenerator[int, None]:
    for number in range(9):
        yield number


def test_an_iterator_may_be_closed_in_the_thread_of_its_loop() -> None:
    thread = LoopThread()
    numbers = thread.iterate(_numbers())
    assert next(numbers) == 0

    async def close(dropped: Iterator[int]) -> str:
        dropped.close()  # type: ignore[attr-defined]
        return "closed"

    said: list[str] = []
    caller = threading.Thread(target=lambda: said.append(thread.run(close(numbers))), daemon=True)
    caller.start()
    caller.join(10)
    assert said == ["closed"]
    assert list(thread.iterate(_numbers())) == list(range(9))
    thread.close()
