"""Streams a reply without its reasoning: nothing is shown before it is known to be the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.reply import Ending, Piece
from robustrag_integrations.reply_text.reasoning import clear_of_marks, parts_of

RETRACTED = "the stream had shown words that turned out to be no answer; its last paragraph is the answer"


class Shown:
    """The part of a streamed reply that may be shown, as it comes.

    A text without marks of reasoning passes as it comes; what may turn out to be a mark waits for the rest of it. From
    the first mark on everything waits for the end, since only then it is known which part is the answer. The pieces
    together are the answer part of the whole reply, unless what was shown is `retracted`.

    Attributes:
        retracted: True if the text shown turned out to be no answer: a mark closed it as reasoning that none had
            opened, or a refusal followed. No more is shown then, and `asking.ask_final` emits the answer.

    Args:
        whole: True if everything waits for the end. That is for models that are seen to write reasoning into their
            text: where the prompt opens it, the first mark of it is the one that ends it.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self.retracted = False
        self._waits = whole
        self._said: list[str] = []
        self._shown: list[str] = []
        self._next = ""
        self._blank = True

    def add(self, piece: str) -> str:
        """Add a piece, and return the text that can be shown now; often none."""
        self._said.append(piece)
        if self._waits:
            return ""
        text = self._next + piece
        clear, self._waits = clear_of_marks(text, at_start=self._blank)
        if self._waits:
            clear = 0  # it may close the text before it
        ready, self._next = text[:clear], text[clear:]
        self._shown.append(ready)
        self._blank = self._blank and not ready.strip()
        return ready

    def restart(self, whole: Response, failed: Exception | None) -> Response:
        """Take the reply of a call in place of a stream that failed; text that was shown stays shown.

        Raises:
            Exception: what the stream failed with, where the call gives no reply either.
        """
        if failed is not None and whole.text is None and whole.refusal is None:
            raise failed
        self._said = [whole.text or ""]
        return whole

    def rest(self, ending: Ending | None = None) -> str:
        """Return the rest of the text to show, now that the whole reply is there."""
        if ending is not None and ending.refusal is not None:
            self.retracted = not self._blank
            return ""
        answer, shown = parts_of(self.said).answer, "".join(self._shown)
        self.retracted = not self._blank and not answer.startswith(shown)
        return "" if self.retracted else answer.removeprefix(shown)

    def is_missing(self, ending: Ending) -> bool:
        """True if a stream said nothing at all, not even how it ended."""
        return not self.said.strip() and ending == Ending()

    def response(self, ending: Ending, *, truncated: bool) -> Response:
        """Return the whole reply as a call without streaming gives it, with a note if it is `retracted`."""
        found = Response.of(self.said, ending, truncated=truncated)
        return replace(found, note=RETRACTED) if self.retracted else found

    @property
    def said(self) -> str:
        """The reply so far, reasoning included."""
        return "".join(self._said)


def unbroken(pieces: Iterator[Piece], reply: Shown, ask: Callable[[], Response]) -> Iterator[Piece]:
    """Yield the pieces of a reply. If the stream fails or is empty, call the model, and yield the rest of its reply.

    Args:
        pieces: the stream.
        reply: the part of it that is shown.
        ask: makes the call; raises, or gives a failure, where there is no reply.
    """
    ending, failed = Ending(), None
    try:
        for piece in pieces:
            ending = piece if isinstance(piece, Ending) else ending
            yield piece
    except INTERRUPTS:
        raise
    except Exception as error:
        failed = error
    if failed is not None or reply.is_missing(ending):
        yield reply.restart(ask(), failed)


async def aunbroken(
    pieces: AsyncIterator[Piece], reply: Shown, ask: Callable[[], Awaitable[Response]]
) -> AsyncIterator[Piece]:
    """`unbroken` for an asynchronous stream."""
    ending, failed = Ending(), None
    try:
        async with closed_after(pieces):
            async for piece in pieces:
                ending = piece if isinstance(piece, Ending) else ending
                yield piece
    except INTERRUPTS:
        raise
    except Exception as error:
        failed = error
    if failed is not None or reply.is_missing(ending):
        yield reply.restart(await ask(), failed)


def shown(pieces: Iterator[Piece], reply: Shown) -> Iterator[Piece]:
    """Yield the pieces of a reply without its reasoning, and then its ending."""
    ending = None
    for piece in pieces:
        if isinstance(piece, Ending):
            ending = piece
        elif ready := reply.add(piece):
            yield ready
    if rest := reply.rest(ending):
        yield rest
    if ending is not None:
        yield ending


async def ashown(pieces: AsyncIterator[Piece], reply: Shown) -> AsyncIterator[Piece]:
    """`shown` for an asynchronous stream."""
    ending = None
    async with closed_after(pieces):
        async for piece in pieces:
            if isinstance(piece, Ending):
                ending = piece
            elif ready := reply.add(piece):
                yield ready
    if rest := reply.rest(ending):
        yield rest
    if ending is not None:
        yield ending
