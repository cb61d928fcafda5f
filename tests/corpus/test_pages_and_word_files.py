"""HTML and Word files: what is read of them, what is left out as hidden, and files made to harm the parser."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import pytest

from robustrag_integrations.corpus import CorpusError, Reading, read_documents
from robustrag_integrations.grouping.passages import Passage
from tests.helpers.documents import write_docx

for _library in ("bs4", "lxml", "markdownify", "docx"):
    pytest.importorskip(_library, reason="the extra cli is not installed")

HANDBOOK = """<!doctype html><html><head><title>Handbook</title><meta charset="utf-8"><style>p{color:red}</style>
<script>var secret = "script"</script></head><body><nav><a href="/x">Elsewhere</a></nav><!-- a comment --><main>
<h2>Leave</h2><p>Staff get <b>28&nbsp;days</b>, not <i>30</i>,<br>of leave; 10<sup>6</sup> hours.</p>
<table><tr><th>Team</th><th>Approver</th></tr><tr><td>Sales</td><td>Ruth Penn</td></tr></table>
<ol><li>Ask<li>Wait</ol><pre>a_b * c</pre></main><footer>2024 Firm</footer>"""


def read(path: Path, data: str | bytes, **how: bool) -> Reading:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_documents([str(path)], **how)


def text(path: Path, data: str | bytes, **how: bool) -> str:
    [document] = read(path, data, **how).documents
    assert document == Passage(document.text, path.name, path.name, {"file_path": path.name}, origin_entry="file_path")
    return document.text


def test_a_page_is_read_as_a_reader_sees_it(tmp_path: Path) -> None:
    found = text(tmp_path / "a.HTML", HANDBOOK)
    assert found.split("\n\n") == [
        "Handbook",
        "## Leave",
        "Staff get 28\xa0days, not 30,\nof leave; 10^6 hours.",
        "| Team | Approver |\n| --- | --- |\n| Sales | Ruth Penn |",
        "1. Ask\n2. Wait",
        "```\na_b * c\n```",
        "2024 Firm",
    ]


@pytest.mark.parametrize(
    "data",
    [
        "<p>Änne".encode(),
        "<p>Änne".encode("utf-16"),
        '<meta charset="iso-8859-1"><p>Änne'.encode("latin-1"),
        '<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><p>Änne</p></html>'.encode(),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_declares(tmp_path: Path, data: bytes) -> None:
    assert text(tmp_path / "a.htm", data) == "Änne"


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>secret</p>",
        "<div style='display:none'><p>secret</div>",
        "<div style='DISPLAY : none !important'>secret</div>",
        "<span style='visibility:hidden'>secret</span>",
        "<p style='color:#FFF'>secret</p>",
        "<font color=white>secret</font>",
        "<p style='font-size:0'>secret</p>",
        "<p style='position:absolute;left:-9999px'>secret</p>",
        "<p style='opacity:0'>secret",
        "<p style='opacity: .01'>secret",
        "<p style='color: rgb(255, 255, 255)'>secret</p>",
        "<p style='color: rgba(0,0,0,0)'>secret</p>",
        "<p style='background:red;color:transparent'>secret</p>",
        "<p style='height:0; overflow:hidden'>secret</p>",
        "<p style='overflow:hidden; max-height:0px'>secret</p>",
        "<p style='position:absolute; clip: rect(0, 0, 0, 0)'>secret</p>",
        "<p style='transform: scale(0)'>secret</p>",
        "<p style='dis&#112;lay:none'>secret</p>",
    ],
)
def test_hidden_elements_of_a_page_are_left_out_and_said(tmp_path: Path, hidden: str) -> None:
    page = f"<p>seen</p>{hidden}<p>end</p>"
    found = read(tmp_path / "a.html", page)
    assert "secret" not in found.documents[0].text
    assert "seen" in found.documents[0].text
    assert "1 piece of hidden text" in found.skipped[0].reason
    assert "secret" in text(tmp_path / "a.html", page, hidden_text=True)


@pytest.mark.parametrize(
    "shown",
    [
        "<table><tr><td bgcolor=navy><font color=white>secret</font></td></table>",
        "<div style='background:#003'><p style='color:white'>secret</p></div>",
        "<p>&lt;p style='display:none'&gt;secret&lt;/p&gt;</p>",
        "<details><summary>more</summary>secret</details>",
        "<p style='opacity:0.9;height:100px;overflow:hidden;color:rgb(25,25,25);border-width:0'>secret</p>",
        "<p style='color:rgba(0,0,0,.8)'>secret</p>",
    ],
)
def test_what_can_be_seen_is_kept(tmp_path: Path, shown: str) -> None:
    found = read(tmp_path / "a.html", f"<p>seen</p>{shown}")
    assert "secret" in found.documents[0].text
    assert found.skipped == ()


def test_what_stands_in_for_something_else_is_not_read(tmp_path: Path) -> None:
    page = "<title>Mill</title><noframes>secret</noframes><iframe>secret</iframe><nav>secret</nav>"
    page += "<video>secret</video><canvas>secret</canvas><dialog>secret</dialog><dialog open>asked</dialog>"
    assert text(tmp_path / "a.html", page) == "Mill\n\nasked"


MAIN = "<main><h1>Leave</h1><p>28 days.</p><ul><li><a href=/form>Form A</a></ul></main>"


@pytest.mark.parametrize(
    "around",
    [
        "<div role=navigation><a href=/x>secret</a> and more</div>",
        "<ul class=menu><li><a href=/x>secret</a><li><a href=/y>More</a></ul>",
        "<aside><h2>secret</h2><ul><li><a href=/x>Fair</a></ul></aside>",
        "<div class=footer><a href=/x>secret</a> | <a href=/y>Terms</a></div>",
        "<footer>&copy; 2026 secret Ltd</footer>",
        "<div><small>Copyright 2026 <a href=/>secret</a></small></div>",
        "<div role=search><form><input><button>secret</button></form></div>",
        "<section class=newsletter><h2>secret</h2><p>Each Thursday.</p><form><input type=email></form></section>",
        "<div id=cookie-banner><p>We use cookies, secret.</p><button>OK</button></div>",
        "<div class='cc-window' role=dialog>Diese Seite verwendet Cookies. secret</div>",
        "<div id=onetrust-consent-sdk><div>secret: the storing of cookies</div></div>",
    ],
)
def test_what_surrounds_a_page_is_not_read(tmp_path: Path, around: str) -> None:
    for page in (around + MAIN, MAIN + around, MAIN.replace("main>", "div>") + around):
        found = text(tmp_path / "a.html", page)
        assert "secret" not in found
        assert "28 days." in found
    assert "Form A" in text(tmp_path / "a.html", around + MAIN)


@pytest.mark.parametrize(
    "said",
    [
        "<footer><h5>Hours</h5><p>shown until 6 pm</p><a href=/x>Terms</a></footer>",
        "<footer><p>Ring <a href='tel:5550144'>shown</a></p></footer>",
        "<aside><h2>Hours</h2><table><tr><td>Mon<td>shown</table></aside>",
        "<header><h1>shown</h1><p>Closed in August.</p></header>",
        "<div class=cookies><h2>Cookies</h2><p>Oat cookie, shown <button>Add</button></p></div>",
        "<form action=/all><h1>Hours</h1><p>shown</p></form>",
        "<div class=modal role=dialog><p>Dr. shown</p></div>",
        "<p>See the <a href=/x>shown</a> page.</p>",
        "<div><h2><a href=/x>shown</a></h2><p>of 1921</p></div>",
    ],
)
def test_words_of_headers_footers_and_side_bars_are_read(tmp_path: Path, said: str) -> None:
    for page in (said, said + MAIN, f"<body>{said}<div>{MAIN}</div></body>"):
        assert "shown" in text(tmp_path / "a.html", page)


def test_a_page_of_links_alone_is_read(tmp_path: Path) -> None:
    page = "<ul><li><a href=/a>Dr. Venn</a><li><a href=/b>Dr. Lund</a></ul>"
    assert text(tmp_path / "a.html", page) == "- Dr. Venn\n- Dr. Lund"


def test_another_kind_of_file_is_no_page(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b"%PDF-1.7 (secret) Tj")
    with pytest.raises(CorpusError, match="is not a web page; give it the ending of what it is"):
        read_documents([str(tmp_path / "a.html")])


def test_a_page_of_scripts_says_so(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"a\.html holds no text that anybody can see without running its scripts"):
        read(tmp_path / "a.html", "<script>document.write('x')</script><div id=app></div>")


# Word files


def docx_of(body: str, **parts: str) -> bytes:
    """A Word file with this XML as its body, and further parts."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    space += ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    import docx

    template, data = io.BytesIO(), io.BytesIO()
    docx.Document().save(template)
    with zipfile.ZipFile(template) as old, zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "word/document.xml":
                new.writestr(name, old.read(name))
        prolog = parts.pop("prolog", "")
        document = f'<?xml version="1.0"?>{prolog}<w:document {space}><w:body>{body}</w:body></w:document>'
        new.writestr("word/document.xml", document)
        for name, content in parts.items():
            new.writestr(name, content)
    return data.getvalue()


