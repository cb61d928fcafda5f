"""Trying again: which errors are worth it, and how long to wait, as long as the server says where it does."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from robustrag_integrations.models.refused import chain_of, status_of
from robustrag_integrations.models.time_limits import END, next_piece

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, Retrying

Piece = TypeVar("Piece")
Said = TypeVar("Said")

LONGEST_WAIT = 60.0  # seconds that a server may ask for; with more than that there is no other try

_BUSY = (408, 409, 429)  # and all of 500 and above
_NAMES = {
    "RateLimitError",
    "ModelRateLimitError",
    "ResourceExhausted",
    "TooManyRequests",
    "TooManyRequestsError",
    "ThrottlingException",
    "OverloadedError",
    "ServiceUnavailable",
}


def is_busy(error: BaseException) -> bool:
    """Whether the server said that it cannot answer now: 408, 409, 429, or 500 and above."""
    status = status_of(error)
    if status is not None:
        return status in _BUSY or status >= 500
    return any(kind.__name__ in _NAMES for kind in type(error).__mro__)


def retry_after(error: BaseException) -> float | None:
    """The seconds that the server wants to be left alone (`Retry-After`); None if it said nothing."""
    for one in chain_of(error):
        headers = getattr(getattr(one, "response", None), "headers", None)
        if isinstance(headers, Mapping):
            named = {str(name).casefold(): str(value) for name, value in headers.items()}
            if (found := _seconds(named.get("retry-after-ms"), 1000)) is not None:
                return found
            if (found := _seconds(named.get("retry-after"), 1)) is not None:
                return found
    return None


def _seconds(said: str | None, per_second: int) -> float | None:
    if said is None:
        return None
    try:
        return max(0.0, float(said) / per_second)
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def checked_errors(given: object) -> tuple[type[Exception], ...]:
    """`retry_on` from user arguments: one class of exceptions, or several.

    Raises:
        TypeError: something else is among them.
    """
    listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (type, str)) else (given,)
    for kind in listed:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(f"retry_on={given!r:.60} must hold classes of exceptions, such as ConnectionError")
    return listed


def retry_policy(
    worth_it: Callable[[BaseException], bool], attempts: int, wait: float = 0.5, max_wait: float = 20.0
) -> dict[str, Any]:
    """The arguments of tenacity's `Retrying` and `AsyncRetrying`.

    Args:
        worth_it: whether another try may help after this error.
        attempts: tries in all.
        wait: seconds before the second try, doubled each time, with jitter, where the server says nothing.
        max_wait: the longest such wait.
    """
    from tenacity import retry_if_exception, stop_after_attempt, wait_random_exponential

    backoff = wait_random_exponential(multiplier=wait, max=max_wait)

    def waiting(state: Any) -> float:
        told = retry_after(state.outcome.exception())
        return float(backoff(state)) if told is None else told

    return {
        "retry": retry_if_exception(lambda e: worth_it(e) and (retry_after(e) or 0.0) <= LONGEST_WAIT),
        "stop": stop_after_attempt(attempts),
        "wait": waiting,
        "reraise": True,
    }


class Tries:
    """The tries of one call. The first is made without tenacity, which takes longer than an answer's bookkeeping.

    Args:
        retrying: makes tenacity's `Retrying` or `AsyncRetrying`, once the first try has failed.
    """

    def __init__(self, retrying: Callable[[], Any]) -> None:
        self._retrying = retrying
        self.made = 1

    def call(self, ask: Callable[[], Said]) -> Said:
        """Call a function until it returns, or fails for good."""
        try:
            return ask()
        except Exception as error:
            first = [error]

        def again() -> Said:
            if first:
                raise first.pop()
            return ask()

        trying = self._retrying()
        try:
            said: Said = trying(again)
            return said
        finally:
            self.made = trying.statistics.get("attempt_number", 1)

    async def acall(self, ask: Callable[[], Awaitable[Said]]) -> Said:
        """`call` in an event loop."""
        try:
            return await ask()
        except Exception as error:
            first = [error]

        async def again() -> Said:
            if first:
                raise first.pop()
            return await ask()

        trying = self._retrying()
        try:
            said: Said = await trying(again)
            return said
        finally:
            self.made = trying.statistics.get("attempt_number", 1)


def stream_again(ask: Callable[[], Iterator[Piece]], trying: Retrying) -> Iterator[Piece]:
    """A stream that is asked for again where it fails before its first piece."""

    def begun() -> tuple[Piece, Iterator[Piece]]:
        pieces = ask()
        return next(pieces, END), pieces

    first, rest = trying(begun)
    if first is not END:
        yield first
        yield from rest


async def astream_again(
    ask: Callable[[], AsyncGenerator[Piece, None]], trying: AsyncRetrying
) -> AsyncGenerator[Piece, None]:
    """`stream_again` for an asynchronous stream."""

    async def begun() -> tuple[Piece, AsyncGenerator[Piece, None]]:
        pieces = ask()
        return await next_piece(pieces), pieces

    started: tuple[Piece, AsyncGenerator[Piece, None]] = await trying(begun)
    first, rest = started
    async with aclosing(rest):
        if first is not END:
            yield first
            async for piece in rest:
                yield piece


def gave_up(error: BaseException, words: str, tries: int) -> str:
    """An error in words, with the number of tries where there were several, and a pause that was too long for more."""
    return (f"gave up after {tries} tries: {words}" if tries > 1 else words) + long_pause(error)


def long_pause(error: BaseException) -> str:
    """What to add to an error's words where the server asks for a longer pause than is waited for; else nothing."""
    pause = retry_after(error) or 0.0
    if pause <= LONGEST_WAIT:
        return ""
    return f" (the server asks to be left alone for {min(pause, 1e9):.0f} seconds, more than are waited for)"
