"""A server's untrusted top-K list of next tokens, and its bounds on the tokens that are not listed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server.replies import choice_of
from robustrag_integrations.replies.blocks import usage_of

_BY_ID = "token_id:"
_LARGEST_ID = 1 << 22
_LOWEST = -1e4  # log-probability; lower ones are 0 in effect, and integers may be too large for a float
_ROUNDING = 1e-5  # error of a sum of probabilities, as servers compute in float32 and print in decimal
_HALF = 2.0**-7  # error of a probability that was computed in half precision, from logits of up to 16
_HALF_SUM = 0.05  # excess of their sum over 1


class Vocabulary(Protocol):
    """The tokens that a server means by their texts."""

    def token_of(self, text: str) -> int | None:
        """Return the only token with this text; None where there are several, or none."""
        ...


@dataclass(frozen=True)
class TokenList:
    """The most probable next tokens of one prompt.

    Attributes:
        listed: token to probability.
        unlisted: an upper bound on the probability of any other token, plus the error of a listed one.
        usage: the usage of the request.
    """

    listed: Mapping[int, float]
    unlisted: float
    usage: Usage = field(default=Usage(), compare=False)

    def most(self, token: int) -> float:
        """Return an upper bound on this token's probability; the probability itself if it is on the list."""
        return self.listed.get(token, self.unlisted)


def token_list(reply: Mapping[str, Any], wanted: int, vocabulary: Vocabulary) -> TokenList:
    """Read the log-probabilities of a completion's first token.

    An unlisted token has at most the probability of the last one listed, and at most what all listed ones leave over.
    Log-probabilities that are all float16 or bfloat16 numbers were computed as such: `unlisted` then covers that, too.

    Args:
        reply: a text completion.
        wanted: number of tokens that were asked for.
        vocabulary: for servers that name tokens by their text. A text that several tokens have, or none (models have
            room for more tokens than their tokenizers know), counts for none of them.

    Raises:
        ModelError: there are none, or they cannot be probabilities; the message says which.
    """
    logprobs = choice_of(reply).get("logprobs")
    top = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    entries = top[0] if isinstance(top, list) and top else None
    if not isinstance(entries, dict) or not entries:
        raise ModelError(
            "the server sent no token log-probabilities; decoding aggregation needs a completions API that takes "
            "`logprobs`, as vLLM and SGLang have"
        )
    listed: dict[int, float] = {}
    dropped = by_text = 0
    for name, logprob in entries.items():
        probability = _probability(name, logprob)
        token, named = _token_named(name, vocabulary)
        by_text += not named
        if token is None:
            dropped += 1
        elif token in listed:
            raise ModelError(f"the server listed the token {token} twice")
        else:
            listed[token] = probability
    total = math.fsum(listed.values())
    half = _in_half_precision(list(entries.values()))
    if total > 1 + (_HALF_SUM if half else 1e-3):
        raise ModelError(f"the server's probabilities sum to {total:.4g}")
    left = max(0.0, 1 - total + _ROUNDING)
    if len(entries) < wanted and not by_text and left > 2 * _ROUNDING:
        # Texts that several tokens share are one key in a server's reply, so that fewer than K may be listed, and the
        # last one says nothing about those left out. Where tokens are named by number there is no such excuse.
        raise ModelError(f"the server listed {len(entries)} tokens of {wanted} that were asked for")
    whole = len(entries) >= wanted and not dropped
    last = sorted(listed.values(), reverse=True)[wanted - 1] if whole else left
    rounding = 2 * max(_HALF, total - 1) if half else 0.0  # of a gap between two of them
    return TokenList(listed, min(last, left) + rounding, usage_of(reply.get("usage")))


def _in_half_precision(logprobs: Sequence[float]) -> bool:
    """Tell whether these are all float16 numbers, or all bfloat16 numbers, which others hardly ever are."""
    exact = np.array([logprob for logprob in logprobs if logprob >= _LOWEST], np.float64)
    if len(exact) < 2:
        return False
    single = exact.astype(np.float32)
    if not np.array_equal(single, exact):
        return False
    with np.errstate(over="ignore"):
        return bool(np.array_equal(exact.astype(np.float16), exact) or not (single.view(np.uint32) & 0xFFFF).any())


def _probability(name: Any, logprob: Any) -> float:
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not logprob <= 1e-6:  # NaN is not, either
        raise ModelError(f"the server gave {logprob!r:.40} as the log-probability of {name!r:.40}")
    return math.exp(min(max(logprob, _LOWEST), 0.0))


def _token_named(name: str, vocabulary: Vocabulary) -> tuple[int | None, bool]:
    """Return the token that is meant, and whether it was named by number."""
    number = name[len(_BY_ID) :]
    if name.startswith(_BY_ID) and number.isascii() and number.isdecimal() and len(number) < 10:
        if int(number) >= _LARGEST_ID:
            raise ModelError(f"the server named a token {name[:40]}, which is beyond any vocabulary")
        return int(number), True
    return vocabulary.token_of(name), False
