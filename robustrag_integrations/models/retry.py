"""Which errors are worth another try, and how long to wait before it: as long as the server says, where it does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from robustrag_integrations.models.refused import chain_of, status_of

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
    """The seconds to wait before another try: what the server asks for, or a random part of a doubled wait.

    Args:
        error: what the last try ended in.
        tries: how many were made.
        wait: the longest wait after the first try; it is doubled each time.
        max_wait: the longest wait after any.

    Returns:
        None where the server asks for more than is waited for.
    """
    asked = retry_after(error)
    if asked is None:
        from tenacity import RetryCallState, wait_random_exponential

        state = RetryCallState(cast(Any, None), None, (), {})  # the number of tries decides
        state.attempt_number = min(tries, 64)
        return float(wait_random_exponential(multiplier=wait, max=max_wait)(state))
    return asked if asked <= LONGEST_WAIT else None


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


def failure_message(error: BaseException, words: str, tries: int) -> str:
    """An error in words, with the number of tries where there were several, and a pause that was too long for more."""
    return (f"gave up after {tries} tries: {words}" if tries > 1 else words) + long_pause(error)


def long_pause(error: BaseException) -> str:
    """What to add to an error's words where the server asks for a longer pause than is waited for; else nothing."""
    pause = retry_after(error) or 0.0
    if pause <= LONGEST_WAIT:
        return ""
    return f" (the server asks to be left alone for {min(pause, 1e9):.0f} seconds, more than are waited for)"
