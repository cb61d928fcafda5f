"""The request parameters that a model accepts: refused ones are learned, and left out from then on.

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
    """The knowledge at the time of a call: the parameters that the model refuses, and the number of probes so far."""

    refused: Refused
    probes: int


class Capabilities:
    """The parameters that one model refuses; shared by all its calls, in threads and event loops.

    Attributes:
        replies: whether it replies with objects.
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
        """Pickle and copy as empty: a copy learns anew."""
        return Capabilities, ()

    def learned(self, error: Exception, known: Known, sent: Sent, ask: Callable[[Refused], object]) -> bool:
        """Probe if need be, and tell whether more refusals are known now than when the failed call was made."""
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
        """Tell whether a probe without these could find anything new; of calls that fail together, one makes it."""
        return self.known == known and known.refused not in self._answered

    def _noted(self, now: Refused, failed: Exception | None, sent: Sent) -> tuple[Refused, bool]:
        """Record a probe's outcome; return the parameters to leave out, and whether to probe again."""
        name = None if failed is None else refused_parameter(failed, sent(now))
        self.known = Known(self.refused if name is None else self.refused | {name}, self.known.probes + 1)
        if name is not None:
            return now | {name}, True
        if failed is None or status_of(failed) in REFUSING:  # for a reason of another kind, which will not change
            self._answered |= {now}
        return now, False


@dataclass(frozen=True)
class Probe(Generic[Asked]):
    """A probe of a model with a fixed prompt.

    Attributes:
        sent: the parameters (of `PARAMETERS`) that go out while these are left out.
        ask: sends `PROBE` without the parameters that are refused, and raises what the model's client raises.
        capabilities: the parameters that the model was found to refuse.
    """

    sent: Sent
    ask: Callable[[Refused], Asked]
    capabilities: Capabilities = field(default_factory=Capabilities)


def sent_parameters(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters of a request that can be left out."""
    given = (fields, fields.get("extra_body") or {})
    names = {name for part in given if isinstance(part, Mapping) for name in part}
    messages = fields.get("messages") or ()
    if any(m.get("role") == SYSTEM for m in messages):
        names.add(SYSTEM)
    return tuple(name for name in PARAMETERS if name in names)


def described(sent: Collection[str], refused: Collection[str]) -> dict[str, Any]:
    """Return the sent and the refused parameters, for the settings of answers; JSON-safe."""
    return {"sent": sorted(sent), "refused": sorted(refused)}


def described_together(*known: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the sent and refused parameters of several models."""
    names = dict.fromkeys(name for one in known for name in one)
    return {name: sorted({item for one in known for item in one.get(name, ())}) for name in names}


def left_out(asked: Collection[str], refused: Refused) -> tuple[str, ...]:
    """Return a warning if a requested parameter is left out.

    Temperature has a warning of its own; a token limit and a system message are sent in another form.
    """
    lost = {name for name in asked if name in refused} - {SYSTEM, "temperature"}
    lost -= {name for name, other in LIMITS.items() if other not in refused}
    return (f"the model refuses {', '.join(sorted(lost))}, which is left out",) if lost else ()


def without(request: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    """Return a request without the parameters that the model refuses.

    A token limit is sent under its other name unless that is refused too; a system message is put in front of the
    first message that follows it.
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
