"""Servers that never come to an end, that go away, or that ask to wait; and callers who go away themselves."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.clients import CLIENTS, SOURCES, client_of
from tests.faults.matrix import PATIENCE, PLACES, check, closing, in_the_end, observe, styles_of
from tests.faults.misbehaviour import FAULTS
from tests.helpers.leaks import nothing_left
from tests.helpers.openai_server import LoopbackServer, Reply, obedient_reader

pytest.importorskip("httpx", reason="needs the extra openai")
pytestmark = pytest.mark.usefixtures("no_server_settings")

HANGING = [name for name, fault in FAULTS.items() if fault.effect == "hangs"]


@pytest.mark.parametrize("fault", HANGING)
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_server_that_never_comes_to_an_end_is_given_up(kind: str, fault: str) -> None:
    def tried(place: str, style: str) -> None:
        for patience in (PATIENCE, 10 * PATIENCE, 30 * PATIENCE):  # on a busy machine healthy sources may be late, too
            try:
                check(observe(kind, fault, place, style, patience=patience), kind, fault, place)
                return
            except AssertionError:  # noqa: PERF203 - that is what it is for
                if patience == 30 * PATIENCE:
                    raise

    asked = [(place, style) for place in PLACES for style in styles_of(place)]
    with nothing_left(), ThreadPoolExecutor(len(asked)) as pool:
        for job in [pool.submit(tried, *one) for one in asked]:
            job.result(timeout=200)


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_stream_that_is_not_read_to_its_end_hangs_up(kind: str) -> None:
    behaviour = in_the_end(Reply(" ".join(["Anna Lind"] * 50)))
    with nothing_left(), LoopbackServer(behaviour) as server, client_of(kind, server.url) as client:
        begun = client.stream()
        assert next(begun)
        begun.close()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_retry_after_is_waited_for_and_the_source_is_saved(kind: str, asynchronous: bool) -> None:
    """A second, which is longer than the client would wait by itself before its second try."""
    asked: list[float] = []

    def later(prompt: str) -> Reply | str:
        if "Note 0." in prompt:
            asked.append(time.monotonic())
            if len(asked) == 1:
                return Reply("slow down", status=429, headers={"Retry-After": "1"})
        return obedient_reader(prompt)

    with nothing_left(), LoopbackServer(later) as server, client_of(kind, server.url, attempts=2) as client:
        answer = asyncio.run(closing(client, client.aask())) if asynchronous else client.ask()
        assert len(server.requests) == SOURCES + 2
    assert [g["status"] for g in answer["sources"]] == ["supports"] * SOURCES
    assert answer["radius"] == 2
    assert asked[1] - asked[0] >= 1
