"""Which spellings are one origin, and which are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.grouping.origins import FIELDS, names_in, origin_named
from robustrag_integrations.grouping.passages import Passage
from tests.helpers.tables import listed

ONE, APART = listed(Path(__file__).with_name("origins.txt"), "one", "apart")


def names(spellings: list[str], **how: bool) -> set[str | None]:
    return {origin.name if (origin := origin_named(s, **how)) else None for s in spellings}


@pytest.mark.parametrize("spellings", ONE, ids=lambda s: s[0])
def test_spellings_of_one_page_or_file_are_one_origin(spellings: list[str]) -> None:
    assert len(names(spellings)) == 1


@pytest.mark.parametrize("spellings", APART, ids=lambda s: s[0])
def test_different_pages_and_files_stay_apart(spellings: list[str]) -> None:
    assert len(names(spellings)) == len(spellings)


def test_a_path_is_no_address() -> None:
    assert names(["x.com/a#1.txt", "x.com/a#2.txt"], is_file=True) == {"x.com/a#1.txt", "x.com/a#2.txt"}
    assert origin_named("x.com/a").host == "x.com"
    assert origin_named("x.com/a", is_file=True).host is None


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
    ("metadata", "name"),
    [
        (
            {"file_path": "handbook.pdf", "source": "/uploads/b.pdf", "page": 3},
            "/uploads/b.pdf",
        ),  # LangChain's PyPDFLoader
        ({"URL": "https://x.com/a"}, "x.com/a"),  # its BeautifulSoupWebReader
        ({"file path": "a//b", "author": "me"}, "a/b"),  # its Google Drive reader
        ({"source": Path("a/b.txt")}, "a/b.txt"),
        ({"source": "", "url": float("nan"), "doc_id": "d1"}, "d1"),
        ({"sourceURL": "http://x.com/a", "title": "x"}, "x.com/a"),
        ({"title": "x", "id": 3, 5: "y", None: "z"}, None),
        ({"location": {"s3Location": {"uri": "s3://b/a.pdf"}, "type": "S3"}, "score": 0.4}, "s3://b/a.pdf"),
        ({"_index": "i", "_id": "7", "_source": {"metadata": {"source": "a.pdf"}, "vector": [0.1]}}, "a.pdf"),
        ({"webUrl": "https://x.sharepoint.com/a.docx"}, "x.sharepoint.com/a.docx"),
        ({"source": {"url": "http://x.com/a"}, "location": {"uri": "b"}}, "x.com/a"),
        ({"a": [{"url": "x.com/a"}]}, None),
        ({}, None),
    ],
)
def test_the_first_entry_that_names_anything_is_the_origin(metadata: dict[Any, Any], name: str | None) -> None:
    origin = Passage("text", metadata=metadata).known_origin
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
