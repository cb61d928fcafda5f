"""How sure a model is of a reply, from the log-probabilities of its tokens, and their reading from what clients give.

Servers are not trusted: what is no list of log-probabilities counts as not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from robustrag_integrations.replies.reply import entry

LEVELS = 16
"""The highest level of `confidence`."""

LONGEST = 1 << 17  # tokens of a reply
_ROUNDING = 1e-3  # by which a log-probability may exceed 0, as servers round
LOWEST = -1e4  # log-probability; lower ones are 0 in effect


def confidence(logprobs: Sequence[float] | None) -> int | None:
    """Return how sure a model was of a reply, as a whole number from 0 to `LEVELS`.

    It is floor(LEVELS * exp(s / sqrt(n))), where s is the sum of the n tokens' log-probabilities, that of the end token
    among them: between the probability of the whole reply, which falls with its length, and the mean over its tokens,
    which does not.

    Args:
        logprobs: natural logarithms, one a token.

    Returns:
        The level; None where nothing is known, or a number is NaN.
    """
    if not logprobs or math.isnan(total := sum(logprobs)):
        return None
    return int(LEVELS * math.exp(min(0.0, total / math.sqrt(len(logprobs)))))


def logprobs_in(found: Any) -> tuple[float, ...] | None:
    """Return the log-probabilities of a reply's tokens, as OpenAI-compatible servers and their clients list them.

    Args:
        found: the `logprobs` of a chat (`content`, a list of tokens with their `logprob`) or of a text completion
            (`token_logprobs`, a list of numbers), as mappings or objects; or one of these lists.

    Returns:
        None where there are none, or more than `LONGEST`, or something among them is no log-probability.
    """
    listed = found
    if found is not None and not isinstance(found, (list, tuple)):
        listed = next((v for n in ("content", "token_logprobs") if isinstance(v := entry(found, n), (list, tuple))), ())
    return _checked(entry(e, "logprob") if isinstance(e, Mapping) or hasattr(e, "logprob") else e for e in listed or ())


def _checked(values: Iterable[Any]) -> tuple[float, ...] | None:
    found: list[float] = []
    for value in islice(values, LONGEST + 1):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and value <= _ROUNDING):  # NaN is not, either
            return None
        found.append(float(min(max(value, LOWEST), 0.0)))
    return tuple(found) if 0 < len(found) <= LONGEST else None
