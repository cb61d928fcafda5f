"""Reading a client's error: the parameter that the model refuses, whether another try may help, and how long to wait.

The words are the server's, and may repeat a prompt with whatever a passage says: a parameter that is read out of them
is a suspicion, which `capabilities` puts to the test. How long to wait is what the server says, where it does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

LONGEST_WAIT = 60.0  # seconds that a server may ask for; with more than that there is no other try

_BUSY = (408, 409, 429)  # and all of 500 and above
_NAMES = {
    "OverloadedError", "ModelRateLimitError", "RateLimitError", "ResourceExhausted", "ServiceUnavailable",
    "ThrottlingException", "TooManyRequests", "TooManyRequestsError",
}  # fmt: skip

REFUSING = (400, 422)
"""The statuses of an HTTP reply to a request that is not as it should be."""

SYSTEM = "system"  # stands for a message with the role `system`
LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
PARAMETERS = (
    "top_logprobs", "logprobs", "logit_bias", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed",
    "random_seed", "min_p", "top_k", "top_p", "stop", *LIMITS, SYSTEM, "temperature",
)  # fmt: skip
"""What can be left out of a request, what is missed least first."""

_LONGEST = 2_000  # characters of an error's words that are looked at
_DEEPEST = 5  # errors in a chain
_REFUSAL = re.compile(
    r"support|allow|permit|recogni[sz]|unknown|unexpected|invalid|extra|deprecat|remov|disabled|not enabled|cannot|"
    r"can't|must|may only|should|only|incompatible|forbidden|not available|alternate",
    re.I,
)
_SYSTEM = re.compile(
    r"\b(?:system|developer)['\"`]?\s{1,3}(?:role|message|prompt|instruction)|\brole\b[^.\n]{0,60}['\"`]system\b|"
    r"\broles must alternate",
    re.I,
)


def refused_parameter(error: BaseException, sent: Collection[str]) -> str | None:
    """Which of the parameters that were sent an error refuses.

    Args:
        error: of a server (400 or 422), of its client, or of a function that does not know an argument.
        sent: names of `PARAMETERS`.

    Returns:
        The parameter; None if the error says nothing of the kind.
    """
    status = status_of(error)
    if status not in (*REFUSING, None) or isinstance(error, OSError):
        return None
    return named_parameter(error, sent) or _named_in(str(error)[:_LONGEST], sent)


def named_parameter(error: BaseException, sent: Collection[str] = PARAMETERS) -> str | None:
    """Which of the parameters an error names in a field of its own, beside its words."""
    return next((name for name in _named_apart(error) if name in sent), None)


def status_of(error: BaseException) -> int | None:
    """The HTTP status behind an error, or behind what it is chained to; None if there is none."""
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


def _named_apart(error: BaseException) -> Iterator[str]:
    """What an error names in fields of their own: `param`, or the last part of a `loc`."""
    for one in chain_of(error):
        body = getattr(one, "body", None)
        inner = body.get("error") if isinstance(body, Mapping) else None
        for holder in (one, body, inner):
            name = holder.get("param") if isinstance(holder, Mapping) else getattr(holder, "param", None)
            if isinstance(name, str):
                yield SYSTEM if name.startswith("messages") and name.endswith("role") else name
        details = body.get("detail") if isinstance(body, Mapping) else None
        for detail in details[:20] if isinstance(details, list) else []:
            place = detail.get("loc") if isinstance(detail, Mapping) else None
            if isinstance(place, list) and place and isinstance(place[-1], str):
                yield place[-1]


def _named_in(words: str, sent: Collection[str]) -> str | None:
    """The parameter that a refusal names first; of several that do not go together, the one that is missed least."""
    if not _REFUSAL.search(words):
        return None
    places: dict[str, int] = {}
    for name in PARAMETERS:
        pattern = _SYSTEM if name == SYSTEM else re.compile(rf"(?<!\w){name}(?!\w)", re.I)
        if name in sent and (match := pattern.search(words)):
            places[name] = match.start()
    if not places:
        return None
    together = re.search(r"\bboth\b|\bonly one\b|\bone of\b", words, re.I)
    return next(iter(places)) if together else min(places, key=places.__getitem__)


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it is chained to, as far as is looked at."""
    for _ in range(_DEEPEST):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


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
    pause = retry_after(error) or 0.0
    waits = f" (the server asks to be left alone for {min(pause, 1e9):.0f} seconds, more than are waited for)"
    return (f"gave up after {tries} tries: {words}" if tries > 1 else words) + (waits if pause > LONGEST_WAIT else "")
