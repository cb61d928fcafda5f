"""Plans: the defences without input or output.

A plan is a generator: it yields requests and receives the replies of a driver, which calls the model, with threads, an
event loop or a framework's callbacks. All drivers run the same plan, so there is one implementation of each defence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.models.base import Role, Until
from robustrag_integrations.text.prompts import Prompt


@dataclass(frozen=True)
class Ask:
    """Put independent prompts to the model; the reply is one `Response` each, in order.

    `isolated`: one prompt per source, to be run concurrently, never shown to the user. `final` and `trusted`: a single
    prompt, whose answer the user gets; it may be streamed if it is `shown` as it is; `whole`: only once it is complete;
    `holds`: only once this is false of the text so far, and not at all while it is true. `until`: when the missing
    replies need not be waited for; they are `not_asked()` then.
    """

    prompts: tuple[Prompt, ...]
    role: Role
    shown: bool = True
    whole: bool = False
    until: Until | None = None
    holds: Callable[[str], bool] | None = None

    @property
    def is_streamed(self) -> bool:
        """True if its reply may be shown as it comes."""
        return self.role != "isolated" and self.shown


@dataclass(frozen=True)
class Retrieve:
    """Find the sources that are asked one by one; the reply is what `find` returns, or `afind` in an event loop.

    A plan asks for it only when they are needed: before, nothing of them is looked at.
    """

    find: Callable[[], Any]
    afind: Callable[[], Awaitable[Any]] | None = None


@dataclass(frozen=True)
class OpenSession:
    """Start a decoding session over these prompts; the reply is an `Opening`."""

    prompts: tuple[Prompt, ...]
    no_retrieval: Prompt
    max_new_tokens: int


@dataclass(frozen=True)
class Append:
    """Append a token to every row of the session; the reply is the next `Distributions`."""

    token: int


@dataclass(frozen=True)
class Sharpen:
    """List more tokens of the last distributions; the reply is a `Distributions`, or None if there are no more."""


@dataclass(frozen=True)
class Emit:
    """Show a decided piece of the answer, where the driver streams; the reply is None."""

    text: str


Result = TypeVar("Result")
Request: TypeAlias = Ask | Retrieve | OpenSession | Append | Sharpen | Emit
Reply: TypeAlias = Any  # what each request says
Steps: TypeAlias = Generator[Request, Reply, Result]
Plan: TypeAlias = Steps[RobustAnswer]


def relayed(plan: Steps[Result], relay: Callable[[Request], Steps[Reply]]) -> Steps[Result]:
    """Run a plan inside another, to the same end; a failure in the driver is raised in the inner plan first.

    `relay` gives the reply to one of its requests, having passed on the request, another one or none.
    """
    reply: Reply = None
    while True:
        try:
            request = plan.send(reply)
        except StopIteration as done:
            return cast(Result, done.value)
        try:
            reply = yield from relay(request)
        except ModelError as error:
            plan.throw(error)
            raise
