"""A server that misbehaves on command, asked through the core, LangChain and LlamaIndex.

Seven sources agree: radius 2. A group whose request fails counts as an abstention; the answer stays, the radius falls
with the number of groups that are left, and below the quorum there is an error instead of an answer. Whatever happens,
it ends, and leaves no thread, task, socket or file behind.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from robustrag_integrations import ModelError, QuorumError
from tests.faults.clients import CLIENTS, GROUPS, Client, client_of
from tests.faults.leaks import nothing_left
from tests.faults.misbehaviour import BIG_REPLY, DUPLICATE_KEYS, ENDLESS, FAILING, NEVER, RESET_STREAM, SLOW_STREAM
from tests.openai_server import LoopbackServer, Reply, obedient_reader

pytest.importorskip("openai", reason="needs the extra openai")
pytestmark = pytest.mark.usefixtures("no_server_settings")

PATIENCE = 2.0  # seconds that a client waits for a server that never answers
RADIUS = {0: 2, 1: 1, 2: 1, 3: 0}  # by how many of the seven groups failed; four are below the quorum


@functools.cache
def warm(kind: str) -> None:
    """What is loaded once and stays (modules, a pool of connections) is no leak."""
    with LoopbackServer(obedient_reader) as server, client_of(kind, server.url) as client:
        check(client.ask(), 0)
        assert "".join(client.stream()) == asyncio.run(_closing(client, _pieces(client)))


@pytest.fixture(autouse=True)
def _warm(request: pytest.FixtureRequest) -> None:
    warm(request.getfixturevalue("kind") if "kind" in request.fixturenames else "core")


Behaviour = Callable[[str], "Reply | str"]


def on_groups(fault: Reply, numbers: range) -> Behaviour:
    """The fault on these groups; everything else goes well."""
    notes = [f"Note {n}." for n in numbers]
    return lambda prompt: fault if any(note in prompt for note in notes) else obedient_reader(prompt)


def in_the_end(fault: Reply) -> Behaviour:
    """The fault in the final call."""
    return lambda prompt: fault if "Note" not in prompt else obedient_reader(prompt)


@contextmanager
def asked(kind: str, behaviour: Behaviour, timeout: float = 600.0) -> Iterator[Client]:
    with nothing_left(), LoopbackServer(behaviour) as server, client_of(kind, server.url, timeout) as client:
        yield client


async def _closing(client: Client, asking: Any) -> Any:
    """Await, close what the client has opened in this event loop, and look for tasks that are still there."""
    try:
        return await asking
    finally:
        await client.aclose()
        del asking
        for _ in range(100):  # an abandoned generator is closed in a task of its own
            if len(asyncio.all_tasks()) == 1:
                break
            gc.collect()
            await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def _pieces(client: Client) -> str:
    return "".join([piece async for piece in client.astream()])


def check(answer: dict[str, Any], failed: int) -> None:
    """The first `failed` groups have failed, the others have not; the answer is what those agree on."""
    assert answer["text"].casefold() == "anna lind"
    assert [g["status"] for g in answer["groups"]] == ["failed"] * failed + ["supports"] * (GROUPS - failed)
    assert all(g["error"] for g in answer["groups"][:failed])
    assert answer["radius"] == RADIUS[failed]


@pytest.mark.parametrize("fault", FAILING)
@pytest.mark.parametrize("kind", CLIENTS)
def test_failed_groups_are_abstentions_that_cost_radius_and_not_the_answer(kind: str, fault: str) -> None:
    with asked(kind, on_groups(FAILING[fault](), range(1))) as client:
        check(client.ask(), 1)
    with asked(kind, on_groups(FAILING[fault](), range(3))) as client:
        check(asyncio.run(_closing(client, client.aask())), 3)


@pytest.mark.parametrize("fault", FAILING)
@pytest.mark.parametrize("kind", CLIENTS)
def test_too_many_failures_raise_with_the_cause_of_each(kind: str, fault: str) -> None:
    with asked(kind, on_groups(FAILING[fault](), range(4))) as client, pytest.raises(QuorumError) as caught:
        client.ask()
    assert "only 3 of 7" in str(caught.value)
    assert sorted(caught.value.causes) == [0, 1, 2, 3]
    with asked(kind, lambda prompt: FAILING[fault]()) as client, pytest.raises(QuorumError, match="only 0 of 7"):
        asyncio.run(_closing(client, client.aask()))


@pytest.mark.parametrize("fault", FAILING)
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_failed_final_call_is_an_error_and_never_half_an_answer(kind: str, fault: str) -> None:
    with asked(kind, in_the_end(FAILING[fault]())) as client, raises_a_failure():
        client.ask()
    with asked(kind, in_the_end(FAILING[fault]())) as client, raises_a_failure():
        asyncio.run(_closing(client, client.aask()))


@pytest.mark.parametrize("fault", ["429", "500", "hung up", "reset in mid-stream"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_stream_that_fails_raises(kind: str, fault: str) -> None:
    reply = RESET_STREAM if fault == "reset in mid-stream" else FAILING[fault]()
    with asked(kind, in_the_end(reply)) as client, raises_a_failure():
        list(client.stream())
    with asked(kind, in_the_end(reply)) as client, raises_a_failure():
        asyncio.run(_closing(client, _pieces(client)))


@pytest.mark.parametrize("kind", CLIENTS)
def test_groups_that_fail_before_a_stream_cost_no_piece_of_it(kind: str) -> None:
    with asked(kind, on_groups(FAILING["503"](), range(2))) as client:
        assert "".join(client.stream()).casefold() == "anna lind"
        assert asyncio.run(_closing(client, _pieces(client))).casefold() == "anna lind"


@pytest.mark.parametrize("fault", ENDLESS)
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_server_that_never_comes_to_an_end_is_given_up(kind: str, fault: str) -> None:
    reply = ENDLESS[fault]
    stream = reply if fault != "slow loris, body" else lambda: SLOW_STREAM
    groups, end = on_groups(reply(), range(1)), in_the_end(stream())

    def fails(behaviour: Behaviour, ask: Callable[[Client], object]) -> None:
        with LoopbackServer(behaviour) as server, client_of(kind, server.url, PATIENCE) as client, raises_a_failure():
            ask(client)

    def some_groups(ask: Callable[[Client], dict[str, Any]]) -> None:
        for patience in (PATIENCE, 10 * PATIENCE, 30 * PATIENCE):  # on a busy machine healthy groups may be late, too
            try:
                with LoopbackServer(groups) as server, client_of(kind, server.url, patience) as client:
                    check(ask(client), 1)
                return
            except (QuorumError, ModelError, AssertionError, TimeoutError):  # noqa: PERF203 - that is what it is for
                if patience == 30 * PATIENCE:
                    raise

    jobs: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
        (some_groups, (lambda c: c.ask(),)),
        (some_groups, (lambda c: asyncio.run(_closing(c, c.aask())),)),
        (fails, (in_the_end(reply()), lambda c: c.ask())),
        (fails, (in_the_end(reply()), lambda c: asyncio.run(_closing(c, c.aask())))),
        (fails, (end, lambda c: list(c.stream()))),
        (fails, (end, lambda c: asyncio.run(_closing(c, _pieces(c))))),
        (fails, (lambda prompt: reply(), lambda c: c.ask())),
    ]
    with nothing_left(), ThreadPoolExecutor(len(jobs)) as pool:
        for job in [pool.submit(job, *given) for job, given in jobs]:
            job.result(timeout=120)


@pytest.mark.parametrize("kind", CLIENTS)
def test_cancelling_hangs_up_and_leaves_nothing(kind: str) -> None:
    async def cancelled(client: Client, server: LoopbackServer, asking: Any, expected: int) -> None:
        task = asyncio.create_task(asking)
        while server.now < expected:
            await asyncio.sleep(0.01)
            assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for behaviour, asking, expected in [
        (lambda prompt: Reply("late", wait=NEVER), lambda c: c.aask(), GROUPS),
        (in_the_end(Reply("late", wait=NEVER)), lambda c: c.aask(), 1),
        (in_the_end(SLOW_STREAM), _pieces, 1),
    ]:
        with nothing_left(), LoopbackServer(behaviour) as server, client_of(kind, server.url) as client:
            asyncio.run(_closing(client, cancelled(client, server, asking(client), expected)))
            assert server.gone.wait(60)


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_stream_that_is_not_read_to_its_end_hangs_up(kind: str) -> None:
    words = " ".join(["Anna Lind"] * 50)
    with asked(kind, lambda prompt: words if "Note" not in prompt else obedient_reader(prompt)) as client:
        pieces = client.stream()
        assert next(pieces)
        pieces.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_server_that_refuses_connections_from_some_moment_on(kind: str) -> None:
    def fails_in_the_end(prompt: str) -> Reply:
        """Answers the groups, and refuses the final call's connection."""
        answered.append(prompt)
        if len(answered) == GROUPS:
            server.refuse()
        return Reply(obedient_reader(prompt), headers={"Connection": "close"})

    answered: list[str] = []
    with nothing_left(), LoopbackServer(fails_in_the_end) as server, client_of(kind, server.url) as client:
        with raises_a_failure():
            client.ask()
        assert len(answered) == GROUPS
        with pytest.raises(QuorumError, match="only 0 of 7"):
            client.ask()
        with pytest.raises(QuorumError, match=r"(?i)connect"):
            asyncio.run(_closing(client, client.aask()))