def p(run: str) -> str:
    return f"<w:p>{run}</w:p>"


def r(said: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{said}</w:t></w:r>"


def test_a_word_file_is_read_with_headings_tables_links_boxes_and_insertions(tmp_path: Path) -> None:
    import docx

    path = tmp_path / "a.docx"
    document = docx.Document()
    document.add_heading("Leave", 2)
    document.add_paragraph("Staff get ").add_run("28 days").bold = True
    document.save(str(path))
    write_docx(tmp_path / "b.docx", "Approvers", table=[["Team", "Who"], ["Sales", "Ruth Penn"]])
    first, second = (d.text for d in read_documents([str(path), str(tmp_path / "b.docx")]).documents)
    assert first == "## Leave\n\nStaff get 28 days"
    assert second == "Approvers\n\n| Team | Who |\n\n| Sales | Ruth Penn |"
    inside = "<w:txbxContent>" + p(r("in a box")) + "</w:txbxContent>"
    box = f"<w:r><mc:AlternateContent><mc:Choice>{inside}</mc:Choice><mc:Fallback>{inside}</mc:Fallback>"
    box += "</mc:AlternateContent></w:r>"
    body = p(f"<w:ins>{r('is ')}</w:ins><w:del><w:r><w:delText>was</w:delText></w:r></w:del><w:hyperlink>{r('on')}")
    body = body.replace("</w:p>", "</w:hyperlink>" + box + "</w:p>")
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    formula = f'<m:oMath xmlns:m="{math}"><m:r><m:t>x=2</m:t></m:r></m:oMath>'
    body += f"<w:sdt><w:sdtContent>{p(r('a field ') + formula)}</w:sdtContent></w:sdt>"
    assert text(path, docx_of(body)) == "is on\n\nin a box\n\na field x=2"


def test_raised_figures_are_no_further_digits(tmp_path: Path) -> None:
    raised = '<w:vertAlign w:val="superscript"/>'
    power = p(r("10") + r("1", raised) + r("2", raised) + r(" units") + r("", raised))
    assert text(tmp_path / "a.docx", docx_of(power)) == "10^12 units"


def test_rows_that_are_hidden_or_deleted_are_left_out_and_said(tmp_path: Path) -> None:
    rows = "".join(
        f"<w:tr><w:trPr>{mark}</w:trPr><w:tc>{p(r(said))}</w:tc></w:tr>"
        for mark, said in (("", "seen"), ("<w:hidden/>", "secret"), ('<w:del w:id="1" w:author="a"/>', "gone"))
    )
    found = read(tmp_path / "a.docx", docx_of(f"<w:tbl>{rows}</w:tbl>"))
    assert found.documents[0].text == "| seen |"
    assert "2 pieces of hidden text" in found.skipped[0].reason


@pytest.mark.parametrize(
    "properties",
    ["<w:vanish/>", '<w:color w:val="FFFFFF"/>', '<w:sz w:val="2"/>', '<w:color w:val="FEFEFE" w:themeColor="x"/>'],
)
def test_hidden_runs_are_left_out_and_said(tmp_path: Path, properties: str) -> None:
    data = docx_of(p(r("seen ") + r("secret", properties) + r("end")))
    found = read(tmp_path / "a.docx", data)
    assert found.documents[0].text == "seen end"
    assert "1 piece of hidden text" in found.skipped[0].reason
    assert "secret" in text(tmp_path / "a.docx", data, hidden_text=True)


def test_hidden_by_a_style_and_white_on_dark(tmp_path: Path) -> None:
    import docx
    from docx.enum.style import WD_STYLE_TYPE

    document = docx.Document()
    base = document.styles.add_style("Base", WD_STYLE_TYPE.CHARACTER)
    base.font.hidden = True
    document.styles.add_style("Own", WD_STYLE_TYPE.CHARACTER).base_style = base
    document.add_paragraph("seen ").add_run("secret", style="Own")
    document.save(str(tmp_path / "a.docx"))
    assert read_documents([str(tmp_path / "a.docx")]).documents[0].text == "seen"
    cell = '<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:fill="002060"/></w:tcPr>'
    cell += p(r("Total", '<w:color w:val="FFFFFF"/>')) + "</w:tc></w:tr></w:tbl>"
    assert text(tmp_path / "b.docx", docx_of(cell)) == "| Total |"


def test_hostile_pages_and_word_files_cost_themselves(tmp_path: Path) -> None:
    bomb = "<!DOCTYPE x [<!ENTITY a '" + "a" * 1000 + "'>"
    for name, before in zip("bcdefgh", "abcdefg", strict=True):
        bomb += f"<!ENTITY {name} '{f'&{before};' * 50}'>"
    outside = "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/hostname'>]>"
    hostile = {
        "deep.html": b"<div>" * 40_000 + b"x",
        "wide.html": b"<table>" + b"<tr><td hidden>x" * 10_000,
        "angles.html": b"<" * 200_000,
        "attributes.html": b"<p " + b"a=1 " * 50_000 + b">x",
        "zeros.docx": docx_of("<!--" + "0" * 300_000_000 + "-->"),
        "laughs.docx": docx_of(p(r("&h;")), prolog=bomb + "]>"),
        "outside.docx": docx_of(p(r("before &a; after")), prolog=outside),
        "deep.docx": docx_of("<w:sdt><w:sdtContent>" * 5000 + "</w:sdtContent></w:sdt>" * 5000),
        "macro.docx": docx_of(p(r("x")), **{"[Content_Types].xml": "<Types/>"}),
        "not.docx": b"PK\x03\x04",
        "old.docx": b"\xd0\xcf\x11\xe0" + bytes(1000),
    }
    for name, data in hostile.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "zz.txt").write_text("fine")
    began = time.monotonic()
    found = read_documents([str(tmp_path)])
    assert time.monotonic() - began < 120  # by the clock, and others use the machine too
    assert {d.id for d in found.documents} >= {"zz.txt"}
    reasons = {Path(s.path).name: s.reason for s in found.skipped}
    assert "unpacks to more than a file of its size may" in reasons["zeros.docx"]
    assert "is encrypted, or an old .doc file" in reasons["old.docx"]
    assert {"laughs.docx", "macro.docx", "not.docx"} <= set(reasons)
    hostname = Path("/etc/hostname")
    assert all(hostname.read_text().strip() not in d.text for d in found.documents if hostname.exists())
