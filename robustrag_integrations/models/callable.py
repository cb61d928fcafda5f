"""Any function from a prompt to a text as a language model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.errors import INTERRUPTS, ModelError, steers
from robustrag_integrations._util.redaction import presentable, redacted, secrets_of, shown_in_one_line
from robustrag_integrations.answers.determinism import Repeats, checked_samples
from robustrag_integrations.models.base import BLANK, Response, Role, TextModel, Until, not_asked, tell
from robustrag_integrations.models.caller import (
    AT_ONCE,
    TRANSIENT,
    CallLimits,
    await_within,
    is_busy,
    retried,
)
from robustrag_integrations.models.reply import Ending, Piece
from robustrag_integrations.models.threads import BACKGROUND, END, acalled, called, in_thread
from robustrag_integrations.text.prompts import Prompt

Result = TypeVar("Result")

_CANCELLING = 1.0  # seconds for cancelled tasks to end; one that does not is left alone
_MOST_LOOKS = 1000  # at the replies so far, each of which takes as long as there are prompts


@dataclass(frozen=True)
class Call:
    """One call of a model: a prompt, its role, and its place among those that are asked together."""

    prompt: Prompt
    role: Role
    index: int = 0


class _Interrupted(Exception):
    """Stands for a KeyboardInterrupt, its cause, which would end the event loop."""


class CalledModel(TextModel):
    """A model that is asked prompt by prompt: within limits, again where that may help, and no longer than needed.

    A call that fails is a `Response` with an error, and costs its own source alone.

    Args:
        limits: the most calls under way, and their time; shared by all who call the client. Without a limit on their
            number this object has at most ten under way.
        name: the model's name in reports.
        ask, aask: from a call to its reply, and the same as a coroutine function. At least one is given: synchronous
            calls run a coroutine in a loop in the background, and asynchronous ones run a function in threads.
        stream, astream: the same from a call to pieces of the reply, then how it ended, where that is known. Without
            either, a reply comes as one piece.
        clients: objects that may hold keys, which must not appear in errors.
        cap: a lower limit on the calls of this object that are under way.
        attempts: tries in all.
        worth_retrying: True if another try may help after an error.
    """

    def __init__(
        self,
        limits: CallLimits,
        name: str,
        ask: Callable[[Call], Any] | None = None,
        aask: Callable[[Call], Awaitable[Any]] | None = None,
        *,
        stream: Callable[[Call], Iterator[Any]] | None = None,
        astream: Callable[[Call], AsyncIterator[Any]] | None = None,
        clients: Sequence[object] = (),
        cap: int | None = None,
        attempts: int = 3,
        worth_retrying: Callable[[BaseException], bool] = is_busy,
    ) -> None:
        self._limits, self._name, self._cap, self._clients = limits, name, cap, tuple(clients)
        self._attempts, self._worth_retrying = attempts, worth_retrying
        self._own = asyncio.Semaphore(AT_ONCE) if limits.calls is None else None
        in_threads = partial(limits.in_thread, ask) if ask else None
        self._sync_ask, self._async_ask = in_threads or aask, aask or in_threads
        pieces = partial(limits.iterate_in_thread, stream) if stream else None
        self._sync_pieces, self._async_pieces = pieces or astream, astream or pieces

    @property
    def description(self) -> str:
        """The model's name."""
        return self._name

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Ask all prompts at once, `max_concurrency` at a time over all threads; an interrupt cancels the calls."""
        return BACKGROUND.run(self._respond_all(self._sync_ask, prompts, role, until))

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` without blocking the event loop; each loop has as many calls at a time."""
        return await self._respond_all(self._async_ask, prompts, role, until)

    def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[Piece]:
        """Yield the answer in pieces if there is a streaming function, else in one; closing the iterator hangs up."""
        if self._sync_pieces is None:
            yield from _pieces_of(self.generate([prompt], role)[0])
        else:
            yield from BACKGROUND.iterate(self._pieces(self._sync_pieces, Call(prompt, role)))

    async def astream(self, prompt: Prompt, role: Role = "final") -> AsyncGenerator[Piece, None]:
        """`stream` without blocking the event loop."""
        if self._async_pieces is None:
            for piece in _pieces_of((await self.agenerate([prompt], role))[0]):
                yield piece
            return
        async with aclosing(self._pieces(self._async_pieces, Call(prompt, role))) as pieces:
            async for piece in pieces:
                yield piece

    async def _respond_all(
        self, ask: Callable[[Call], Awaitable[Any]] | None, prompts: Sequence[Prompt], role: Role, until: Until | None
    ) -> list[Response]:
        """Make all calls concurrently; those that are not waited for are cancelled."""
        assert ask is not None  # noqa: S101 - one of the two is given
        count = len(prompts)
        replies, tries = list[Response | None]([None] * count), [0] * count
        over = False
        tasks: set[asyncio.Task[None]] = set()

        async def asked(index: int) -> Any:
            if over:
                raise asyncio.CancelledError
            tries[index] += 1
            return await ask(Call(prompts[index], role, index))

        async def respond(index: int) -> None:
            try:
                said = BLANK if prompts[index].blank else await self._call(partial(asked, index))
                said = self._checked(said, Response)
                replies[index] = Response(said) if isinstance(said, str) else said
            except asyncio.CancelledError:
                if over:
                    raise
                # Cancelled by another user of a shared request, such as a cache: this call alone has failed.
                replies[index] = Response(None, error="the call was cancelled, though its reply was waited for")
            except KeyboardInterrupt as error:
                raise _Interrupted from error
            except INTERRUPTS:
                raise
            except BaseException as error:
                cause = self._failure(error)
                words = shown_in_one_line(error, cause)
                words = f"gave up after {tries[index]} tries: {words}" if tries[index] > 1 else words
                replies[index] = Response(None, words, cause=cause)
            tell(count - replies.count(None), count)

        def so_far() -> list[Response]:
            return [
                not_asked(cancelled=made > 0) if reply is None else reply
                for reply, made in zip(replies, tries, strict=True)
            ]

        # The rule is asked before each further call.
        at_once = (self._limits.lowered(self._cap) or AT_ONCE) if until else count
        sent = unseen = 0
        try:
            while True:
                due = min(count, sent + at_once - len(tasks))
                tasks |= {asyncio.ensure_future(respond(index)) for index in range(sent, due)}
                sent = due
                if not tasks:
                    return so_far()
                when = asyncio.FIRST_COMPLETED if until else asyncio.FIRST_EXCEPTION
                done, tasks = await asyncio.wait(tasks, return_when=when)
                for error in [task.exception() for task in done if not task.cancelled()]:
                    if error is not None:
                        raise error.__cause__ or error if isinstance(error, _Interrupted) else error
                unseen += len(done)
                if until and unseen > count // _MOST_LOOKS and None in replies:
                    unseen = 0
                    if await in_thread(until, so_far()):
                        return so_far()
        finally:
            over = True
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=_CANCELLING)

    async def _pieces(self, ask: Callable[[Call], AsyncIterator[Any]], call: Call) -> AsyncGenerator[Piece, None]:
        """Stream a reply; the call holds its slot, and is tried again, only until the first piece."""

        async def begin() -> tuple[AsyncGenerator[Any, None], Any]:
            pieces = self._limits.iterate(called(ask, call))
            return pieces, await anext(pieces, END)

        try:
            pieces, piece = await self._tried(begin)
            async with aclosing(pieces):
                while piece is not END:
                    yield self._checked(piece, Ending)
                    piece = await anext(pieces, END)
            return
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = error
        shown = self._failure(failed)
        if isinstance(shown, ModelError) and isinstance(failed, ModelError):
            raise shown
        raise ModelError(f"the final call failed: {shown_in_one_line(failed, shown)}") from shown

    async def _call(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        timed = partial(await_within, self._limits.timeout)
        return await self._tried(lambda: timed(acalled(ask())))

    async def _tried(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        async def in_turn() -> Result:
            async with self._limits.slot(self._cap, self._own):
                return await ask()

        return await retried(in_turn, self._attempts, self._worth_retrying)

    def _checked(self, said: Any, kind: type[Ending]) -> Any:
        """Return what a function gave if it is a text or of this kind, without keys that a server sent back."""
        if isinstance(said, str):
            return said
        if not isinstance(said, kind):
            wrong = f"{type(said).__name__}: {said!r:.60}"
            raise ModelError(f"the model function must return a str or a {kind.__name__}, got {wrong}")
        if said.refusal is None:
            return said
        return replace(said, refusal=redacted(said.refusal, secrets_of(*self._clients)))  # servers echo what they get

    def _failure(self, error: BaseException) -> Exception:
        """Return a failed call's exception without credentials; raise what is no failure."""
        if steers(error):
            raise error
        return presentable(error, secrets_of(*self._clients))


class CallableModel(CalledModel):
    """A model behind a function.

    A call is tried again after ConnectionError, TimeoutError, and any client's error with status 408, 409, 429 or 5xx.

    Args:
        fn: prompt to text, or to a `Response`, which says how the text ended. None when only `async_fn` is given.
        async_fn: the same as a coroutine function. None: asynchronous calls run `fn` in threads.
        stream_fn, async_stream_fn: prompt to pieces of text, for streaming the final answer; an `Ending` after the last
            one says how it ended. Without either, the final answer comes as one piece.
        max_concurrency: number of calls of this instance that may be under way at a time, over all answers being made:
            one cap for all threads, and one for each event loop. A stream counts until its first piece.
        timeout: seconds for one call (one try, or one whole stream), None for no limit. A synchronous function cannot
            be stopped from outside: its thread ends when it returns. While `max_concurrency` such threads, and at least
            32, still run, further calls fail.
        attempts: the most tries of one call.
        samples: True if the model samples (temperature above 0): two calls may then differ, and `answer.determinism`
            says what a radius is worth then. None: not declared.
        name: the model's name in reports.

    Raises:
        TypeError: neither function is given, or one is not callable.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        fn: Callable[[str], str | Response] | None = None,
        async_fn: Callable[[str], Awaitable[str | Response]] | None = None,
        *,
        stream_fn: Callable[[str], Iterator[Piece]] | None = None,
        async_stream_fn: Callable[[str], AsyncIterator[Piece]] | None = None,
        max_concurrency: int = 10,
        timeout: float | None = None,
        attempts: int = 3,
        samples: bool | None = None,
        name: str | None = None,
    ) -> None:
        functions = (fn, async_fn, stream_fn, async_stream_fn)
        if fn is not None and inspect.iscoroutinefunction(fn):
            raise TypeError("fn is a coroutine function; pass it as async_fn=")
        if fn is None and async_fn is None:
            raise TypeError("a CallableModel needs fn, a function from prompt to text, or async_fn, its async twin")
        if wrong := [type(given).__name__ for given in functions if given is not None and not callable(given)]:
            raise TypeError(f"a CallableModel takes functions from prompt to text, got {wrong[0]}")
        check_at_least(1, max_concurrency=max_concurrency, attempts=attempts)
        self._samples = checked_samples(samples)
        named: Any = fn or async_fn
        super().__init__(
            CallLimits(max_concurrency, timeout),
            name or str(getattr(named, "__qualname__", type(named).__name__)),
            _of_text(fn),
            _of_text(async_fn),
            stream=_of_text(stream_fn),
            astream=_of_text(async_stream_fn),
            clients=functions,
            attempts=attempts,
            worth_retrying=lambda error: isinstance(error, TRANSIENT) or is_busy(error),
        )

    @property
    def repeats(self) -> Repeats:
        """The reproducibility that `samples` declares."""
        return Repeats() if self._samples is None else Repeats.declared(self._samples)


def _of_text(fn: Callable[[str], Result] | None) -> Callable[[Call], Result] | None:
    return None if fn is None else lambda call: fn(call.prompt.text)


def _pieces_of(response: Response) -> Iterator[Piece]:
    if response.text is None and response.refusal is None:
        raise ModelError(f"the final call failed: {response.error}") from response.cause
    yield response.text or ""
    yield response