@pytest.mark.parametrize("kind", CLIENTS)
def test_fifty_megabytes_are_one_groups_word_at_most(kind: str) -> None:
    with asked(kind, on_groups(BIG_REPLY, range(1))) as client:
        answer = client.ask()
    assert answer["text"].casefold() == "anna lind"
    assert answer["groups"][0]["status"] == ("failed" if kind == "core" else "outvoted")
    assert len(answer["groups"][0]["response"] or "") <= 100_000
    assert answer["radius"] == 1


def test_fifty_megabytes_in_the_final_call_are_refused() -> None:
    with asked("core", in_the_end(BIG_REPLY)) as client, raises_a_failure("larger than 8,388,608 bytes"):
        client.ask()


@pytest.mark.parametrize("kind", CLIENTS)
def test_of_duplicate_keys_the_last_counts_as_one_groups_word(kind: str) -> None:
    with asked(kind, on_groups(DUPLICATE_KEYS, range(1))) as client:
        answer = client.ask()
    assert answer["text"].casefold() == "anna lind"
    assert (answer["groups"][0]["status"], answer["groups"][0]["response"]) == ("outvoted", "Eve Black")
    assert answer["radius"] == 1


@pytest.mark.parametrize("kind", ["core", "langchain"])
def test_a_retry_after_is_waited_for_and_the_group_is_saved(kind: str) -> None:
    refused: set[str] = set()

    def later(prompt: str) -> Reply | str:
        if prompt in refused or "Note 0." not in prompt:
            return obedient_reader(prompt)
        refused.add(prompt)
        return Reply("slow down", status=429, headers={"Retry-After": "0.05"})

    with nothing_left(), LoopbackServer(later) as server, client_of(kind, server.url, attempts=2) as client:
        check(client.ask(), 0)
        assert len(server.requests) == GROUPS + 2


@contextmanager
def raises_a_failure(words: str = "") -> Iterator[None]:
    """A failure of the call, not of the code around it."""
    with pytest.raises(Exception, match=re.escape(words) or None) as caught:
        yield
    assert not isinstance(caught.value, (AssertionError, AttributeError, NameError, RecursionError, MemoryError))
