"""Any function from a prompt to a text as a language model."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, TypeAlias

from robustrag_integrations.checks import check_at_least
from robustrag_integrations.determinism import Repeats
from robustrag_integrations.errors import INTERRUPTS, ModelError
from robustrag_integrations.models.base import Response, Role, TextModel, Until
from robustrag_integrations.models.busy import (
    Tries,
    astream_again,
    checked_errors,
    gave_up,
    is_busy,
    retry_policy,
    stream_again,
)
from robustrag_integrations.models.call_threads import CallThreads
from robustrag_integrations.models.gathering import Turn, agather, gather
from robustrag_integrations.models.loop_thread import LoopThread
from robustrag_integrations.models.time_limits import astream_within, await_within, checked_timeout
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.redaction import in_one_line, presentable, secrets_of
from robustrag_integrations.replies.refusals import without_secrets
from robustrag_integrations.replies.reply import Ending, Piece

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, Retrying

Errors: TypeAlias = tuple[type[Exception], ...]

TRANSIENT: Errors = (ConnectionError, TimeoutError, asyncio.TimeoutError)


class CallableModel(TextModel):
    """A model behind a function.

    Args:
        fn: prompt to text, or to a `Response`, which says how the text ended. None when only `async_fn` is given;
            synchronous calls then run it in one loop, in a thread of the model's own.
        async_fn: the same as a coroutine function. None: asynchronous calls run `fn` in threads.
        stream_fn: prompt to pieces of text, for streaming the final answer; an `Ending` after the last one says how
            it ended.
        async_stream_fn: the same as an asynchronous generator function. None: asynchronous streams run `stream_fn` in a
            thread. Without either, the final answer comes as one piece.
        max_concurrency: how many calls of this instance may be under way at a time, over all answers being made: one
            cap for all threads, and one for each event loop. A stream counts until its first piece: its reader may be
            slow.
        timeout: seconds for one call (one try, or one whole stream), None for no limit. A synchronous function cannot
            be stopped from outside: its call is given up, the connection that it reads from is shut down, and its
            thread ends when the function returns. While `max_concurrency` such threads, and at least 32, still run,
            further calls fail.
        attempts: how often a call is tried in all.
        retry_on: exceptions worth another try. Others fail at once.
        retry_wait: seconds before the second try; doubled each time, with jitter, up to `retry_max_wait`.
        retry_max_wait: the longest wait, in seconds.
        retry_busy: whether a server that is busy (429, or 500 and above, in an error of any client) is worth another
            try too, after as long as its Retry-After says. Clients that try again by themselves multiply the tries.
        samples: whether the model samples (temperature above 0): two calls may then differ, and `answer.determinism`
            says what a radius is worth then. None: nobody said.
        name: the model's name in reports.
        threads: shared by models that call the same client, whose cap is theirs then; None: the model's own.

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
        retry_on: Sequence[type[Exception]] | type[Exception] = TRANSIENT,
        retry_wait: float = 0.5,
        retry_max_wait: float = 20.0,
        retry_busy: bool = False,
        samples: bool | None = None,
        name: str | None = None,
        threads: CallThreads | None = None,
    ) -> None:
        if fn is not None and inspect.iscoroutinefunction(fn):
            raise TypeError("fn is a coroutine function; pass it as async_fn=")
        if fn is None and async_fn is None:
            raise TypeError("a CallableModel needs fn, a function from prompt to text, or async_fn, its async twin")
        for label, given in (("fn", fn), ("async_fn", async_fn), ("stream_fn", stream_fn)):
            if given is not None and not callable(given):
                raise TypeError(f"{label} must be a function from prompt to text, got {type(given).__name__}")
        check_at_least(1, max_concurrency=max_concurrency, attempts=attempts)
        self._fn, self._async_fn = fn, async_fn
        self._stream_fn, self._async_stream_fn = stream_fn, async_stream_fn
        self._max_concurrency = max_concurrency
        self._timeout = checked_timeout(timeout)
        self._attempts, self._retry_on = attempts, checked_errors(retry_on)
        self._wait, self._max_wait = retry_wait, retry_max_wait
        self._retry_busy = retry_busy
        if samples is not None and not isinstance(samples, bool):
            raise TypeError(f"samples={samples!r:.60} must be True, False, or None where it is not known")
        self._samples = samples
        self._name = name or str(getattr(fn or async_fn, "__qualname__", type(fn or async_fn).__name__))
        self._threads = threads or CallThreads(max_concurrency)
        self._loop = LoopThread("robustrag-calls")

    @property
    def repeats(self) -> Repeats:
        """What the model was declared to do."""
        if self._samples is None:
            return Repeats()
        return Repeats("samples" if self._samples else "deterministic", f"declared by samples={self._samples}")

    @property
    def description(self) -> str:
        """The function's name, or the name that was given."""
        return self._name

    def warm_up(self) -> None:
        """Load what tries calls again; the function is not called."""
        self._async_retrying(self._retry_on)

    async def awarm_up(self) -> None:
        """`warm_up` for calls from this event loop."""
        self._async_retrying(self._retry_on)

    def generate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
        """Call the function on all prompts at once, `max_concurrency` at a time."""
        if self._fn is None:
            return self._run(self.agenerate(prompts, role))
        return self._gather(prompts)

    async def agenerate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
        """Await all prompts at once, `max_concurrency` at a time."""
        return await self._agather(prompts)

    def generate_until(self, prompts: Sequence[Prompt], role: Role, until: Until) -> list[Response]:
        """`generate` until the replies are enough; calls that are under way then are given up, as after a `timeout`."""
        if self._fn is None:
            return self._run(self.agenerate_until(prompts, role, until))
        return self._gather(prompts, until)

    async def agenerate_until(self, prompts: Sequence[Prompt], role: Role, until: Until) -> list[Response]:
        """`agenerate` until the replies are enough; the other calls are cancelled."""
        return await self._agather(prompts, until)

    def stream(self, prompt: Prompt) -> Iterator[Piece]:
        """The answer in pieces where a streaming function was given, else in one."""
        if self._stream_fn is None:
            yield from _pieces_of(self.generate([prompt], "final")[0])
            return
        try:
            pieces = map(self._checked_piece, stream_again(lambda: self._pieces(prompt), self._retrying()))
            with self._threads.slots:  # until it begins: its reader may be slow, or never read it
                first = next(pieces, None)
            if first is not None:
                yield first
                yield from pieces
            return
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = error
        raise self._final_failure(failed)

    async def astream(self, prompt: Prompt) -> AsyncIterator[Piece]:
        """`stream` without blocking the event loop."""
        if self._async_stream_fn is None and self._stream_fn is None:
            for piece in _pieces_of((await self.agenerate([prompt], "final"))[0]):
                yield piece
            return
        try:
            async with aclosing(astream_again(lambda: self._apieces_made(prompt), self._async_retrying())) as pieces:
                async with self._threads.loop_slots.here():  # as above
                    first = await anext(pieces, None)
                if first is not None:
                    yield self._checked_piece(first)
                    async for piece in pieces:
                        yield self._checked_piece(piece)
            return
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = error
        raise self._final_failure(failed)

    def _run(self, calls: Coroutine[Any, Any, list[Response]]) -> list[Response]:
        """Make asynchronous calls for a synchronous caller, in the loop that this model keeps for that."""
        if not self._loop.runs_here:
            return self._loop.run(calls)
        with closing(LoopThread("robustrag-nested-calls")) as another:  # `async_fn` itself asks, without awaiting
            return another.run(calls)

    def _pieces(self, prompt: Prompt) -> Iterator[Piece]:
        return self._threads.stream(self._timeout, self._made(prompt))

    def _apieces_made(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        if self._async_stream_fn is not None:
            return astream_within(self._timeout, self._async_stream_fn(prompt.text))
        return self._threads.astream(self._timeout, self._made(prompt))

    def _made(self, prompt: Prompt) -> Iterator[Piece]:
        assert self._stream_fn is not None  # noqa: S101 - the streams took the other way
        return self._stream_fn(prompt.text)

    def _checked(self, said: Any) -> Response:
        """What a function returned, as a `Response`."""
        if isinstance(said, str):
            return Response(said)
        if not isinstance(said, Response):
            kind = type(said).__name__
            raise ModelError(f"the model function must return a str or a Response, got {kind}: {said!r:.60}")
        return without_secrets(said, *self._functions)

    def _checked_piece(self, piece: Any) -> Piece:
        if isinstance(piece, str):
            return piece
        if not isinstance(piece, Ending):
            kind = type(piece).__name__
            raise ModelError(
                f"the model's stream must give pieces of type str, and an Ending last, got {kind}: {piece!r:.60}"
            )
        return without_secrets(piece, *self._functions)

    @property
    def _functions(self) -> tuple[Any, ...]:
        return (self._fn, self._async_fn, self._stream_fn, self._async_stream_fn)

    def _secrets(self) -> tuple[str, ...]:
        """What must not be read in an error: the keys of the clients that the functions use."""
        return secrets_of(*self._functions)

    def _final_failure(self, error: BaseException) -> ModelError:
        secrets = self._secrets()
        shown = presentable(error, secrets)
        if isinstance(shown, ModelError) and isinstance(error, ModelError):
            return shown
        failure = ModelError(f"the final call failed: {in_one_line(error, secrets)}")
        failure.__cause__ = shown
        return failure

    def _gather(self, prompts: Sequence[Prompt], until: Until | None = None) -> list[Response]:
        return gather(lambda i, turn: self._respond(prompts[i].text, turn), len(prompts), self._max_concurrency, until)

    async def _agather(self, prompts: Sequence[Prompt], until: Until | None = None) -> list[Response]:
        slots = self._threads.loop_slots.here()
        return await agather(lambda i, turn: self._arespond(prompts[i].text, turn, slots), len(prompts), until)

    def _respond(self, prompt: str, turn: Turn) -> Response:
        tries = Tries(lambda: self._retrying(turn.stopped, self._retry_on))
        try:
            return self._checked(tries.call(lambda: self._call(prompt, turn)))
        except INTERRUPTS:
            raise
        except BaseException as error:
            return self._failed(error, tries)

    def _call(self, prompt: str, turn: Turn) -> str | Response:
        assert self._fn is not None  # noqa: S101 - generate() took the other way
        with self._threads.slots:
            turn.begin()
            return self._threads.call(self._timeout, self._fn, prompt, given_up=turn.given_up)

    async def _arespond(self, prompt: str, turn: Turn, slots: asyncio.Semaphore) -> Response:
        tries = Tries(lambda: self._async_retrying(self._retry_on))
        try:
            return self._checked(await tries.acall(lambda: self._acall(prompt, turn, slots)))
        except INTERRUPTS:
            raise
        except BaseException as error:
            return self._failed(error, tries)

    def _failed(self, error: BaseException, tries: Tries) -> Response:
        return Response(None, error=gave_up(error, in_one_line(error, self._secrets()), tries.made))

    async def _acall(self, prompt: str, turn: Turn, slots: asyncio.Semaphore) -> str | Response:
        async with slots:
            turn.begin()
            if self._async_fn is not None:
                return await await_within(self._timeout, self._async_fn(prompt))
            assert self._fn is not None  # noqa: S101 - the constructor wants one of the two
            return await self._threads.acall(self._timeout, self._fn, prompt)

    def _retrying(self, stopped: threading.Event | None = None, errors: Errors = ()) -> Retrying:
        from tenacity import Retrying, sleep_using_event, stop_any, stop_when_event_set

        stopped = stopped or threading.Event()
        policy = self._policy(errors)
        stop = stop_any(policy.pop("stop"), stop_when_event_set(stopped))
        return Retrying(sleep=sleep_using_event(stopped), stop=stop, **policy)

    def _async_retrying(self, errors: Errors = ()) -> AsyncRetrying:
        from tenacity import AsyncRetrying

        return AsyncRetrying(**self._policy(errors))

    def _policy(self, errors: Errors) -> dict[str, Any]:
        def is_worth_it(error: BaseException) -> bool:
            return isinstance(error, errors) or (self._retry_busy and is_busy(error))

        return retry_policy(is_worth_it, self._attempts, self._wait, self._max_wait)


def _pieces_of(response: Response) -> Iterator[Piece]:
    if response.text is None and response.refusal is None:
        raise ModelError(f"the final call failed: {response.error}")
    yield response.text or ""
    yield response
