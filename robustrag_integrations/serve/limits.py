"""Limits of a served endpoint."""

from __future__ import annotations

from dataclasses import dataclass

from robustrag_integrations._util.checks import check_at_least


@dataclass(frozen=True)
class Limits:
    """Bounds of one request, and of all requests under way.

    Attributes:
        body_bytes: the longest request.
        question_chars: the longest question.
        messages: the most messages of a conversation.
        documents: the most documents that a request may bring.
        document_chars: the longest of them.
        concurrent: answers that are made at a time.
        waiting: requests that wait for their turn; further ones are refused with 429.
        seconds: from a request's end to the end of its answer, waiting included.
        body_seconds: seconds that a client may take to send a request.
        unfinished_bytes: of all requests that are not complete; beyond, the oldest of them is refused.

    Raises:
        ValueError: a number is too small.
    """

    body_bytes: int = 1_000_000
    question_chars: int = 4_000
    messages: int = 200
    documents: int = 50
    document_chars: int = 20_000
    concurrent: int = 8
    waiting: int = 64
    seconds: int = 120
    body_seconds: int = 20
    unfinished_bytes: int = 64_000_000

    def __post_init__(self) -> None:
        check_at_least(0, waiting=self.waiting)
        check_at_least(1, **{name: value for name, value in vars(self).items() if name != "waiting"})
