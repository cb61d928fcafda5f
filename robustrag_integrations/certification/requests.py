"""Requests of a certification plan beyond those of an answer's plan."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar


@dataclass(frozen=True)
class Score:
    """A request to score these responses with the metric; the reply is one float each, in order."""

    responses: tuple[str, ...]


Result = TypeVar("Result")

# A method's certificate asks `Ask`, `Score` and what is its own; what comes back depends on the request.
CertificationReply: TypeAlias = Any
Asking: TypeAlias = Generator[Any, CertificationReply, Result]
