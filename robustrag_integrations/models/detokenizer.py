"""Incremental detokenisation with stop strings: text that can be shown while more tokens are coming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from robustrag_integrations.models.base import TokenCodec
from robustrag_integrations.models.reply import FinishReason
from robustrag_integrations.text.reasoning import clear_of_marks, parts_of

END = "<end>"  # how the end of a text is spelt
_BEFORE = 8  # tokens before one that decide its text


@dataclass
class IncrementalDetokenizer:
    """Turns tokens into text that may be shown so far: complete characters only, cut at a stop string.

    Attributes:
        before_marks: True if a mark of reasoning (`text.reasoning`) ends the text, too.
        shown: the text so far, as far as it may be shown.
        stopped: True if a stop string or a mark ended it.
        ended: True if the model ended it.
        reasons: True if it was a mark.
    """

    codec: TokenCodec
    stop: tuple[str, ...]
    before_marks: bool = False
    tokens: list[int] = field(default_factory=list)
    shown: str = ""
    stopped: bool = False
    ended: bool = False
    reasons: bool = False

    @property
    def finish_reason(self) -> FinishReason:
        """The finish reason of a complete text: `stop` if it came to an end, `length` if it ran out of tokens."""
        return "stop" if self.stopped or self.ended else "length"

    def add(self, token: int) -> str:
        """Add a token; return the text that can be shown in addition."""
        self.tokens.append(token)
        text = self.codec.decode(self.tokens).lstrip()
        clear, self.reasons = clear_of_marks(text, at_start=False) if self.before_marks else (len(text), False)
        cut = min((at for s in self.stop if (at := text.find(s)) >= 0), default=len(text) + 1)
        if cut <= clear:
            self.stopped, self.reasons = True, False
            return self._show(text[:cut].rstrip())
        if self.reasons:
            self.stopped = True
            return self._show(text[:clear].rstrip())
        return self._show(_settled(text[:clear], self.stop))

    def take(self, token: int) -> bool:
        """Add a token, possibly an end token; tell whether the text is now complete."""
        self.ended = self.codec.is_end(token)
        if not self.ended:
            self.add(token)
        return self.ended or self.stopped

    def fork(self) -> IncrementalDetokenizer:
        """Return an independent copy."""
        return replace(self, tokens=list(self.tokens))

    def finish(self) -> str:
        """End the text; return what was held back."""
        if self.stopped:
            return ""
        text = self.codec.decode(self.tokens).strip()
        if not self.before_marks:
            return self._show(text)
        clear, _ = clear_of_marks(text, at_start=False)
        rest = parts_of(text[clear:])  # a mark at the end of the text, or a false start of one
        self.reasons = rest.reasoning_chars > 0
        return self._show((text[:clear] + rest.answer).strip())

    def _show(self, text: str) -> str:
        if not text.startswith(self.shown):  # a codec that rewrites earlier text; wait until it settles
            return ""
        new, self.shown = text[len(self.shown) :], text
        return new


def spelt(codec: TokenCodec, before: Sequence[int], token: int) -> str:
    """Return a token's text after these: `<end>` for an end; U+FFFD or nothing for a part of a character."""
    if codec.is_end(token):
        return END
    near = list(before[-_BEFORE:])
    return codec.decode([*near, token])[len(codec.decode(near)) :]


def _settled(text: str, stop: tuple[str, ...]) -> str:
    """Strip what may still change: an unfinished character, the start of a stop string, trailing whitespace."""
    text = text.rstrip("\ufffd")
    for s in stop:
        for length in range(min(len(s) - 1, len(text)), 0, -1):
            if text.endswith(s[:length]):
                text = text[:-length]
                break
    return text.rstrip()
