"""Generated tokens as text that can be shown while more are coming: incremental detokenisation with stop strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from robustrag_integrations.models.base import TokenCodec

END = "<end>"  # how the end of a text is spelt
_BEFORE = 8  # tokens that decide how the next one reads


@dataclass
class IncrementalDetokenizer:
    """The tokens decided so far as text that may be shown: complete characters only, cut at a stop string."""

    codec: TokenCodec
    stop: tuple[str, ...]
    tokens: list[int] = field(default_factory=list)
    shown: str = ""
    stopped: bool = False

    def add(self, token: int) -> str:
        """Add a token; gives what can be shown now in addition."""
        self.tokens.append(token)
        text = self.codec.decode(self.tokens)
        leading = len(text) - len(text.lstrip())
        text = text[leading:]
        cuts = [at for s in self.stop if (at := text.find(s)) >= 0]
        if cuts:
            self.stopped = True
            return self._show(text[: min(cuts)].rstrip())
        return self._show(_settled(text, self.stop))

    def fork(self) -> IncrementalDetokenizer:
        """A copy that goes on differently."""
        return replace(self, tokens=list(self.tokens))

    def finish(self) -> str:
        """No more tokens come; gives what was held back."""
        return "" if self.stopped else self._show(self.codec.decode(self.tokens).strip())

    def _show(self, text: str) -> str:
        if not text.startswith(self.shown):  # a codec that rewrites earlier text; wait until it settles
            return ""
        new, self.shown = text[len(self.shown) :], text
        return new


def spelt(codec: TokenCodec, before: Sequence[int], token: int) -> str:
    """A token as it reads after these: `<end>` for an end; U+FFFD or nothing for a part of a character."""
    if codec.is_end(token):
        return END
    near = list(before[-_BEFORE:])
    return codec.decode([*near, token])[len(codec.decode(near)) :]


def _settled(text: str, stop: tuple[str, ...]) -> str:
    """Without what may still change: an unfinished character, the start of a stop string, whitespace at the end."""
    text = text.rstrip("\ufffd")
    for s in stop:
        for length in range(min(len(s) - 1, len(text)), 0, -1):
            if text.endswith(s[:length]):
                text = text[:-length]
                break
    return text.rstrip()
