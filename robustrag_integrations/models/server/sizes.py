"""How large a reply may be, in proportion to what was asked for. Reading costs time and memory that grow with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FRAME = 64 << 10  # bytes of a reply around its tokens
_TOKEN = 128  # bytes of a token, escaped, with its share of a reasoning text
_LISTED = 128  # bytes of a token that is listed with its log-probability
_CHUNK = 2 << 10  # bytes of an event around its token
_LIMITS = ("max_tokens", "max_completion_tokens")
_LISTS = ("logprobs", "top_logprobs")


def largest_reply(request: Mapping[str, Any]) -> int:
    """Bytes of the whole reply to a request, or of one event of a stream: some servers send all tokens in one."""
    return _FRAME + _most(request, _LIMITS) * _per_token(request)


def largest_stream(request: Mapping[str, Any]) -> int:
    """Bytes of a stream of events, one for each token."""
    return _FRAME + _most(request, _LIMITS) * (_CHUNK + _per_token(request))


def _per_token(request: Mapping[str, Any]) -> int:
    listed = _most(request, _LISTS)
    return _TOKEN + (_LISTED * (listed + 1) if listed else 0)


def _most(request: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """The largest number under one of these names; `extra_body` is a part of the request."""
    extra = request.get("extra_body")
    parts = (request, extra if isinstance(extra, Mapping) else {})
    return max(
        (int(part[name]) for part in parts for name in names if isinstance(part.get(name), (int, float))), default=0
    )
