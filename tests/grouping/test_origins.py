"""Which spellings are one origin, and which are not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.grouping.origins import FIELDS, names_in, origin_named
from robustrag_integrations.grouping.passages import Passage

ONE = [
    ["x.com/a#2", "http://x.com/a", "https://x.com/a", "HTTPS://X.COM/a/", "//x.com/a", "http:x.com/a", "ws://x.com/a"],
    ["http://x.com:80/a", "https://x.com:443/a", "x.com:80/a", "https://x.com./a", "https://www.x.com/a"],
    ["http://me:secret@x.com/a", "http://x.com/a?", "http://x.com//a/./b/..", "http:\\\\x.com\\a", "http://x.com/%61"],
    ["x.com/a?utm_source=m&fbclid=1&gclid=2", "https://x.com/a?UTM_Campaign=z", "x.com/a;jsessionid=12?PHPSESSID=3"],
    ["http://x.com/a?b=2&a=1", "https://x.com/a?a=1&b=2&utm_medium=x", "x.com/a/?a=1&b=2#c"],
    [
        "https://b.s3.amazonaws.com/a.pdf?X-Amz-Signature=1&X-Amz-Date=2&X-Amz-Security-Token=3",
        "https://b.s3.amazonaws.com/a.pdf?x-amz-signature=4",
        "https://b.s3.amazonaws.com/a.pdf?AWSAccessKeyId=1&Expires=2&Signature=3",
        "https://b.s3.amazonaws.com/a.pdf",
    ],
    ["https://a.blob.core.windows.net/c/a.pdf?sv=1&se=2&sr=b&sp=r&sig=3", "https://a.blob.core.windows.net/c/a.pdf"],
    ["https://münchen.de/café", "https://xn--mnchen-3ya.de/caf%C3%A9", "MÜNCHEN.DE/caf%c3%a9"],
    ["http://ｘ。com/", "http://x.com", "http://x\u00ad.com/", "http://%78.com"],
    ["http://x.com/", "http://\ufe0fx.c\u034fom/", "http://x\U000e0100\u2064.com\u3164"],
    ["http://вода.рф", "http://\u1c80одА.рф"],
    ["http://[::1]/a", "http://[0:0::1]:80/a"],
    [
        "http://1.2.3.4/a",
        "http://16909060/a",
        "http://0x1.2.772/a",
        "http://01.02.3.0X4/a",
        "http://[::ffff:102:304]/a",
    ],
    ["/data/a.pdf", "/data/./a.pdf", "/data//x/../a.pdf", "file:///data/a.pdf", "file://localhost/data/a.pdf#page=3"],
    ["/data/a.pdf", "file:/data/a.pdf", "FILE://LOCALHOST/data/a.pdf"],
    ["a.pdf", "./a.pdf", "a.pdf#page=7", "x/../a.pdf"],
    ["Report.pdf", "Report.pdf#page=7"],
    ["C:\\Data\\a.pdf", "c:/data/A.PDF", "file:///C:/Data/a.pdf", "file:/C:/Data/a.pdf", "file:C:/Data/a.pdf"],
    ["\\\\server\\share\\a.pdf", "\\\\SERVER\\share\\A.pdf"],
    ["Anna Lind", " Anna Lind "],
    ["gs://b/a.pdf:1", "gs://b/a.pdf:2", "gs://b/a.pdf:", "GS://b/a.pdf#page=3", "gs://b/a.pdf"],
    ["/data/a.pdf:1", "/data/a.pdf:12", "file:///data/a.pdf"],
    ["https://x.com/b/a.docx:1", "x.com/b/a.docx:2", "http://x.com/b/a.docx"],
    ["\x01http://x.com/a", " \x00http://x.com/a", "http://x.com/a"],
]
APART = [
    [
        "http://x.com/a",
        "http://x.com/A",
        "http://x.com/a/b",
        "http://y.com/a",
        "http://b.x.com/a",
        "http://x.com:8080/a",
    ],
    ["http://x.com/?page=1", "http://x.com/?page=2", "http://x.com/"],
    ["http://x.com/?sv=1&start=2", "http://x.com/?sv=1&start=3", "http://x.com/?sig=1", "http://x.com/?Signature=1"],
    ["http://x.com/?X-Amz-Signature=1&page=1", "http://x.com/?X-Amz-Signature=1&page=2"],
    ["http://1.2.3.4", "http://1.2.3.5", "http://1.2.3.4.5", "http://1.2.3.256", "http://1.2.3.4.com", "1.2.3.4.pdf"],
    ["http://straße.de", "http://strasse.de"],
    ["http://λόγος.gr", "http://λόγοσ.gr"],
    ["http://x.com@evil.com/a", "http://x.com/a", "http://evil.com/@x.com"],
    ["http://evil.com\\@x.com/a", "http://x.com/a"],
    ["http://x.com/a%2Fb", "http://x.com/a/b"],
    ["/data/a.pdf", "/data/A.pdf", "data/a.pdf", "/b/a.pdf", "../a.pdf", "a.pdf"],
    ["s3://bucket/a", "https://bucket/a", "gs://bucket/a"],
    ["notes 1.md", "notes 2.md", "C# notes", "C# other notes"],
    ["ticket:1", "ticket:2", "Genesis 3:16", "redis://cache:6379", "redis://cache:6380", "http://x.com/user:1"],
]


def names(spellings: list[str], **how: bool) -> set[str | None]:
    return {origin.name if (origin := origin_named(s, **how)) else None for s in spellings}


@pytest.mark.parametrize("spellings", ONE, ids=lambda s: s[0])
def test_spellings_of_one_page_or_file_are_one_origin(spellings: list[str]) -> None:
    assert len(names(spellings)) == 1


def test_the_first_rows_are_all_one_page() -> None:
    assert names([*ONE[0], *ONE[1], *ONE[2], *ONE[3]]) == {"x.com/a"}


@pytest.mark.parametrize("spellings", APART, ids=lambda s: s[0])
def test_different_pages_and_files_stay_apart(spellings: list[str]) -> None:
    assert len(names(spellings)) == len(spellings)


def test_a_path_is_no_address() -> None:
    assert names(["x.com/a#1.txt", "x.com/a#2.txt"], is_file=True) == {"x.com/a#1.txt", "x.com/a#2.txt"}
    assert origin_named("x.com/a").host == "x.com"
    assert origin_named("x.com/a", is_file=True).host is None


@pytest.mark.parametrize("text", ["", "  ", "\t\n"])
def test_nothing_is_no_origin(text: str) -> None:
    assert origin_named(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "http://", "http://[", "http://[::1", "http://x.com:port/", "http://x.com:99999999999/", "//", "://", "a://",
        "http://\x00", "http://%", "x.com/%zz", "http://xn--\udcff.com", "http://xn--99999999999.com", "\ud800", "#a=b",
        "http://a/" + "../" * 50, "C:", "..", "/", "file://", "http://．．", "http://℀.com/", "xn--a.xn--b/",
        "http://" + "9" * 5000, "http://0x/", "http://1..2/", "file:", "file:/", "file:C:",
    ],
)  # fmt: skip
def test_whatever_stands_there_is_named_or_not_and_never_raises(text: str) -> None:
    origin_named(text)
    origin_named(text, is_file=True)


@pytest.mark.parametrize(
    "text",
    [
        "a." * 100_000, "http://" + "a" * 200_000, "x.com/" + "../" * 100_000, "x.com/?" + "a=1&" * 100_000,
        "#a=" * 100_000, "http://" + "%41" * 100_000, "x.com/a" + ";jsessionid=" * 20_000, "e\u0301\u0316" * 50_000,
        "http://" + "xn--" * 50_000, "-" * 200_000 + ".com/",
    ],
    ids=lambda t: t[:12],
)  # fmt: skip
def test_hostile_lengths_take_linear_time(text: str) -> None:
    start = time.process_time()
    origin_named(text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        (
            {"file_path": "handbook.pdf", "source": "/uploads/b.pdf", "page": 3},
            "/uploads/b.pdf",
        ),  # LangChain's PyPDFLoader
        ({"page_label": "1", "file_name": "b.pdf"}, "b.pdf"),  # its PDFReader
        ({"URL": "https://x.com/a"}, "x.com/a"),  # its BeautifulSoupWebReader
        ({"title": "News", "link": "https://x.com/a"}, "x.com/a"),  # RSS
        ({"file path": "a//b", "author": "me"}, "a/b"),  # its Google Drive reader
        ({"source": Path("a/b.txt")}, "a/b.txt"),
        ({"source": 7}, "7"),
        ({"source": ["x"], "url": "x.com/a"}, "x.com/a"),
        ({"source": "", "url": float("nan"), "doc_id": "d1"}, "d1"),
        ({"sourceURL": "http://x.com/a", "title": "x"}, "x.com/a"),
        ({"title": "x", "id": 3, 5: "y", None: "z"}, None),
        ({"location": {"s3Location": {"uri": "s3://b/a.pdf"}, "type": "S3"}, "score": 0.4}, "s3://b/a.pdf"),
        ({"location": {"type": "WEB", "webLocation": {"url": "http://x.com/a"}}}, "x.com/a"),
        ({"_index": "i", "_id": "7", "_source": {"metadata": {"source": "a.pdf"}, "vector": [0.1]}}, "a.pdf"),
        ({"id": "7", "metadata": '{"source": "a.pdf", "page": 3}', "doc_id": "chunk 7"}, "a.pdf"),
        ({"_node_content": '{"id_": "7", "metadata": {"file_path": "/a/b.pdf"}}', "doc_id": "d"}, "/a/b.pdf"),
        ({"doc_name": "b.pdf", "dataset": "x"}, "b.pdf"),
        ({"webUrl": "https://x.sharepoint.com/a.docx"}, "x.sharepoint.com/a.docx"),
        ({"metadata_storage_path": "https://x.blob.core.windows.net/c/a.pdf"}, "x.blob.core.windows.net/c/a.pdf"),
        ({"source": {"url": "http://x.com/a"}, "location": {"uri": "b"}}, "x.com/a"),
        ({"metadata": '{"source": ', "text": '{"source": "http://x.com"}'}, None),
        ({"metadata": "[" * 100_000, "a": [{"url": "x.com/a"}]}, None),
        ({}, None),
    ],
)
def test_the_first_entry_that_names_anything_is_the_origin(metadata: dict[Any, Any], name: str | None) -> None:
    origin = Passage("text", metadata=metadata).origin
    assert (origin.name if origin else None) == name


def test_the_order_of_entries_is_fixed() -> None:
    everything = {name: f"by {name}" for name in reversed(FIELDS)}
    for name in FIELDS:
        assert names_in(everything)[0][1].name == f"by {name}"
        del everything[name]


def test_metadata_that_holds_itself_or_much_more_is_looked_through_up_to_a_bound() -> None:
    itself: dict[str, Any] = {"title": "x"}
    itself["within"] = itself
    assert not names_in(itself)
    assert not names_in({str(i): {"n": {}} for i in range(10_000)})
    assert not names_in({"metadata": '{"a": ' * 50_000})
