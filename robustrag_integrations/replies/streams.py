"""Streams a reply without its reasoning: nothing is shown before it is known to be the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from robustrag_integrations.models.base import Response
from robustrag_integrations.models.reply import Ending, Piece
from robustrag_integrations.text.reasoning import clear_of_marks, parts_of

RETRACTED = "the stream had shown words that turned out to be no answer; its last paragraph is the answer"


class Shown:
    """The part of a streamed reply that may be shown, as it comes; without the white space at its two ends.

    A text without marks of reasoning passes as it comes; what may turn out to be a mark waits for the rest of it. From
    the first mark on (with `whole`, from the start) everything waits for the end, since only then it is known which
    part is the answer. If a mark or a refusal follows that makes what was shown no answer, it is `retracted`: no more
    is shown, and `asking.ask_final` emits the answer. `failed` is the exception that broke the stream.

    Nor is a text shown of which `holds` is true, such as one that may become an abstention; what is true of a text is
    true of all its beginnings. Of the whole text it decides whether the stream shows anything at all.
    """

    def __init__(self, *, whole: bool = False, holds: Callable[[str], bool] | None = None) -> None:
        self._holds = holds
        self._tells = holds is not None  # the plan knows what follows from a failure
        self._lost: Response | None = None
        self.failed: Exception | None = None
        self.retracted = False
        self._ending = Ending()
        self._waits = whole
        self._said: list[str] = []
        self._shown: list[str] = []
        self._next = ""  # may be the beginning of a mark
        self._space = ""  # may be the end of the text
        self._blank = True

    def take(self, piece: Piece) -> str:
        """Add a piece, and return the text that can be shown now; often none."""
        if isinstance(piece, Ending):
            self._ending = piece
            return ""
        self._said.append(piece)
        if self._waits:
            return ""
        text = self._next + piece
        clear, self._waits = clear_of_marks(text, at_start=self._blank)
        if self._waits:
            clear = 0  # it may close the text before it
        ready, self._next = text[:clear], text[clear:]
        if self._holds is not None:
            if self._holds(("".join(self._shown) + ready).strip()):
                self._next = text
                return ""
            self._holds = None
        self._shown.append(ready)
        return self._trimmed(ready)

    @property
    def is_missing(self) -> bool:
        """True if a plain call has to be made: the stream failed, or said nothing at all, not even how it ended."""
        return self.failed is not None or (not self.said.strip() and self._ending == Ending())

    def restart(self, whole: Response) -> None:
        """Take the reply of a plain call in place of a missing stream; raise the stream's failure if it is none.

        Where a text may be held back, the failure is the `response`: the plan knows what follows from it.
        """
        if whole.text is None and whole.refusal is None:
            if self.failed is not None and not self._tells:
                raise self.failed
            self._lost = whole
        self._said, self._ending = [whole.text or ""], whole

    def rest(self) -> str:
        """Return the rest of the text to show, now that the whole reply is there."""
        if self._ending.refusal is not None:
            self.retracted = not self._blank
            return ""
        answer, shown = parts_of(self.said).answer, "".join(self._shown)
        if self._holds is not None and self._holds(answer.strip()):
            return ""
        self.retracted = not self._blank and not answer.startswith(shown)
        return "" if self.retracted else self._trimmed(answer.removeprefix(shown))

    @property
    def response(self) -> Response:
        """The whole reply as a call without streaming gives it, with a note if it is `retracted`."""
        if self._lost is not None:
            return self._lost
        cut = isinstance(self._ending, Response) and self._ending.truncated  # models that know end in a `Response`
        found = Response.of(self.said, self._ending, truncated=cut)
        return replace(found, note=RETRACTED) if self.retracted else found

    @property
    def said(self) -> str:
        """The reply so far, reasoning included."""
        return "".join(self._said)

    def _trimmed(self, ready: str) -> str:
        text = (self._space + ready).lstrip() if self._blank else self._space + ready
        shown = text.rstrip()
        self._space = text[len(shown) :]
        self._blank = self._blank and not shown
        return shown
