"""Extracts the text of one Word file as Markdown, without what Word does not show (`extract` runs it).

Read are the body with its tables and text boxes, and the notes; headers, footers, comments and deleted text are not.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from itertools import chain
from typing import Any

from robustrag_integrations.corpus.limits import FileError, FileLimits

_UNPACKED = 1 << 28  # bytes of all parts together, pictures included
_MARKUP = 20  # bytes of XML for each character of text
_NOT_SHOWN = ("w:del", "w:moveFrom", "mc:Fallback")  # deleted text, and what older programs show in place of a drawing
_PROPERTIES = ("w:rPr", "w:pPr", "w:tcPr", "w:tblPr")
_SMALLEST = 2.0  # points of a text that can be seen
_WHITE = 230  # of red, green and blue, up to 255


def text_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the text, and how many hidden runs are left out; with `hidden` they are read."""
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from docx.oxml import parse_xml

    check_package(data, limits, "word/document.xml", "a Word file", ".docx")
    try:
        document = docx.Document(io.BytesIO(data))
    except (PackageNotFoundError, KeyError) as error:
        raise FileError("is not a Word file that can be read; save it anew as .docx") from error
    word = _Word(document, hidden)
    notes = [
        parse_xml(rel.target_part.blob)
        for rel in document.part.rels.values()
        if rel.reltype.endswith(("/footnotes", "/endnotes"))
    ]
    lines: list[str] = []
    size = 0
    for line in chain.from_iterable(map(word.lines, [document.element.body, *notes])):
        size += len(line) + 2
        limits.check(size)
        lines.append(line)
    text = "\n\n".join(lines)
    if not text.strip():
        hint = "; --hidden-text (hidden_text=True) reads what is hidden" if word.left_out else ""
        raise FileError(f"holds no text that anybody can see{hint}")
    return text, word.left_out


def check_package(data: bytes, limits: FileLimits, texts: str, called: str, ending: str) -> None:
    """Raise a FileError where an Office file is none, or it, or its parts below `texts`, unpack to too much."""
    if data[:4] == b"\xd0\xcf\x11\xe0":
        raise FileError(f"is encrypted, or an old {ending[:4]} file; save it as {ending} without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            sizes = [(part.file_size, part.filename.startswith(texts)) for part in package.infolist()]
    except zipfile.BadZipFile as error:
        raise FileError(f"is not {called} that can be read; save it anew as {ending}") from error
    text = sum(size for size, is_text in sizes if is_text)
    if sum(size for size, _ in sizes) > _UNPACKED or text > limits.characters * _MARKUP:
        raise FileError("unpacks to more than a file of its size may")


class _Word:
    """The text of a document's elements, and how many hidden runs were left out."""

    def __init__(self, document: Any, hidden: bool) -> None:
        from docx.oxml.ns import nsmap, qn
        from docx.text.paragraph import Paragraph
        from docx.text.run import Run

        nsmap.setdefault("mc", "http://schemas.openxmlformats.org/markup-compatibility/2006")
        nsmap.setdefault("m", "http://schemas.openxmlformats.org/officeDocument/2006/math")
        self.left_out = 0
        self._document, self._hidden, self._name = document, hidden, qn
        self._paragraph, self._run = Paragraph, Run
        self._not_shown = set(map(qn, _NOT_SHOWN))
        self._styles: dict[str, tuple[Any, ...]] = {}

    def lines(self, element: Any) -> Iterator[str]:
        """Yield the paragraphs and the rows of tables in an element, those of text boxes after their paragraph."""
        for child in element:
            if child.tag in self._not_shown:
                continue
            if child.tag == self._name("w:p"):
                yield from filter(str.strip, [self._line(child)])
            if child.tag == self._name("w:tr"):
                marks = {mark.tag for marked in child.iterchildren(self._name("w:trPr")) for mark in marked}
                if self._name("w:del") in marks or (self._name("w:hidden") in marks and not self._hidden):
                    self.left_out += 1
                    continue
                own = (cell for cell in child.iter(self._name("w:tc")) if next(cell.iterancestors(child.tag)) is child)
                cells = [" ".join(self.lines(cell)) for cell in own]
                yield from [f"| {' | '.join(cells)} |"] * any(cells)
            else:
                yield from self.lines(child)

    def _line(self, element: Any) -> str:
        paragraph = self._paragraph(element, self._document._body)
        shown: list[str] = []
        is_raised = False
        for each in self._runs(element):
            run = self._run(each, paragraph)
            is_formula = each.tag != self._name("w:r")
            text = "".join(each.itertext()) if is_formula else run.text
            if not is_formula and not self._hidden and text.strip() and self._is_hidden(run, paragraph):
                self.left_out += 1
                continue
            was_raised, is_raised = is_raised, not is_formula and bool(run.font.superscript) and bool(text.strip())
            shown += ["^", text] if is_raised and not was_raised else [text]  # 10 to the sixth is not 106
        text = "".join(shown).strip()
        level = paragraph.style.name.removeprefix("Heading ") if paragraph.style.name else ""
        return f"{'#' * int(level)} {text}" if level in set("123456") and text else text

    def _runs(self, element: Any) -> Iterator[Any]:
        for child in element:
            if child.tag in (self._name("w:r"), self._name("m:r")):  # of text, and of a formula
                yield child
            elif child.tag != self._name("w:p") and child.tag not in self._not_shown:
                yield from self._runs(child)

    def _is_hidden(self, run: Any, paragraph: Any) -> bool:
        looks = zip(_look(run.font), self._look_of(run.style), self._look_of(paragraph.style), strict=True)
        vanishes, size, colour = (next((value for value in values if value is not None), None) for values in looks)
        if vanishes or (size is not None and size.pt < _SMALLEST):
            return True
        return colour is not None and min(colour) >= _WHITE and not self._is_on_dark(run._r)

    def _look_of(self, style: Any) -> tuple[Any, ...]:
        """Return what a style and those that it is based on say of `_look`."""
        if style is None:
            return None, None, None
        if style.style_id not in self._styles:
            below = self._look_of(style.base_style)
            own = _look(style.font)
            self._styles[style.style_id] = tuple(a if a is not None else b for a, b in zip(own, below, strict=True))
        return self._styles[style.style_id]

    def _is_on_dark(self, run: Any) -> bool:
        """True if the run may stand on something dark: shading, a highlight, or a table of some style."""
        for above in chain([run], run.iterancestors()):
            for mark in chain.from_iterable(p for p in above if p.tag in set(map(self._name, _PROPERTIES))):
                fill = mark.get(self._name("w:fill"), "auto").lower()
                grid = mark.get(self._name("w:val")) in ("TableGrid", "TableNormal")
                if mark.tag in (self._name("w:highlight"), self._name("w:tblStyle")) and not grid:
                    return True
                if mark.tag == self._name("w:shd") and fill not in ("auto", "ffffff"):
                    return True
        return False


def _look(font: Any) -> tuple[Any, ...]:
    """Return whether it is hidden, its size and its colour; None for what it does not say."""
    return font.hidden, font.size, font.color.rgb
