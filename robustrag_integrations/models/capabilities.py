"""What a model takes: nothing is known at first, and what it refuses is left out from then on.

Today's APIs differ in the parameters that they refuse (`temperature`, `seed`, `max_tokens`, a system message), and say
so with an error. The words of an error may repeat the prompt, so that a passage could speak through them. So nothing is
learned from an error alone: the same parameters go out once more with a fixed prompt (a probe), and only what is
refused there too is left out. What is learned is thus about the model, and no group can change what others are asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from robustrag_integrations.models.client_errors import (
    LIMITS,
    PARAMETERS,
    REFUSING,
    SYSTEM,
    refused_parameter,
    status_of,
)
from robustrag_integrations.models.event_loops import PerLoop
from robustrag_integrations.replies.structured import ReplyMode

Asked = TypeVar("Asked", covariant=True)
Refused: TypeAlias = frozenset[str]
Sent: TypeAlias = Callable[[Refused], Collection[str]]

PROBE = "Reply with the word OK."


class Known(NamedTuple):
    """What was known when a call was made: the parameters that the model refuses, and how many probes found them."""

    refused: Refused
    probes: int


class Capabilities:
    """What one model was found to refuse; shared by all its calls, in threads and event loops.

    Attributes:
        replies: whether it gives objects for replies.
    """

    def __init__(self) -> None:
        self.replies = ReplyMode()
        self.known = Known(frozenset(), 0)
        self._answered: frozenset[Refused] = frozenset()  # without these, a probe found nothing more
        self._turn = threading.Lock()
        self._turns = PerLoop(asyncio.Lock)

    @property
    def refused(self) -> Refused:
        """The parameters that the model does not take."""
        return self.known.refused

    def __reduce__(self) -> tuple[type[Capabilities], tuple[()]]:
        """A copy, or one in another process, finds out anew."""
        return Capabilities, ()

    def learned(self, error: Exception, known: Known, sent: Sent, ask: Callable[[Refused], object]) -> bool:
        """Whether more is known to be refused now than when a call was made that failed, be it found out just here."""
        if refused_parameter(error, sent(known.refused)) is None:
            return False
        with self._turn:
            now, again = known.refused, self._is_open(known)
            while again:
                failed: Exception | None = None
                try:
                    ask(now)
                except Exception as refusal:
                    failed = refusal
                now, again = self._noted(now, failed, sent)
        return self.refused != known.refused

    async def alearned(
        self, error: Exception, known: Known, sent: Sent, ask: Callable[[Refused], Awaitable[object]]
    ) -> bool:
        """`learned` in an event loop."""
        if refused_parameter(error, sent(known.refused)) is None:
            return False
        async with self._turns.here():
            now, again = known.refused, self._is_open(known)
            while again:
                failed: Exception | None = None
                try:
                    await ask(now)
                except Exception as refusal:
                    failed = refusal
                now, again = self._noted(now, failed, sent)
        return self.refused != known.refused

    def _is_open(self, known: Known) -> bool:
        """Whether a probe without these could tell anything new; of the calls that fail at once, one makes it."""
        return self.known == known and known.refused not in self._answered

    def _noted(self, now: Refused, failed: Exception | None, sent: Sent) -> tuple[Refused, bool]:
        """What to leave out after a probe ended like this, and whether to probe again."""
        name = None if failed is None else refused_parameter(failed, sent(now))
        self.known = Known(self.refused if name is None else self.refused | {name}, self.known.probes + 1)
        if name is not None:
            return now | {name}, True
        if failed is None or status_of(failed) in REFUSING:  # for a reason of another kind, which will not change
            self._answered |= {now}
        return now, False


@dataclass(frozen=True)
class Probe(Generic[Asked]):
    """How a model is asked with a fixed prompt.

    Attributes:
        sent: the parameters (of `PARAMETERS`) that go out while these are left out.
        ask: sends `PROBE` without the parameters that are refused, and raises what the model's client raises.
        capabilities: what the model was found to refuse.
    """

    sent: Sent
    ask: Callable[[Refused], Asked]
    capabilities: Capabilities = field(default_factory=Capabilities)


def sent_parameters(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of the parameters that can be left out a request holds."""
    given = (fields, fields.get("extra_body") or {})
    names = {name for part in given if isinstance(part, Mapping) for name in part}
    messages = fields.get("messages") or ()
    if any(m.get("role") == SYSTEM for m in messages):
        names.add(SYSTEM)
    return tuple(name for name in PARAMETERS if name in names)


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
