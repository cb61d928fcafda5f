"""Limits of a served endpoint, and the web pages that it takes requests from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from robustrag_integrations._util.checks import check_at_least

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+", re.I)


@dataclass(frozen=True)
class Limits:
    """Bounds of one request, and of all requests under way.

    Attributes:
        body_bytes: the longest request.
        question_chars: the longest question.
        messages: the most messages of a conversation.
        documents: the most documents that a request may bring.
        document_chars: the longest of them.
        choices: the most options of a multiple-choice question.
        concurrent: answers that are made at a time.
        waiting: requests that wait for their turn; further ones are refused with 429.
        seconds: from a request's end to the end of its answer, waiting included.
        body_seconds: how long a client may take to send a request.
        unfinished_bytes: of all requests that are not complete; beyond, the oldest of them is refused.

    Raises:
        ValueError: a number is too small.
    """

    body_bytes: int = 1_000_000
    question_chars: int = 4_000
    messages: int = 200
    documents: int = 50
    document_chars: int = 20_000
    choices: int = 100
    concurrent: int = 8
    waiting: int = 64
    seconds: int = 120
    body_seconds: int = 20
    unfinished_bytes: int = 64_000_000

    def __post_init__(self) -> None:
        check_at_least(0, waiting=self.waiting)
        check_at_least(1, **{name: value for name, value in vars(self).items() if name != "waiting"})


def checked_origins(origins: Iterable[str]) -> list[str]:
    """Check the origins of web pages that may call from a browser, written as in the Origin header.

    Raises:
        ValueError: one is neither "*" nor of the form http://host:port.
    """
    pages = [origins] if isinstance(origins, str) else list(origins)
    for page in pages:
        if page != "*" and not _ORIGIN.fullmatch(page):
            raise ValueError(
                f"{page!r:.80} is no origin of a web page: it must read http://host or https://host, with the "
                "port if it has one and nothing after it, or be * for any"
            )
    return pages
