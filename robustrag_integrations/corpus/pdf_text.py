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
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

READ, NOT_READ = b"+", b"-"  # of a reply: then strings left out, a line break and the text; or the error

_SMALLEST = 2.0  # points of a text that can be seen
_CONTRAST = 0.1  # of one of red, green and blue, from 0 to 1
_OPAQUE = 0.05
_MOST_SHAPES = 1000  # of a page that texts may stand on
_NOTHING = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)  # the matrix that moves nothing
_WHITE, _BLACK = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)

_Matrix = tuple[float, ...]
_Box = tuple[float, float, float, float]
_Colour = tuple[float, float, float] | None  # None: not known
_T = TypeVar("_T")


class PDFError(ValueError):
    """A PDF cannot be read; the message gives the reason and follows the file's name."""


@dataclass(frozen=True)
class PDFLimits:
    """Limits on reading one PDF.

    Attributes:
        seconds: of processor time, and several times as much by the clock.
        characters: of text.
        pages: maximum number of pages.
        memory: bytes of memory, on systems that can limit it.
    """

    seconds: float
    characters: int
    pages: int
    memory: int


def text_of_pdf(data: bytes, limits: PDFLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the text of all pages with blank lines between them, as the PDF has it, which may be invalid Unicode.

    Args:
        data: the file.
        limits: on reading it.
        hidden: True to read texts that nobody can see as well.

    Returns:
        The text, and the number of strings that are left out as nobody can see them.

    Raises:
        PDFError: it is not a PDF, is encrypted, holds no text, or is over a limit. The message may quote the file.
        ImportError: pypdf is not installed.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise PDFError("is encrypted; remove its password first, for example with qpdf --decrypt")
        pages: list[str] = []
        size = left_out = 0
        for number, page in enumerate(reader.pages):
            sight = _Sight(page)
            seen: dict[str, Any] = (
                {} if hidden else {"visitor_operand_before": sight.before, "visitor_operand_after": sight.after}
            )
            pages.append(page.extract_text(**seen))
            left_out += sight.left_out
            size += len(pages[-1])
            if number >= limits.pages:
                raise PDFError(f"holds more than {limits.pages:,} pages; split it into smaller files")
            if size > limits.characters:
                raise PDFError(f"holds more than {limits.characters:,} characters of text, too many for its size")
    except PDFError:
        raise
    except pypdf.errors.DependencyError as error:
        raise PDFError(
            "is encrypted with AES; pip install cryptography if it needs no password, or remove the password first, "
            "for example with qpdf --decrypt"
        ) from error
    except Exception as error:  # a hostile PDF may raise nearly anything inside the parser
        reason = str(error)[:120] or type(error).__name__
        raise PDFError(f"is not a PDF that can be read ({reason}); print it to a new PDF") from error
    text = "\n\n".join(pages)
    if not text.strip() and left_out:
        raise PDFError(
            "holds no text that anybody can see; if it is a scan with recognised text behind it, read it with "
            "--hidden-text (hidden_text=True)"
        )
    if not text.strip():
        raise PDFError("holds no text; if it is a scan, run text recognition on it first")
    return text, left_out


@dataclass(frozen=True)
class _Ink:
    """The graphics state, as far as it decides what can be seen."""

    colours: tuple[_Colour, _Colour] = (_BLACK, _BLACK)  # of fill and stroke, as the next two
    spaces: tuple[str, str] = ("", "")
    opacity: tuple[float, float] = (1.0, 1.0)
    mode: int = 0  # how letters are drawn
    size: float | None = 0.0  # of the font; None where it says nothing (Type 3)
    stretch: float = 1.0
    leading: float = 0.0
    base: _Matrix = _NOTHING  # of the form that is drawn
    resources: Any = field(default_factory=dict)


class _Sight:
    """Empties the strings of a page that nobody can see, each before pypdf reads it.

    These are texts that are drawn in no ink (rendering modes 3 and 7, or transparent), in the colour of what they stand
    on, smaller than two points, or outside the page. What they stand on are filled shapes, by their bounding boxes, and
    images; else the page is white. Where a colour is not known, a text can be seen.
    """

    def __init__(self, page: Any) -> None:
        self.left_out = 0
        self._ink = _Ink(resources=_of(page, "/Resources") or {})
        self._saved: list[_Ink] = []
        self._around: list[tuple[_Ink, list[_Ink]]] = []  # of the forms that are being drawn
        self._page = tuple(map(float, page.cropbox))
        self._path: list[tuple[float, float]] = []
        self._shapes: deque[tuple[_Box, _Colour]] = deque(maxlen=_MOST_SHAPES)

    def before(self, operator: bytes, operands: Any, cm: Any, tm: Any) -> None:
        """Follow an instruction, and empty its string if nobody sees it."""
        with suppress(ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):  # invalid operands
            self._follow(operator.decode("latin1"), operands, _times(cm, self._ink.base), tm)

    def after(self, operator: bytes, operands: Any, cm: Any, tm: Any) -> None:
        """Go back to what was before a form."""
        if operator == b"Do" and self._around:
            self._ink, self._saved = self._around.pop()

    def _follow(self, name: str, operands: Any, cm: _Matrix, tm: Any) -> None:
        ink = self._ink
        if name in ("Tj", "TJ", "'", '"'):
            if name in ("'", '"'):
                tm = _times((1, 0, 0, 1, 0, -ink.leading), tm)
            place = 2 if name == '"' else 0
            shown = operands[place]
            if shown and self._is_hidden(_times(tm, cm), _length(shown)):
                self.left_out += 1
                operands[place] = type(shown)()
        elif name == "q":
            self._saved.append(ink)
        elif name == "Q":
            self._ink = self._saved.pop()
        elif name in ("m", "l", "c", "v", "y"):
            self._path += [_at(cm, *map(float, operands[i : i + 2])) for i in range(0, len(operands), 2)]
        elif name == "re":
            x, y, width, height = map(float, operands)
            self._path += [_at(cm, x + i * width, y + j * height) for i in (0, 1) for j in (0, 1)]
        elif name in ("f", "F", "f*", "B", "B*", "b", "b*", "S", "s", "n"):
            if name not in ("S", "s", "n"):
                self._paint(ink.colours[0] if ink.opacity[0] > 1 - _OPAQUE else None)
            self._path = []
        elif name in ("sh", "INLINE IMAGE", "Do"):
            self._draw(name, operands, cm)
        else:
            self._ink = _with(ink, name, operands)

    def _draw(self, name: str, operands: Any, cm: _Matrix) -> None:
        """Draw an image or a shading, which texts can be seen on, or enter a form."""
        drawn: Any = _of(_of(self._ink.resources, "/XObject"), operands[0]) if name == "Do" else None
        if name == "Do":
            self._around.append((self._ink, self._saved))
            self._saved = []
        if _of(drawn, "/Subtype") == "/Form":
            base = _times(tuple(map(float, drawn.get("/Matrix", _NOTHING))), cm)
            self._ink = replace(self._ink, base=base, resources=_of(drawn, "/Resources") or self._ink.resources)
            return
        left, bottom, right, top = self._page
        corners = ((left, bottom), (right, top)) if name == "sh" else ()
        self._path = [*corners] or [_at(cm, i, j) for i in (0, 1) for j in (0, 1)]
        self._paint(None)
        self._path = []

    def _paint(self, colour: _Colour) -> None:
        if self._path:
            across, up = zip(*self._path, strict=True)
            box = (min(across), min(up), max(across), max(up))
            if min(box[2] - box[0], box[3] - box[1]) >= _SMALLEST:  # a line hides nothing
                self._shapes.append((box, colour))

    def _is_hidden(self, matrix: _Matrix, length: int) -> bool:
        ink = self._ink
        across, up = math.hypot(*matrix[:2]) * ink.stretch, math.hypot(*matrix[2:4])
        size = 12.0 if ink.size is None else abs(ink.size) * min(across, up)
        if size < _SMALLEST:
            return True
        used = (ink.mode in (0, 2, 4, 6), ink.mode in (1, 2, 5, 6))
        inks = [
            c
            for c, opacity, is_used in zip(ink.colours, ink.opacity, used, strict=True)
            if is_used and opacity > _OPAQUE
        ]
        if not inks:
            return True
        scale = abs(ink.size or 0) or 1.0
        start, end = _at(matrix, 0.2 * scale, 0.3 * scale), _at(matrix, 0.5 * scale * length * ink.stretch, 0.3 * scale)
        left, bottom, right, top = self._page
        (left_end, right_end), (low_end, high_end) = (sorted(ends) for ends in zip(start, end, strict=True))
        if right_end < left or left_end > right or high_end < bottom or low_end > top:
            return True
        if None in inks:
            return False
        x, y = start
        shapes = reversed(self._shapes)
        below = next((colour for (x0, y0, x1, y1), colour in shapes if x0 <= x <= x1 and y0 <= y <= y1), _WHITE)
        return below is not None and all(
            colour and all(abs(a - b) <= _CONTRAST for a, b in zip(colour, below, strict=True)) for colour in inks
        )


def _with(ink: _Ink, name: str, operands: Any) -> _Ink:
    """Return the state after an instruction that sets a part of it."""
    at, kind = int(name.isupper()), name.lower()  # instructions for strokes are in upper case
    if kind in ("g", "rg", "k", "sc", "scn"):
        space = ink.spaces[at] if kind in ("sc", "scn") else ""
        return replace(ink, colours=_put(ink.colours, at, _colour(operands, space)))
    if kind == "cs":
        found = _of(_of(ink.resources, "/ColorSpace"), operands[0])
        space = str((found[0] if isinstance(found, list) else found) or operands[0])
        black = None if space in ("/Pattern", "/Indexed") else _BLACK
        return replace(ink, colours=_put(ink.colours, at, black), spaces=_put(ink.spaces, at, space))
    if name == "gs":
        state = _of(_of(ink.resources, "/ExtGState"), operands[0])
        return replace(ink, opacity=(float(state.get("/ca", ink.opacity[0])), float(state.get("/CA", ink.opacity[1]))))
    if name == "Tf":
        font = _of(_of(ink.resources, "/Font"), operands[0])
        return replace(ink, size=None if _of(font, "/Subtype") == "/Type3" else float(operands[1]))
    if name == "Tr":
        return replace(ink, mode=int(operands[0]))
    if name == "Tz":
        return replace(ink, stretch=abs(float(operands[0])) / 100)
    if name in ("TL", "TD"):
        return replace(ink, leading=float(operands[0]) if name == "TL" else -float(operands[1]))
    return ink


def _put(pair: tuple[_T, _T], at: int, value: _T) -> tuple[_T, _T]:
    return (value, pair[1]) if at == 0 else (pair[0], value)


def _colour(operands: Any, space: str) -> _Colour:
    """Return a colour as red, green and blue from 0 to 1; None where it is not known."""
    if space in ("/Pattern", "/Indexed", "/Lab"):
        return None
    values = [min(max(float(value), 0.0), 1.0) for value in operands]
    if space in ("/Separation", "/DeviceN"):
        return None if any(values) else _WHITE
    if len(values) == 4:
        *inks, black = values
        values = [(1 - ink) * (1 - black) for ink in inks]
    elif len(values) == 1:
        values *= 3
    return (values[0], values[1], values[2]) if len(values) == 3 else None


def _of(holder: Any, key: str) -> Any:
    """Return the entry of a PDF's dictionary, None if there is none."""
    found: Any = holder.get(key) if isinstance(holder, dict) else None
    return found.get_object() if hasattr(found, "get_object") else found


def _length(shown: Any) -> int:
    return sum(len(part) for part in shown if isinstance(part, (str, bytes))) if isinstance(shown, list) else len(shown)


def _times(one: Any, other: Any) -> _Matrix:
    """Return the matrix that applies one and then the other."""
    a, b, c, d, e, f = map(float, one)
    p, q, r, s, t, u = map(float, other)
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def _at(matrix: _Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


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
