"""Every fault at every place through every client: what comes of it, and how long that takes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from robustrag_integrations import ModelError, QuorumError
from robustrag_integrations.replies.reading import LONGEST_RESPONSE
from tests.faults.clients import SOURCES, Client, client_of
from tests.faults.misbehaviour import EMPTY, FAULTS, LARGE, MANY, MOVED, NEVER, SLOW_STREAM, Fault
from tests.helpers.openai_server import LoopbackServer, Reply, obedient_reader

PATIENCE = 2.0  # seconds that a client waits for a server that never answers
UNHURRIED = 600.0  # seconds that it waits where nothing should have to be waited for
TRUTH = "anna lind"
RADIUS = {1: 1, 2: 1}  # by how many of the seven sources failed; the quorum is half of them

Behaviour = Callable[[str], "Reply | str"]

PLACES = (
    "one source", "two sources", "four sources", "all sources",
    "final call", "streamed final call", "cancelled", "cancelled stream",
)  # fmt: skip
STYLES = ("asked", "awaited", "streamed", "streamed asynchronously")
HIT = {"one source": 1, "two sources": 2, "four sources": 4, "all sources": SOURCES}


@dataclass(frozen=True)
class Outcome:
    """What came of one question: an answer in lower case, its radius and its sources' states, or an exception."""

    answer: str | None = None
    radius: int | None = None
    sources: tuple[str, ...] = ()
    raised: type[BaseException] | None = None
    causes: tuple[int, ...] = ()  # of a `QuorumError`, the sources that failed


def expected(kind: str, name: str, place: str) -> Outcome:
    """What must come of it; `raised` may be a type derived from the one given here.

    A failed source has abstained, so that it costs radius and never the answer; there must be more than half of the
    sources; a failed final call is an error. Four exceptions: the core refuses large answers, which the frameworks'
    clients read to the end, and redirects, which they follow; a source that says something else is one liar; and those
    clients take a stream that ends without saying why for a whole one.
    """
    fault = FAULTS[name]
    fails = fault.effect != "speaks" or (kind == "core" and name in (LARGE, MOVED))
    if place.startswith("cancelled"):
        return Outcome(raised=asyncio.CancelledError)
    if place in HIT:
        if fails and place == "all sources" and kind == "langchain":
            return Outcome(raised=Exception)  # the client's own
        return _of_sources(HIT[place]) if fails else _of_liars(HIT[place], fault.said[0].casefold()[:LONGEST_RESPONSE])
    if place == "streamed final call" and name in (EMPTY, MANY) and kind != "core":
        return Outcome("eve", 2, ("supports",) * SOURCES)
    if fails:
        return Outcome(raised=Exception if kind == "langchain" else ModelError)
    whole, streamed = (said.casefold() for said in fault.said)
    return Outcome(streamed if place == "streamed final call" else whole, 2, ("supports",) * SOURCES)


def _of_sources(failed: int) -> Outcome:
    if failed > 2:
        return Outcome(raised=QuorumError, causes=tuple(range(failed)))
    return Outcome(TRUTH, RADIUS[failed], ("failed",) * failed + ("supports",) * (SOURCES - failed))


def _of_liars(liars: int, said: str) -> Outcome:
    """One or two lose; then both have enough votes, and this reader takes the longer keyword."""
    winner = TRUTH if liars <= 2 else max(TRUTH, said, key=len) if liars < SOURCES else said
    states = ["supports" if (said if n < liars else TRUTH) == winner else "differs" for n in range(SOURCES)]
    return Outcome(winner, {1: 1, SOURCES: 2}.get(liars, 0), tuple(states))


def check(outcome: Outcome, kind: str, name: str, place: str) -> None:
    """It is what must come of this."""
    wanted = expected(kind, name, place)
    if wanted.raised is not None:
        assert outcome.raised is not None
        assert issubclass(outcome.raised, wanted.raised)
        assert not issubclass(outcome.raised, (AssertionError, NameError, RecursionError, MemoryError))
    assert replace(outcome, raised=None) == replace(wanted, raised=None)


