"""PDF files made to keep a parser busy, to fill its memory or to lead it round in circles."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

_CATALOGUE = b"<< /Type /Catalog /Pages 2 0 R >>"
_FONT = b"/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"


def pdf_of(objects: Sequence[bytes], *, trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalogue."""
    body, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    start = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table)
    body += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (count, trailer, start)
    return bytes(body)


def stream(data: bytes, *, entries: bytes = b"", squeezed: int = 1) -> bytes:
    """A stream object, compressed this many times over."""
    for _ in range(squeezed):
        data = zlib.compress(data, 9)
    filters = b"/FlateDecode " * squeezed
    return b"<< /Length %d /Filter [%s] %s >>\nstream\n%s\nendstream" % (len(data), filters, entries, data)


def page_showing(content: bytes, *more: bytes, resources: bytes = b"") -> bytes:
    """A PDF of one page with this content stream (object 4) and further objects from 5 on."""
    return pdf_of(
        [
            _CATALOGUE,
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << %s >> >>" % resources,
            content,
            *more,
        ]
    )


def many_operators() -> bytes:
    """A kilobyte that unfolds to 42 MB of drawing operators."""
    return page_showing(stream(b"BT /F 9 Tf 0 0 Td (x) Tj ET\n" * 1_500_000, squeezed=2), resources=_FONT)


def forms_in_forms(depth: int = 9, times: int = 10) -> bytes:
    """Forms that draw one another: 10 times each, nine deep."""
    forms = []
    for level in range(depth):
        inner = 6 + level
        drawn = b"/F Do\n" * times if level < depth - 1 else b"BT (x) Tj ET\n"
        entries = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /F %d 0 R >> >>" % inner
        forms.append(stream(drawn, entries=entries))
    return page_showing(stream(b"/F Do\n" * times), *forms, resources=b"/XObject << /F 5 0 R >>")


def one_page_many_times() -> bytes:
    """A page of much text, in the book ten thousand times."""
    pages = b"3 0 R " * 9_999
    return pdf_of(
        [
            _CATALOGUE,
            b"<< /Type /Pages /Kids [%s] /Count 9999 >>" % pages,
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << " + _FONT + b" >> >>",
            stream(b"BT /F 9 Tf 1 1 Td (word word) Tj ET\n" * 20_000),
        ]
    )


def pages_in_a_circle() -> bytes:
    """A tree of pages whose root is its own leaf."""
    root, leaf = b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>", b"<< /Type /Pages /Kids [2 0 R] >>"
    return pdf_of([_CATALOGUE, root, leaf])


def deep_arrays() -> bytes:
    """Arrays in arrays, two hundred thousand deep."""
    return pdf_of([_CATALOGUE, b"<< /Type /Pages /Kids " + b"[" * 200_000 + b"]" * 200_000 + b">>"])


def tables_in_a_circle() -> bytes:
    """A cross-reference table that names itself as the one before."""
    first = pdf_of([_CATALOGUE, b"<< /Type /Pages /Kids [] /Count 0 >>"])
    start = int(first.rsplit(b"startxref\n", 1)[1].split()[0])
    return pdf_of([_CATALOGUE, b"<< /Type /Pages /Kids [] /Count 0 >>"], trailer=b"/Prev %d" % start)


def wide_font_tables() -> bytes:
    """A font whose table of characters lists every range there is, again and again."""
    ranges = b"100 beginbfrange\n" + b"<0000> <ffff> <0000>\n" * 100 + b"endbfrange\n"
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [] >>"
    content = stream(b"BT /F 9 Tf <0041> Tj ET")
    return page_showing(content, font, stream(ranges * 2000, squeezed=2), resources=b"/Font << /F 5 0 R >>")


def much_text() -> bytes:
    """Two kilobytes that unfold to 50 MB of text."""
    line = b"BT /F 9 Tf (" + b"word " * 4000 + b") Tj ET\n"
    return page_showing(stream(line * 2500, squeezed=2), resources=_FONT)


ALL = {
    made.__name__: made
    for made in (
        many_operators,
        forms_in_forms,
        one_page_many_times,
        pages_in_a_circle,
        deep_arrays,
        tables_in_a_circle,
        wide_font_tables,
        much_text,
    )
}
