"""A server's untrusted top-K list of next tokens, and its bounds on the tokens that are not listed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
_TIED = 0.99  # share of the highest probability; a server's rounding decides between tokens above it


class Vocabulary(Protocol):
    """The tokens that a server means by their texts."""

    def token_of(self, text: str) -> int | None:
        """Return the only token with this text; None where there are several, or none."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of these tokens."""
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
    """Read the log-probabilities of a completion's only token.

    Lists stand under `top_logprobs` (vLLM, SGLang, llama-cpp-python) or, as in chats, under `content` (mlx-lm,
    llama.cpp). The latter also name the token that was written, not always correctly, so that name is not read. The
    list's highest token is compared with the written text instead.

    Args:
        reply: a text completion of one token.
        wanted: number of tokens that were asked for.
        vocabulary: for servers that name tokens by their text. A text that several tokens have, or none (models have
            room for more tokens than their tokenizers know), counts for none of them.

    Raises:
        ModelError: there are none, they cannot be probabilities, or they do not fit the text that the server wrote;
            the message says which.
    """
    choice = choice_of(reply)
    logprobs = choice.get("logprobs")
    if choice.get("finish_reason") == "stop" and choice.get("text") == "" and _is_empty(logprobs):
        raise ModelError(
            "the server gives no log-probabilities where the most probable token ends the text (llama-cpp-python does "
            "not), so that no answer can be decoded to its end"
        )
    listing = list_at(reply, 0, wanted, vocabulary)
    if is_chat_style(reply):
        _check_written(choice.get("text"), listing.listed, vocabulary)
    return replace(listing, usage=usage_of(reply.get("usage")))


def list_at(reply: Mapping[str, Any], place: int, wanted: int, vocabulary: Vocabulary) -> TokenList:
    """Read the list that stands before the token at this place of a completion.

    An unlisted token has at most the probability of the last one listed, and at most what all listed ones leave over.
    Log-probabilities that are all float16 or bfloat16 numbers were computed as such: `unlisted` then covers that, too.

    Args:
        reply: a text completion.
        place: 0 for the first token.
        wanted, vocabulary: as for `token_list`.

    Raises:
        ModelError: there is none, or its numbers cannot be probabilities; the message says which.
    """
    logprobs = choice_of(reply).get("logprobs")
    entries = _content(logprobs, place) if is_chat_style(reply) else _top(logprobs, place)
    listed: dict[int, float] = {}
    dropped = 0
    by_text = 0
    for name, logprob in entries:
        probability = _probability(name, logprob)
        token, named = token_named(name, vocabulary)
        by_text += not named
        if token is None:
            dropped += 1
        elif token in listed:
            raise ModelError(f"the server listed the token {token} twice")
        else:
            listed[token] = probability
    total = math.fsum(listed.values())
    half = _in_half_precision([logprob for _, logprob in entries])
    if total > 1 + (_HALF_SUM if half else 1e-3):
        raise ModelError(f"the server's probabilities sum to {total:.4g}")
    left = max(0.0, 1 - total + _ROUNDING)
    rounding = 2 * max(_HALF, total - 1) if half else 0.0  # of a gap between two of them
    if len(entries) < wanted:
        # Texts that several tokens share are one key in a server's reply, so that fewer than K may be listed, and the
        # last one says nothing about those left out. Where tokens are named by number there is no such excuse.
        if not by_text and left > 2 * _ROUNDING:
            raise ModelError(f"the server listed {len(entries)} tokens of {wanted} that were asked for")
        return TokenList(listed, left + rounding)
    if dropped:
        return TokenList(listed, left + rounding)
    last = sorted(listed.values(), reverse=True)[wanted - 1]
    return TokenList(listed, min(last, left) + rounding)


def leader(listed: Mapping[int, float]) -> int | None:
    """Return the most probable token; None where another is tied with it."""
    tied = tied_highest(listed)
    return tied[0] if len(tied) == 1 else None


def tied_highest(listed: Mapping[int, float]) -> list[int]:
    """Return the most probable tokens: a server's rounding decides which of them it takes for the best."""
    highest = max(listed.values(), default=0.0)
    return [token for token, probability in listed.items() if probability >= _TIED * highest]


def is_chat_style(reply: Mapping[str, Any]) -> bool:
    """True if the log-probabilities stand where chats have them."""
    logprobs = choice_of(reply).get("logprobs")
    return isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list)


def _is_empty(logprobs: Any) -> bool:
    """True if there is an empty list of lists."""
    return isinstance(logprobs, dict) and logprobs.get("top_logprobs") == []


def _top(logprobs: Any, place: int) -> list[tuple[Any, Any]]:
    top = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    here = top[place] if isinstance(top, list) and place < len(top) else None
    if not isinstance(here, dict) or not here:
        raise _nothing()
    return list(here.items())


def _content(logprobs: Any, place: int) -> list[tuple[Any, Any]]:
    content = logprobs["content"]
    here = content[place] if place < len(content) else None
    top = here.get("top_logprobs") if isinstance(here, dict) else None
    if not isinstance(top, list) or not top or not all(isinstance(entry, dict) for entry in top):
        raise _nothing()
    return [(_name(entry), entry.get("logprob")) for entry in top]


def _name(entry: Mapping[str, Any]) -> Any:
    number = entry.get("id")
    known = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < _LARGEST_ID
    return f"{_BY_ID}{number}" if known else entry.get("token")


def _nothing() -> ModelError:
    return ModelError(
        "the server sent no token log-probabilities; decoding aggregation needs a completions API that takes "
        "`logprobs`, as vLLM and SGLang have"
    )


def _check_written(text: Any, listed: Mapping[int, float], vocabulary: Vocabulary) -> None:
    """Raise ModelError if the written token is known and another one is listed as more probable."""
    if not isinstance(text, str) or not text:  # a token that ends the text, or half a character
        return
    written = [t for t in (vocabulary.token_of(text), vocabulary.token_of(" " + text)) if t is not None]
    if listed and written and not set(written) & set(tied_highest(listed)):
        raise ModelError(f"the server wrote {text!r:.40} and lists another token as more probable")


def _probability(name: Any, logprob: Any) -> float:
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not logprob <= 1e-6:  # NaN is not, either
        raise ModelError(f"the server gave {logprob!r:.40} as the log-probability of {name!r:.40}")
    return math.exp(min(max(logprob, _LOWEST), 0.0))


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


def token_named(name: Any, vocabulary: Vocabulary) -> tuple[int | None, bool]:
    """Return the token that is meant, and whether it was named by number."""
    if not isinstance(name, str):
        raise ModelError(f"the server named a token by {name!r:.40}")
    number = name[len(_BY_ID) :]
    if name.startswith(_BY_ID) and number.isascii() and number.isdecimal() and len(number) < 10:
        if int(number) >= _LARGEST_ID:
            raise ModelError(f"the server named a token {name[:40]}, which is beyond any vocabulary")
        return int(number), True
    return vocabulary.token_of(name), False
