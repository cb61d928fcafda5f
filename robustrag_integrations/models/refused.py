"""Reading an error for the parameter of a request that the model refuses.

The words are the server's, and may repeat a prompt with whatever a passage says: what is read here is a suspicion,
which `capabilities` puts to the test.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

REFUSING = (400, 422)
"""The statuses of an HTTP reply to a request that is not as it should be."""

SYSTEM = "system"  # stands for a message with the role `system`
LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
PARAMETERS = (
    "top_logprobs",
    "logprobs",
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
    "random_seed",
    "min_p",
    "top_k",
    "top_p",
    "stop",
    *LIMITS,
    SYSTEM,
    "temperature",
)
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
        for found in (
            getattr(one, "status_code", None),
            getattr(one, "status", None),
            getattr(response, "status_code", None),
            meta.get("HTTPStatusCode") if isinstance(meta, Mapping) else None,
            getattr(one, "code", None),
        ):
            if isinstance(found, int) and not isinstance(found, bool) and 100 <= found < 600:
                return int(found)
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
        if name in sent and (found := pattern.search(words)):
            places[name] = found.start()
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
