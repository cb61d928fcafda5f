"""What a model takes: nothing is known at first, and what it refuses is left out from then on.

Today's APIs differ in the parameters that they refuse (`temperature`, `seed`, `max_tokens`, a system message), and say
so with an error. The words of an error may repeat the prompt, so that a passage could speak through them. So nothing is
learned from an error alone: the same parameters go out once more with a fixed prompt (a probe), and only what is
refused there too is left out. What is learned is thus about the model, and no group can change what others are asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from robustrag_integrations.forks import renew_in_children
from robustrag_integrations.models.per_loop import PerLoop
from robustrag_integrations.models.refused import LIMITS, PARAMETERS, REFUSING, SYSTEM, refused_parameter, status_of

Result = TypeVar("Result")
Asked = TypeVar("Asked", covariant=True)
Refused: TypeAlias = frozenset[str]

PROBE = "Reply with the word OK."


@dataclass(frozen=True)
class Probe(Generic[Asked]):
    """How a model is asked with a fixed prompt.

    Attributes:
        sent: the parameters (of `PARAMETERS`) that go out while these are left out.
        ask: sends `PROBE` without the parameters that are refused, and raises what the model's client raises.
    """

    sent: Callable[[Refused], Collection[str]]
    ask: Callable[[Refused], Asked]


class Capabilities:
    """What one model was found to refuse; shared by all its calls, in threads and event loops."""

    def __init__(self) -> None:
        self._refused: Refused = frozenset()
        self._answered: frozenset[Refused] = frozenset()  # without these, a probe found nothing more
        self._probes = 0
        self._renew()
        renew_in_children(self, Capabilities._renew)

    @property
    def refused(self) -> Refused:
        """The parameters that the model does not take."""
        return self._refused

    def __reduce__(self) -> tuple[type[Capabilities], tuple[()]]:
        """A copy, or one in another process, finds out anew."""
        return Capabilities, ()

    def call(self, ask: Callable[[Refused], Result], probe: Probe[object]) -> Result:
        """A call, made again where it was refused for a parameter that can be left out.

        Args:
            ask: makes the call without the parameters that are refused.
            probe: the same model with a fixed prompt.
        """
        while True:
            known, probes = self._refused, self._probes
            try:
                return ask(known)
            except Exception as error:
                failed = error
            if not self._learned(failed, known, probes, probe):
                raise failed

    async def acall(self, ask: Callable[[Refused], Awaitable[Result]], probe: Probe[Awaitable[object]]) -> Result:
        """`call` in an event loop."""
        while True:
            known, probes = self._refused, self._probes
            try:
                return await ask(known)
            except Exception as error:
                failed = error
            if not await self._alearned(failed, known, probes, probe):
                raise failed

    def stream(self, ask: Callable[[Refused], Iterator[Result]], probe: Probe[object]) -> Iterator[Result]:
        """`call` for a stream; once a piece is out, nothing is asked again."""
        while True:
            known, probes, begun = self._refused, self._probes, False
            try:
                for piece in ask(known):
                    begun = True
                    yield piece
                return
            except Exception as error:
                failed = error
            if begun or not self._learned(failed, known, probes, probe):
                raise failed

    async def astream(
        self, ask: Callable[[Refused], AsyncGenerator[Result, None]], probe: Probe[Awaitable[object]]
    ) -> AsyncGenerator[Result, None]:
        """`stream` in an event loop."""
        while True:
            known, probes, begun = self._refused, self._probes, False
            try:
                async with aclosing(ask(known)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except Exception as error:
                failed = error
            if begun or not await self._alearned(failed, known, probes, probe):
                raise failed

    def _learned(self, error: Exception, known: Refused, probes: int, probe: Probe[object]) -> bool:
        """Whether more is known to be refused now than when the call was made, be it found out just here."""
        if refused_parameter(error, probe.sent(known)) is None:
            return False
        with self._turn:
            now, again = known, self._is_open(known, probes)
            while again:
                failed: Exception | None = None
                try:
                    probe.ask(now)
                except Exception as refusal:
                    failed = refusal
                now, again = self._noted(now, failed, probe)
        return self._refused != known

    async def _alearned(self, error: Exception, known: Refused, probes: int, probe: Probe[Awaitable[object]]) -> bool:
        """`_learned` in an event loop."""
        if refused_parameter(error, probe.sent(known)) is None:
            return False
        async with self._turns.here():
            now, again = known, self._is_open(known, probes)
            while again:
                failed: Exception | None = None
                try:
                    await probe.ask(now)
                except Exception as refusal:
                    failed = refusal
                now, again = self._noted(now, failed, probe)
        return self._refused != known

    def _is_open(self, known: Refused, probes: int) -> bool:
        """Whether a probe without these could tell anything new; of the calls that fail at once, one makes it."""
        return self._refused == known and self._probes == probes and known not in self._answered

    def _noted(self, now: Refused, failed: Exception | None, probe: Probe[Any]) -> tuple[Refused, bool]:
        """What to leave out after a probe ended like this, and whether to probe again."""
        self._probes += 1
        if failed is None:
            self._answered |= {now}
            return now, False
        name = refused_parameter(failed, probe.sent(now))
        if name is None:
            if status_of(failed) in REFUSING:  # for a reason of another kind, which will not change
                self._answered |= {now}
            return now, False
        self._refused |= {name}
        return now | {name}, True

    def _renew(self) -> None:
        """Free what the parent process's threads held when it forked."""
        self._turn = threading.Lock()
        self._turns = PerLoop(asyncio.Lock)


def sent_parameters(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of the parameters that can be left out a request holds."""
    given = (fields, fields.get("extra_body") or {})
    found = {name for part in given if isinstance(part, Mapping) for name in part}
    messages = fields.get("messages") or ()
    if any(m.get("role") == SYSTEM for m in messages):
        found.add(SYSTEM)
    return tuple(name for name in PARAMETERS if name in found)


def described(sent: Collection[str], refused: Collection[str]) -> dict[str, Any]:
    """What goes out and what does not, for the settings of answers; JSON-safe."""
    return {"sent": sorted(sent), "refused": sorted(refused)}


def described_together(*known: Mapping[str, Any]) -> dict[str, Any]:
    """What goes out to, and is refused by, any of several models."""
    names = dict.fromkeys(name for one in known for name in one)
    return {name: sorted({item for one in known for item in one.get(name, ())}) for name in names}


def left_out(asked: Collection[str], refused: Refused) -> tuple[str, ...]:
    """The warning that something which was asked for is missing.

    A temperature has a warning of its own; a limit of tokens and a system message go out in another form.
    """
    lost = {name for name in asked if name in refused} - {SYSTEM, "temperature"}
    lost -= {name for name, other in LIMITS.items() if other not in refused}
    return (f"the model refuses {', '.join(sorted(lost))}, which is left out",) if lost else ()


def without(request: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    """A request without what the model refuses.

    A limit of tokens goes under its other name as long as that one is not refused too; a system message goes in front
    of the first message that follows it.
    """
    fields = {name: value for name, value in request.items() if name not in refused}
    for name, other in LIMITS.items():
        if name in refused and name in request and other not in refused:
            fields.setdefault(other, request[name])
    if isinstance(extra := request.get("extra_body"), Mapping):
        fields["extra_body"] = {name: value for name, value in extra.items() if name not in refused}
    if SYSTEM in refused and "messages" in request:
        fields["messages"] = _without_system(request["messages"])
    return fields


def _without_system(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    first: list[str] = []
    kept: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == SYSTEM:
            first.append(message["content"])
        else:
            kept.append({**message, "content": "\n\n".join((*first, message["content"]))})
            first = []
    return kept
