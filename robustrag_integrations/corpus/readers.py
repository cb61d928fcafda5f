"""One reader per kind of file. What they read is hostile: sizes are bounded, nothing is interpreted."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

from robustrag_integrations.corpus.documents import CorpusError, Document, valid_text
from robustrag_integrations.corpus.extras import needed
from robustrag_integrations.corpus.files import SourceFile
from robustrag_integrations.display import printable

LARGEST_FILE = 64 * 1024 * 1024  # bytes
LARGEST_TEXT = 32 * 1024 * 1024  # characters that a PDF, which is compressed, may unfold to
MOST_PAGES = 10_000


def read_file(file: SourceFile) -> list[Document]:
    """The documents of a file: one, or one per row of a JSONL file.

    Raises:
        CorpusError: it cannot be read; the message names the file, and the line of a JSONL file.
        ImportError: it is a PDF, and pypdf is not installed.
    """
    data = _bytes(file)
    name = file.path.lower()
    if name.endswith(".jsonl"):
        return _jsonl(_text(data, file), file)
    text = _pdf(data, file) if name.endswith(".pdf") else _text(data, file)
    return [Document(text, id=file.name, source=file.name)]


def _bytes(file: SourceFile) -> bytes:
    try:
        with open(file.path, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise CorpusError(f"cannot read {file.label}: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise CorpusError(f"{file.label} is larger than {LARGEST_FILE >> 20} MiB; split it into smaller files")
    return data


def _text(data: bytes, file: SourceFile) -> str:
    if b"\x00" in data:
        raise CorpusError(f"{file.label} is not text: it holds zero bytes (a binary file, or UTF-16?)")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{file.label} is not UTF-8 text (byte {error.start:,}); convert it, for example with "
            "iconv -f latin1 -t utf-8"
        ) from error


def _jsonl(text: str, file: SourceFile) -> list[Document]:
    documents = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            documents.append(_row(line, number, file))
    return documents


def _row(line: str, number: int, file: SourceFile) -> Document:
    where = f"{file.label}, line {number}"
    try:
        row = json.loads(line)
    except RecursionError:
        raise CorpusError(f"{where}: nested too deeply") from None
    except ValueError as error:
        raise CorpusError(f"{where}: not JSON ({printable(str(error), 120)})") from error
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise CorpusError(f'{where}: needs an object with "text", like {{"text": "...", "source": "..."}}')
    for key in ("source", "title"):
        if not isinstance(row.get(key), (str, type(None))):
            raise CorpusError(f'{where}: "{key}" must be a string, got {type(row[key]).__name__}')
    given = row.get("id")
    identity = valid_text(str(given)) if isinstance(given, (str, int)) else f"{file.name}:{number}"
    text = _titled(valid_text(row.get("title") or ""), valid_text(row["text"]))
    # A row without a source is the file's: an author who leaves the source out must not gain a vote by it.
    return Document(text, id=identity, source=valid_text(row.get("source") or "") or file.name)


def _titled(title: str, text: str) -> str:
    """The text, below its title unless it names it early on."""
    if not title.strip() or title.casefold() in text[:300].casefold():
        return text
    return f"{title}\n{text}"


def _pdf(data: bytes, file: SourceFile) -> str:
    pypdf = needed("pypdf", "reading PDF files")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise CorpusError(f"{file.label} is encrypted; remove its password first, for example with qpdf --decrypt")
        text = _pages(reader, file)
    except CorpusError:
        raise
    except pypdf.errors.DependencyError as error:
        raise CorpusError(
            f"{file.label} is encrypted with AES; pip install cryptography if it needs no password, or remove the "
            "password first, for example with qpdf --decrypt"
        ) from error
    except Exception as error:  # a hostile PDF may raise nearly anything inside the parser
        reason = printable(str(error), 120) or type(error).__name__
        raise CorpusError(f"{file.label} is not a PDF that can be read ({reason}); print it to a new PDF") from error
    if not text.strip():
        raise CorpusError(f"{file.label} holds no text; if it is a scan, run text recognition on it first")
    return text


def _pages(reader: Any, file: SourceFile) -> str:
    pages: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages):
        pages.append(valid_text(page.extract_text()))
        size += len(pages[-1])
        if number >= MOST_PAGES or size > LARGEST_TEXT:
            raise CorpusError(f"{file.label} holds more than {MOST_PAGES:,} pages or {LARGEST_TEXT >> 20} MiB of text")
    return "\n\n".join(pages)
