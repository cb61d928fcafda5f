"""Finds the smallest number of copies of the planted passage that changes an answer, by trying."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.playground.state import State, StateError

MOST_COPIES = 25

Ask = Callable[[Sequence[Passage]], Awaitable[str]]


@dataclass(frozen=True)
class Tried:
    """One try.

    Attributes:
        defense: whose answer it is.
        copies: number of copies of the planted passage that were among the passages; 0 for none.
        text: the answer.
        changed: True if it says something else than without the planted passage; case, spaces and a full
            stop at the end do not count.
    """

    defense: str
    copies: int
    text: str
    changed: bool


def with_copies(state: State, copies: int) -> list[Passage]:
    """Return the passages with this many copies of the first planted one: at its rank, each a source of its own. The
    lowest-ranked passages make way if the list gets too long.

    Raises:
        StateError: no passage is marked as planted.
    """
    place = next((n for n, row in enumerate(state.rows) if row.planted), None)
    if place is None:
        raise StateError("no passage is marked as planted; plant one, or mark one of yours")
    text = state.rows[place].text
    made = [Passage(text, id=f"copy-{n}", source=f"copy-{n}.example") for n in range(1, copies + 1)]
    benign = state.benign
    return [*benign[:place], *made, *benign[place:]][: state.top_k]


def most_copies(state: State) -> int:
    """Return the number of copies at which nothing else is left to read, or the search ends."""
    return min(state.top_k, MOST_COPIES)


async def tries(state: State, asks: Mapping[str, Ask]) -> AsyncIterator[Tried]:
    """Add copies one by one until each answer has changed, or nothing else is left.

    Every number is tried, as more copies may undo what fewer did: the first change is the smallest.

    Args:
        state: its first planted passage is copied; other planted ones are left out.
        asks: by the name of a defence, its answer from passages.

    Raises:
        StateError: no passage is marked as planted.
    """
    clean: dict[str, str] = {}
    left = dict(asks)
    for copies in range(most_copies(state) + 1):
        passages = with_copies(state, copies)
        for name, ask in [*left.items()]:
            text = await ask(passages)
            tried = Tried(name, copies, text, _said(text) != _said(clean.setdefault(name, text)))
            if tried.changed:
                del left[name]
            yield tried


def _said(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")
