"""Extracts the text of one PDF (`extract` runs it)."""

from __future__ import annotations

import io
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from robustrag_integrations.corpus.limits import FileError, FileLimits

_SMALLEST = 2.0  # points of a text that can be seen
_WHITE = 0.9  # of red, green and blue, from 0 to 1
_POINTS = {"m": 0, "l": 0, "c": 4, "v": 2, "y": 2}  # of a path; where the operands have the point that it leads to
_FILLS = frozenset({"f", "F", "f*", "B", "B*", "b", "b*"})
_MOST_FILLS = 1000  # of a page that texts may stand on; of more the last ones count
_GAP = 1.3  # of the usual distance of two lines; a paragraph ends where it is larger
_Box = tuple[float, float, float, float]
_Piece = tuple[str, Any, Any, Any, float]  # a text, two matrices of its place, its font and the font's size


def text_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the text of all pages, perhaps invalid Unicode, and how many hidden strings are left out.

    With `hidden` they are read, too.
    """
    import pypdf

    pages: list[str] = []
    size = left_out = 0
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise FileError("is encrypted; remove its password first, for example with qpdf --decrypt")
        for number, page in enumerate(reader.pages):
            sight = _Sight(page)
            seen: dict[str, Any] = {"visitor_operand_before": sight.before, "visitor_operand_after": sight.after}
            pieces: list[_Piece] = []
            page.extract_text(visitor_text=lambda *piece: pieces.append(piece), **({} if hidden else seen))  # noqa: B023
            pages.append(_in_paragraphs(pieces))
            left_out += sight.left_out
            size += len(pages[-1])
            if number >= limits.pages:
                raise FileError(f"holds more than {limits.pages:,} pages; split it into smaller files")
            limits.check(size)
    except pypdf.errors.DependencyError as error:
        raise FileError("is encrypted; pip install cryptography if it needs no password, else remove it") from error
    text = "\n\n".join(pages)
    if not text.strip():
        hint = (
            "it may have text behind it: --hidden-text (hidden_text=True)" if left_out else "run text recognition first"
        )
        raise FileError(f"holds no text that anybody can see; if it is a scan, {hint}")
    return text, left_out


def _in_paragraphs(pieces: list[_Piece]) -> str:
    """Join the texts of a page, with an empty line at its gaps, but none below a title, which belongs to what follows.

    A title stands alone, in larger letters than the line below it or nearer to it than to the line above.
    """
    lines: list[tuple[int, float, float]] = []  # their first pieces, heights and font sizes
    for number, (text, cm, tm, _, size) in enumerate(pieces):
        with suppress(ArithmeticError, IndexError, TypeError, ValueError):  # invalid matrices
            _, height = _moved(cm, float(tm[4]), float(tm[5]))
            if text.strip() and not (lines and abs(lines[-1][1] - height) < abs(size) / 2):
                lines.append((number, height, abs(size)))
    drops = [above[1] - below[1] for above, below in pairwise(lines)]
    down = sorted(drop for drop in drops if drop > 0)
    usual = down[len(down) // 4] if down else 0.0
    ends = set()  # the pieces that begin a paragraph
    for place, drop in enumerate(drops):
        (_, _, size), (below, _, next_size) = lines[place : place + 2]
        before = drops[place - 1] if place else math.inf
        is_title = before > usual * _GAP and (size > next_size or before > drop)
        if drop > usual * _GAP and not is_title:
            ends.add(below)
    return "".join("\n" * (number in ends) + piece[0] for number, piece in enumerate(pieces))


@dataclass(frozen=True)
class _Ink:
    """The graphics state, as far as it decides what can be seen."""

    mode: int = 0  # how letters are drawn
    white: bool = False
    size: float = 12.0  # of the font


class _Sight:
    """Empties the hidden strings of a page, each before pypdf reads it.

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
