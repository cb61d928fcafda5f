"""Hidden text is left out of what is read, and said; an option reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from robustrag_integrations.corpus import CorpusError, read_documents
from robustrag_integrations.corpus.markup import without_hidden

SEEN = b"BT /F 12 Tf 100 700 Td (seen) Tj ET "
TEXT = b" BT /F 12 Tf 100 600 Td (secret) Tj ET"
FORM = b"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</Font<</F 5 0 R>>>>/Length 39>>stream\n"


def pdf(stream: bytes) -> bytes:
    """A PDF of one page with this content."""
    resources = b"<</Font<</F 5 0 R/T 7 0 R>>/XObject<</X 6 0 R>>/ColorSpace<</S[/Separation/Spot/DeviceGray 5 0 R]>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources" + resources + b">>",
        b"<</Length %d>>stream\n" % len(stream) + stream + b"\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        FORM + b"BT /F 12 Tf 100 500 Td (secret) Tj ET  " + b"\nendstream",
        b"<</Type/Font/Subtype/Type3/FontMatrix[1 0 0 1 0 0]/FontBBox[0 0 9 9]/CharProcs<<>>/FirstChar 0/LastChar 0"
        b"/Widths[1]/Encoding/WinAnsiEncoding>>",
    ]
    written, places = b"%PDF-1.7\n", []
    for number, thing in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj" % number + thing + b"endobj\n"
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(
        b"%010d 00000 n \n" % p for p in places
    )
    return written + table + b"trailer<</Size 8/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(written)


HIDDEN = {
    "in no ink": b"3 Tr" + TEXT,
    "as a clip": b"7 Tr" + TEXT,
    "white on white": b"1 1 1 rg" + TEXT,
    "nearly white": b".97 g" + TEXT,
    "white beside a dark mark": b"0 g 0 0 20 20 re f 1 g" + TEXT,
    "white on white paper over a dark shape": b"0 g 50 580 300 60 re f 1 g 50 580 300 60 re f" + TEXT,
    "white ink": b"0 0 0 0 k" + TEXT,
    "tiny": b"BT /F 1.5 Tf 100 600 Td (secret) Tj ET",
    "made tiny": b"q .1 0 0 .1 0 0 cm BT /F 12 Tf 1000 6000 Td [(sec) -20 (ret)] TJ ET Q",
    "below the page": b"BT /F 12 Tf 100 -200 Td (secret) Tj ET",
    "beside the page": b"BT /F 12 Tf 900 200 Td (secret) Tj ET",
    "within a visible line": b"BT /F 12 Tf 100 600 Td (plain) Tj 3 Tr (secret) Tj 0 Tr (end) Tj ET",
    "in a form": b"q 3 Tr /X Do Q",
}
VISIBLE = {
    "white on dark": b"0 0 .5 rg 50 580 300 60 re f 1 g" + TEXT,
    "a spot colour": b"/S cs 1 scn" + TEXT,
    "letters with a scale of their own": b"BT /T 1 Tf 100 600 Td (secret) Tj ET",
    "scaled up": b"BT /F 1 Tf 12 0 0 12 100 600 Tm (secret) Tj ET",
    "after a state is restored": b"q 3 Tr 1 g Q" + TEXT,
    "in a form": b"q 1 g Q /X Do",
    "with nonsense before": b"Q Q (x) Tr [ ] gs /No Do" + TEXT,
    "grey": b".6 g" + TEXT,
}


@pytest.mark.parametrize("how", HIDDEN)
def test_text_of_a_pdf_that_nobody_can_see_is_left_out_and_said(tmp_path: Path, how: str) -> None:
    (tmp_path / "report.pdf").write_bytes(pdf(SEEN + HIDDEN[how]))
    reading = read_documents([str(tmp_path)])
    assert "seen" in reading.documents[0].text
    assert "sec" not in reading.documents[0].text
    [told] = reading.skipped
    assert "report.pdf: 1 piece of hidden text" in told.reason
    assert "sec" in read_documents([str(tmp_path)], hidden_text=True).documents[0].text


@pytest.mark.parametrize("how", VISIBLE)
def test_text_of_a_pdf_that_can_be_seen_is_read(tmp_path: Path, how: str) -> None:
    (tmp_path / "report.pdf").write_bytes(pdf(SEEN + VISIBLE[how]))
    reading = read_documents([str(tmp_path)])
    assert "secret" in reading.documents[0].text
    assert reading.skipped == ()


def test_a_pdf_of_hidden_text_alone_says_how_to_read_it(tmp_path: Path) -> None:
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(pdf(HIDDEN["in no ink"]))
    with pytest.raises(CorpusError, match=r"no text that anybody can see.*--hidden-text"):
        read_documents([str(scan)])
    assert "secret" in read_documents([str(scan)], hidden_text=True).documents[0].text


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("a <!-- secret --> b", "a  b"),
        ("a <!-- secret", "a "),
        ("<span style='font-size:0;color:#fff'>secret</span>b", "b"),
        ('<div hidden><div>secret</div>secret</div>b', "b"),
        ("<span title='>' style=\"visibility : hidden\">secret</span>b", "b"),
        ("<p style='display:/**/none'>secret <b>secret</b>", ""),
        ("<font color=white>secret</font>b", "b"),
        ("<div style='position:absolute;left:-9999px'>secret</div>b", "b"),
        ("<script>secret</script><STYLE>secret</STYLE>b", "b"),
        ("`\n\n<!-- secret -->\n\n`", "`\n\n\n\n`"),
    ],
)  # fmt: skip
def test_comments_and_hidden_elements_are_left_out(tmp_path: Path, text: str, visible: str) -> None:
    (tmp_path / "page.md").write_text(f"seen {text}")
    reading = read_documents([str(tmp_path)])
    assert reading.documents[0].text == f"seen {visible}"
    assert ["page.md" in s.reason and "hidden text" in s.reason for s in reading.skipped] == [True]
    assert read_documents([str(tmp_path)], hidden_text=True).documents[0].text == f"seen {text}"


@pytest.mark.parametrize(
    "text",
    [
        "a < b > c, List<T>, x <- y, <https://x.example>",
        "`<!-- code -->` and\n```html\n<p hidden>code</p>\n```\n",
        "<b aria-hidden=true>b</b><span style='color:white;background:#000'>b</span>",
        "<p style='font-size:0.8em'>b</p>",
        "<span style=background-color:white>b</span><i style='opacity:0.5'>b</i>", "It's <i>one</i>, isn't it?",
    ],
)  # fmt: skip
def test_code_and_what_is_shown_stay_as_they_are(text: str) -> None:
    assert without_hidden(text) == (text, 0)


def test_tag_characters_and_variation_selectors_are_left_out(tmp_path: Path) -> None:
    unseen = "".join(chr(0xE0100 + ord(c)) for c in "secret") + "".join(chr(0xE0000 + ord(c)) for c in "secret")
    (tmp_path / "a.txt").write_text(f"se{unseen}en")
    reading = read_documents([str(tmp_path)])
    assert reading.documents[0].text == "seen"
    assert "a.txt: 1 piece" in reading.skipped[0].reason
