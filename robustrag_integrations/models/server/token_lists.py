"""A server's top-K list of next tokens, read with suspicion, and what it says about the tokens that are not on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server.replies import choice_of

_BY_ID = "token_id:"
_LARGEST_ID = 1 << 22
_LOWEST = -1e4  # of a log-probability; below it all are 0, and whole numbers may be too large for a float
_ROUNDING = 1e-5  # what a sum of probabilities may miss 1 by, as servers compute in float32 and print in decimal


class Vocabulary(Protocol):
    """Which token a server means by a text."""

    def token_of(self, text: str) -> int | None:
        """The only token with this text; None where there are several, or none."""
        ...


@dataclass(frozen=True)
class TokenList:
    """The most probable next tokens of one prompt.

    Attributes:
        listed: token to probability.
        unlisted: what the probability of any other token is at most.
    """

    listed: Mapping[int, float]
    unlisted: float

    def most(self, token: int) -> float:
        """What this token's probability is at most; the probability itself if it is on the list."""
        return self.listed.get(token, self.unlisted)


def token_list(reply: Mapping[str, Any], wanted: int, vocabulary: Vocabulary) -> TokenList:
    """Read the log-probabilities of a completion's only token.

    An unlisted token has at most the probability of the last one listed, and at most what all listed ones leave over.

    Args:
        reply: a text completion of one token.
        wanted: how many tokens were asked for.
        vocabulary: for servers that name tokens by their text. A text that several tokens have, or none (models have
            room for more tokens than their tokenizers know), counts for none of them.

    Raises:
        ModelError: there are none, or what there is cannot be probabilities; the message says which.
    """
    found = _top(reply)
    listed: dict[int, float] = {}
    dropped = 0
    by_text = 0
    for name, logprob in found.items():
        probability = _probability(name, logprob)
        token, named = _token(name, vocabulary)
        by_text += not named
        if token is None:
            dropped += 1
        elif token in listed:
            raise ModelError(f"the server listed the token {token} twice")
        else:
            listed[token] = probability
    total = math.fsum(listed.values())
    if total > 1 + 1e-3:
        raise ModelError(f"the server's probabilities sum to {total:.4g}")
    left = max(0.0, 1 - total + _ROUNDING)
    if len(found) < wanted:
        # Texts that several tokens share are one key in a server's reply, so that fewer than K may be listed, and the
        # last one says nothing about those left out. Where tokens are named by number there is no such excuse.
        if not by_text and left > 2 * _ROUNDING:
            raise ModelError(f"the server listed {len(found)} tokens of {wanted} that were asked for")
        return TokenList(listed, left)
    if dropped:
        return TokenList(listed, left)
    last = sorted(listed.values(), reverse=True)[wanted - 1]
    return TokenList(listed, min(last, left))


def _top(reply: Mapping[str, Any]) -> Mapping[Any, Any]:
    logprobs = choice_of(reply).get("logprobs")
    top = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    if not isinstance(top, list) or not top or not isinstance(top[0], dict) or not top[0]:
        raise ModelError(
            "the server sent no token log-probabilities; decoding aggregation needs a completions API that takes "
            "`logprobs`, as vLLM and SGLang have"
        )
    listed: Mapping[Any, Any] = top[0]
    return listed


def _probability(name: Any, logprob: Any) -> float:
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not logprob <= 1e-6:  # NaN is not, either
        raise ModelError(f"the server gave {logprob!r:.40} as the log-probability of {name!r:.40}")
    return math.exp(min(max(logprob, _LOWEST), 0.0))


def _token(name: Any, vocabulary: Vocabulary) -> tuple[int | None, bool]:
    """The token that is meant, and whether it was named by number."""
    if not isinstance(name, str):
        raise ModelError(f"the server named a token by {name!r:.40}")
    number = name[len(_BY_ID) :]
    if name.startswith(_BY_ID) and number.isascii() and number.isdecimal() and len(number) < 10:
        if int(number) >= _LARGEST_ID:
            raise ModelError(f"the server named a token {name[:40]}, which is beyond any vocabulary")
        return int(number), True
    return vocabulary.token_of(name), False