def behaviour(fault: Fault, place: str) -> Behaviour:
    """A server that has this fault at this place, and else answers well."""
    if place in HIT:
        return on_sources(fault.whole, range(HIT[place]))
    if place == "final call":
        return in_the_end(fault.whole)
    if place == "streamed final call":
        return in_the_end(fault.streamed)
    if place == "cancelled":
        others = on_sources(Reply("late", wait=NEVER), range(1, 2))
        return lambda prompt: fault.whole if "Note 0." in prompt else others(prompt)
    if fault.effect == "hangs":
        return in_the_end(fault.streamed)
    sources = on_sources(fault.whole, range(1))
    return lambda prompt: sources(prompt) if "Note" in prompt else SLOW_STREAM


def on_sources(fault: Reply, numbers: range) -> Behaviour:
    """The fault on these sources; everything else goes well."""
    notes = [f"Note {n}." for n in numbers]
    return lambda prompt: fault if any(note in prompt for note in notes) else obedient_reader(prompt)


def in_the_end(fault: Reply) -> Behaviour:
    """The fault in the final call."""
    return lambda prompt: fault if "Note" not in prompt else obedient_reader(prompt)


def styles_of(place: str) -> tuple[str, ...]:
    """How a question with a fault at this place is asked."""
    if place.startswith("cancelled"):
        return STYLES[1:2]
    if place == "streamed final call":
        return STYLES[2:]
    return STYLES if place in ("one source", "four sources") else STYLES[:2]


def observe(kind: str, name: str, place: str, style: str, *, patience: float = PATIENCE) -> Outcome:
    """Ask one question in one of `styles_of(place)`, and see what comes of it."""
    fault = FAULTS[name]
    if fault.effect != "hangs" or place.startswith("cancelled"):
        patience = UNHURRIED
    with LoopbackServer(behaviour(fault, place)) as server, client_of(kind, server.url, patience) as client:
        if place.startswith("cancelled"):
            return asyncio.run(closing(client, _cancelled(client, server, place)))
        if style in ("awaited", "streamed asynchronously"):
            return asyncio.run(closing(client, _awaited(client, style)))
        return _asked(client, style)


def _asked(client: Client, style: str) -> Outcome:
    try:
        return _answered(_with_report(client, "".join(client.stream())) if style == "streamed" else client.ask())
    except Exception as error:
        return _failed(error)


async def _awaited(client: Client, style: str) -> Outcome:
    try:
        return _answered(await client.aask() if style == "awaited" else _with_report(client, await pieces(client)))
    except Exception as error:
        return _failed(error)


def _with_report(client: Client, said: str) -> dict[str, Any]:
    assert client.report is not None
    assert client.report["text"] == said
    return client.report


async def _cancelled(client: Client, server: LoopbackServer, place: str) -> Outcome:
    """Cancel once the fault and a call without end are under way, or the stream without end is."""
    streamed = place == "cancelled stream"
    task: asyncio.Task[Any] = asyncio.create_task(pieces(client) if streamed else client.aask())
    while not (_in_the_end(server) if streamed else _asked_for(server, "Note 0.") and _asked_for(server, "Note 1.")):
        await asyncio.sleep(0.01)
        assert not task.done(), task.exception() or task.result()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert await asyncio.to_thread(server.gone.wait, 60), "the client did not hang up"
    return Outcome(raised=caught.type)


def _asked_for(server: LoopbackServer, note: str) -> bool:
    return any(note in prompt for prompt in server.prompts)


def _in_the_end(server: LoopbackServer) -> bool:
    return any("Note" not in prompt for prompt in server.prompts)


def _answered(said: dict[str, Any]) -> Outcome:
    return Outcome(said["text"].casefold(), said["radius"], tuple(source["status"] for source in said["sources"]))


def _failed(error: Exception) -> Outcome:
    return Outcome(raised=type(error), causes=tuple(sorted(error.causes)) if isinstance(error, QuorumError) else ())


async def pieces(client: Client) -> str:
    """A streamed answer as a whole."""
    return "".join([piece async for piece in client.astream()])


async def closing(client: Client, asking: Awaitable[Any]) -> Any:
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
