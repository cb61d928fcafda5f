"""Extracts the text of one PDF, in a program of its own that may be killed at any moment (`reading` runs it).

It imports nothing of this package, which takes longer to import than most files take to read.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

READ, NOT_READ = b"+", b"-"  # of a reply: then strings left out, a line break and the text; or the error

_SMALLEST = 2.0  # points of a text that can be seen
_WHITE = 0.9  # of red, green and blue, from 0 to 1
_POINTS = {"m": 0, "l": 0, "c": 4, "v": 2, "y": 2}  # of a path; where the operands have the point that it leads to
_FILLS = frozenset({"f", "F", "f*", "B", "B*", "b", "b*"})
_MOST_FILLS = 1000  # of a page that texts may stand on; of more the last ones count
_Box = tuple[float, float, float, float]


class PDFError(ValueError):
    """A PDF cannot be read; the message gives the reason and follows the file's name."""


@dataclass(frozen=True)
class PDFLimits:
    """Limits on reading one PDF."""

    seconds: float  # of processor time, and several times as much by the clock
    characters: int
    pages: int
    memory: int  # bytes, on systems that can limit it


def text_of_pdf(data: bytes, limits: PDFLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the text of all pages, perhaps invalid Unicode, and how many strings that nobody can see are left out.

    With `hidden` they are read, too. A PDFError's message may quote the file.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages: list[str] = []
    size = left_out = 0
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise PDFError("is encrypted; remove its password first, for example with qpdf --decrypt")
        for number, page in enumerate(reader.pages):
            sight = _Sight(page)
            seen: dict[str, Any] = {"visitor_operand_before": sight.before, "visitor_operand_after": sight.after}
            pages.append(page.extract_text(**({} if hidden else seen)))
            left_out += sight.left_out
            size += len(pages[-1])
            if number >= limits.pages:
                raise PDFError(f"holds more than {limits.pages:,} pages; split it into smaller files")
            if size > limits.characters:
                raise PDFError(f"holds more than {limits.characters:,} characters of text, too many for its size")
    except PDFError:
        raise
    except pypdf.errors.DependencyError as error:
        raise PDFError("is encrypted; pip install cryptography if it needs no password, else remove it") from error
    except Exception as error:  # a hostile PDF may raise nearly anything inside the parser
        reason = str(error)[:120] or type(error).__name__
        raise PDFError(f"is not a PDF that can be read ({reason}); print it to a new PDF") from error
    text = "\n\n".join(pages)
    if not text.strip():
        hint = (
            "it may have text behind it: --hidden-text (hidden_text=True)" if left_out else "run text recognition first"
        )
        raise PDFError(f"holds no text that anybody can see; if it is a scan, {hint}")
    return text, left_out


@dataclass(frozen=True)
class _Ink:
    """The graphics state, as far as it decides what can be seen."""

    mode: int = 0  # how letters are drawn
    white: bool = False
    size: float = 12.0  # of the font


class _Sight:
    """Empties the strings of a page that nobody can see, each before pypdf reads it.

    These are texts that are drawn in no ink (rendering modes 3 and 7), white where nothing dark was painted last,
    smaller than two points, or outside the page. In forms, whose place is not known, only the ink decides.
    """

    def __init__(self, page: Any) -> None:
        self.left_out = 0
        self._ink = _Ink()
        self._saved: list[_Ink] = []
        self._forms: list[_Ink] = []
        self._path: list[tuple[float, float]] = []
        self._fills: list[tuple[_Box, bool]] = []  # what was painted, in turn, and whether in dark ink
        self._page = page

    def before(self, operator: bytes, operands: Any, cm: Any, tm: Any) -> None:
        """Follow an instruction, and empty its string if nobody sees it."""
        with suppress(ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):  # invalid operands
            name, ink = operator.decode("latin1"), self._ink
            if name in ("Tj", "TJ", "'", '"'):
                place = 2 if name == '"' else 0
                if operands[place] and self._is_hidden(cm, tm, operands[place]):
                    self.left_out += 1
                    operands[place] = type(operands[place])()
            elif name == "q":
                self._saved.append(ink)
            elif name == "Q":
                self._ink = self._saved.pop()
            elif name == "Tr":
                self._ink = replace(ink, mode=int(operands[0]))
            elif name == "Tf":
                is_drawn = self._kind_of("/Font", operands[0]) == "/Type3"  # its letters have a scale of their own
                self._ink = replace(ink, size=12.0 if is_drawn else abs(float(operands[1])))
            elif name in ("g", "rg", "k", "cs", "sc", "scn"):
                self._ink = replace(ink, white=_is_white(name, operands))
            elif name == "re":
                x, y, width, height = map(float, operands)
                self._path += [_moved(cm, x, y), _moved(cm, x + width, y + height)]
            elif name in _POINTS:
                self._path.append(_moved(cm, *map(float, operands[_POINTS[name] :][:2])))
            elif name == "Do":
                self._forms.append(ink)
                if self._kind_of("/XObject", operands[0]) == "/Image":
                    self._painted([_moved(cm, 0, 0), _moved(cm, 1, 1)], dark=True)
            elif name == "INLINE IMAGE":
                self._painted([_moved(cm, 0, 0), _moved(cm, 1, 1)], dark=True)
            elif name == "sh":
                self._painted([(-math.inf, -math.inf), (math.inf, math.inf)], dark=True)
            elif name in _FILLS:
                self._painted(self._path, dark=not ink.white)
                self._path = []
            elif name in ("n", "S", "s"):
                self._path = []

    def after(self, operator: bytes, operands: Any, cm: Any, tm: Any) -> None:
        """Go back to what was before a form."""
        if operator == b"Do" and self._forms:
            self._ink = self._forms.pop()

    def _painted(self, points: list[tuple[float, float]], *, dark: bool) -> None:
        across, up = zip(*points, strict=True)
        self._fills = [*self._fills[1 - _MOST_FILLS :], ((min(across), min(up), max(across), max(up)), dark)]

    def _is_on_dark(self, x: float, y: float) -> bool:
        if self._forms:
            return any(dark for _, dark in self._fills)
        at = (dark for (left, low, right, high), dark in self._fills[::-1] if left <= x <= right and low <= y <= high)
        return next(at, False)

    def _kind_of(self, of: str, name: Any) -> Any:
        return self._page["/Resources"].get(of, {}).get(name, {}).get("/Subtype")

    def _is_hidden(self, cm: Any, tm: Any, shown: Any) -> bool:
        if self._ink.mode in (3, 7):
            return True
        if self._forms:
            return self._ink.white and not self._is_on_dark(0, 0)
        a, b, c, d, e, f = map(float, tm)
        p, q, r, s, t, u = map(float, cm)
        size = self._ink.size * min(math.hypot(a * p + b * r, a * q + b * s), math.hypot(c * p + d * r, c * q + d * s))
        x, y = e * p + f * r + t, e * q + f * s + u
        if self._ink.white and not self._is_on_dark(x + size / 4, y + size / 4):
            return True
        left, bottom, right, top = map(float, self._page.cropbox)
        return size < _SMALLEST or x > right or x + size * len(str(shown)) < left or y > top or y + size < bottom


def _moved(matrix: Any, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = map(float, matrix)
    return a * x + c * y + e, b * x + d * y + f


def _is_white(name: str, operands: Any) -> bool:
    values = [] if name == "cs" else [float(value) for value in operands]
    if len(values) == 4:
        return max(values) <= 1 - _WHITE
    return len(values) == (1 if name == "g" else 3) and min(values) >= _WHITE


def main() -> None:
    """Read the limits and the file from standard input, and write the text or the error."""
    sys.path[:] = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not a reply
    asked = json.loads(sys.stdin.buffer.readline())
    limits = PDFLimits(**asked["limits"])
    data = sys.stdin.buffer.read()
    _limit(limits)
    try:
        text, left_out = text_of_pdf(data, limits, hidden=asked["hidden"])
        kind, text = READ, f"{left_out}\n{text}"
    except PDFError as error:
        kind, text = NOT_READ, str(error)
    out.write(kind + text.encode("utf-8", "surrogatepass"))
    out.close()


def _limit(limits: PDFLimits) -> None:
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)  # ends the process; the limit below only counts whole seconds
    used = math.ceil(sum(os.times()[:2]))
    wanted = (
        (resource.RLIMIT_CPU, used + math.ceil(limits.seconds) + 1),
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in wanted:
        with suppress(OSError, ValueError):  # a system may refuse, or already allow less
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
