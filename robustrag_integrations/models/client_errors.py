"""Reading a client's error: whether another try may help, and how long to wait, where the server says so."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets no other try

_BUSY = (408, 409, 429)  # and all of 500 and above
_NAMES = {
    "OverloadedError", "ModelRateLimitError", "RateLimitError", "ResourceExhausted", "ServiceUnavailable",
    "ThrottlingException", "TooManyRequests", "TooManyRequestsError",
}  # fmt: skip

_DEEPEST = 5  # errors in a chain


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error, or of one that it is chained to; None if there is none."""
    for one in chain_of(error):
        response = getattr(one, "response", None)
        meta = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
        for status in (
            getattr(one, "status_code", None),
            getattr(one, "status", None),
            getattr(response, "status_code", None),
            meta.get("HTTPStatusCode") if isinstance(meta, Mapping) else None,
            getattr(one, "code", None),
        ):
            if isinstance(status, int) and not isinstance(status, bool) and 100 <= status < 600:
                return int(status)
    return None


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it is chained to, `_DEEPEST` at most."""
    for _ in range(_DEEPEST):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def is_busy(error: BaseException) -> bool:
    """True if the server cannot answer now: 408, 409, 429, or 500 and above."""
    status = status_of(error)
    if status is not None:
        return status in _BUSY or status >= 500
    return any(kind.__name__ in _NAMES for kind in type(error).__mro__)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds of the server's `Retry-After`; None if it sent none."""
    for one in chain_of(error):
        if isinstance(seconds := getattr(one, "retry_after", None), (int, float)):
            return max(0.0, seconds)
        headers = getattr(getattr(one, "response", None), "headers", None)
        if isinstance(headers, Mapping):
            named = {str(name).casefold(): str(value) for name, value in headers.items()}
            for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
                if (seconds := _seconds(named.get(name), per_second)) is not None:
                    return seconds
    return None


def _seconds(header: str | None, per_second: int) -> float | None:
    if header is None:
        return None
    try:
        return max(0.0, float(header) / per_second)
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def pause_before_retry(error: BaseException, tries: int, wait: float, max_wait: float) -> float | None:
    """Return the seconds to wait before a retry: the server's `Retry-After`, or exponential backoff with full jitter.

    Args:
        error: the last try's error.
        tries: the number of tries so far.
        wait: the longest wait after the first try; it is doubled each time.
        max_wait: the longest wait after any.

    Returns:
        None where the server asks for more than `LONGEST_WAIT`.
    """
    asked = retry_after(error)
    if asked is None:
        from tenacity import RetryCallState, wait_random_exponential

        state = RetryCallState(cast(Any, None), None, (), {})  # the number of tries decides
        state.attempt_number = min(tries, 64)
        return float(wait_random_exponential(multiplier=wait, max=max_wait)(state))
    return asked if asked <= LONGEST_WAIT else None


def checked_errors(given: object) -> tuple[type[Exception], ...]:
    """Check `retry_on`, one exception class or several, and return a tuple.

    Raises:
        TypeError: one is not an exception class.
    """
    listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (type, str)) else (given,)
    for kind in listed:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(f"retry_on={given!r:.60} must hold classes of exceptions, such as ConnectionError")
    return listed


def failure_message(error: BaseException, words: str, tries: int) -> str:
    """Word an error, with the number of tries if several, and with a requested pause that is too long to wait for."""
    pause = retry_after(error) or 0.0
    waits = f" (the server asks to be left alone for {min(pause, 1e9):.0f} seconds, more than are waited for)"
    return (f"gave up after {tries} tries: {words}" if tries > 1 else words) + (waits if pause > LONGEST_WAIT else "")
