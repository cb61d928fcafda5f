"""Untrusted text, Markdown, JSONL, PDF, HTML, Word and Excel files, and folders of them."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.corpus import BM25Index, CorpusError, read_documents, split
from robustrag_integrations.corpus.extract import READ, reply
from robustrag_integrations.corpus.limits import FileLimits
from robustrag_integrations.grouping.passages import Passage
from tests.fuzz.checks import assert_harmless_on_a_terminal, assert_short_and_harmless, assert_valid_unicode
from tests.fuzz.hostile import damaged, data, json_line, name, text
from tests.fuzz.source import Source, Target, scratch
from tests.helpers.documents import write_docx, write_pdf

_SHAPE = {"text": "The mill is old.", "source": "Gazette", "title": "Mill", "id": "7"}


def _read(path: Path) -> list[Passage]:
    """The documents, each with valid text, a name and a source; or none, with a harmless reason."""
    try:
        documents = list(read_documents([str(path)]).documents)
    except CorpusError as refused:
        said = str(refused)
        assert len(said) < 2000
        assert_harmless_on_a_terminal(said, lines=False)
        return []
    for document in documents:
        for shown in (document.text, document.id, document.origin):
            assert_valid_unicode(shown)
        assert document.origin
    return documents


def jsonl(source: Source) -> None:
    """Rows of anything."""
    path = scratch() / "rows.jsonl"
    path.write_bytes(data(source, source.some(lambda: json_line(source, _SHAPE), 4)))
    _read(path)


def plain(source: Source) -> None:
    """Text and Markdown of any bytes."""
    path = scratch() / source.pick(("a.txt", "a.md"))
    path.write_bytes(data(source, [text(source)]))
    _read(path)


@cache
def _pdfs() -> tuple[bytes, ...]:
    one = write_pdf(scratch() / "one.pdf", "The mill.")
    two = write_pdf(scratch() / "two.pdf", "a", "")
    locked = write_pdf(scratch() / "open.pdf", "open", password="")
    return one.read_bytes(), two.read_bytes(), locked.read_bytes()


@cache
def _pages() -> tuple[bytes, ...]:
    page = b"<title>Mill</title><h1>The mill</h1><p style='color:white'>old</p><table><tr><td>a<td>b</table>"
    return page, b"<ul><li>a<li hidden>b</ul><pre>x</pre>" * 3, page.decode().encode("utf-16")


@cache
def _words() -> tuple[bytes, ...]:
    return (write_docx(scratch() / "a.docx", "The mill.", "It is old.", table=[["a", "b"]]).read_bytes(),)


@cache
def _sheets() -> tuple[bytes, ...]:
    import openpyxl

    book, data = openpyxl.Workbook(), io.BytesIO()
    for row in (["Name", "Fee"], ["Ada", 3], ["Ben", "=B2*2"]):
        book.active.append(row)
    book.save(data)
    return (data.getvalue(),)


def extracted(source: Source) -> None:
    """Files with bytes changed, doubled, cut and moved; read here, since a process for each would take the time."""
    kind, files = source.pick(_EXTRACTED)
    limits = asdict(FileLimits(seconds=0, characters=10_000, pages=10, memory=0))
    mark, said = reply({"kind": kind, "limits": limits, "hidden": False}, damaged(source, source.pick(files())))
    if mark == READ:
        assert_valid_unicode(valid_text(said))  # as `reading` makes it
    else:
        assert_short_and_harmless(printable(said, 300))


_KINDS = (("pypdf", "pdf", _pdfs), ("bs4", "html", _pages), ("docx", "docx", _words), ("openpyxl", "xlsx", _sheets))
_EXTRACTED = [(kind, files) for library, kind, files in _KINDS if find_spec(library)]


def retrieval(source: Source) -> None:
    """Splitting keeps every visible character and the size limit; retrieval returns passages of the index."""
    documents = [Passage(text(source, 6, 3000), f"d{n}", "s") for n in range(source.between(1, 2))]
    size = source.between(50, 200)
    passages = split(documents, size)
    assert all(len(p.text) <= size for p in passages)
    kept = "".join("".join(p.text.split()) for p in passages)
    assert kept == "".join("".join(d.text.split()) for d in documents)
    found = BM25Index(passages).search(name(source) or "mill", 3)
    assert set(map(id, found)) <= set(map(id, passages))


def folders(source: Source) -> None:
    """Nothing outside of the folder is read, whatever links and names lie in it."""
    top = Path(tempfile.mkdtemp(dir=scratch()))
    secret = top / "secret.txt"
    secret.write_text("outside")
    inside = top / "docs"
    inside.mkdir()
    at = inside
    for number in range(source.between(1, 5)):
        called = "".join(c for c in name(source)[:30] if c not in "/\0").encode("utf-8", "ignore").decode("utf-8")
        path = at / f"{called}{number}{source.pick(('.txt', '.md', '.jsonl', ''))}"
        try:
            _entry(source, path, secret)
        except OSError:
            continue
        if path.is_dir() and not path.is_symlink():
            at = path
    assert all("outside" not in document.text for document in _read(inside))
    shutil.rmtree(top)


def _entry(source: Source, path: Path, secret: Path) -> None:
    kind = source.below(6)
    if kind == 0:
        path.symlink_to(secret)
    elif kind == 1:
        path.symlink_to(path.parent)
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        os.mkfifo(path)
    elif kind == 4:
        path.symlink_to("../" * source.between(1, 4) + "secret.txt")
    else:
        path.write_text(json.dumps({"text": "inside"}))


TARGETS = (
    Target("folders", folders, 1),
    Target("jsonl", jsonl, 15),
    Target("extracted", extracted, 1),
    Target("plain-files", plain, 15),
    Target("retrieval", retrieval, 1),
)
