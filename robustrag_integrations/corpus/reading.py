"""Reads files and folders into documents. Files are hostile: size and time are bounded, and nothing is interpreted.

Each PDF is read in a fresh process with little time and memory, which runs `pdf_text.py` alone, gets the limits and the
file on its standard input, and replies on its standard output: nothing is unpickled, and no file meets what another one
left behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations._util.words import count_of
from robustrag_integrations.corpus import pdf_text
from robustrag_integrations.corpus.documents import CorpusError, Document, Skipped, needed
from robustrag_integrations.corpus.files import SUFFIXES, SourceFile, find_files
from robustrag_integrations.corpus.markup import without_hidden, without_invisible
from robustrag_integrations.corpus.pdf_text import PDFError, PDFLimits
from robustrag_integrations.grouping.origins import names_in

LARGEST_READING = 512 * 1024 * 1024  # bytes of all files together
LARGEST_FILE = 64 * 1024 * 1024  # bytes
MOST_ROWS = 500_000  # of one JSONL file
LONGEST_ROW = 8 << 20  # characters of one row, which may take twenty times the memory once parsed
_MARKUP = (".md", ".markdown", ".jsonl")  # whose texts are shown as pages

# A PDF's limits grow with its size, so that a small one cannot cost much. Honest ones take a tenth of them.
MOST_PAGES = 10_000
LARGEST_TEXT = 32 * 1024 * 1024  # characters of any PDF, which is compressed
_TEXT = 1024 * 1024  # characters for a PDF of no size,
_TEXT_PER_BYTE = 50  # and for each byte of one
_SECONDS = 2.0  # of processor time for a PDF of no size,
_SECONDS_PER_MIB = 10.0  # and for each MiB of one
_SECONDS_LOST = 8.0  # on PDFs that could not be read, after which another one has
_SECONDS_AFTERWARDS = 0.7  # in place of `_SECONDS`
_MEMORY = 2 << 30  # bytes
_CLOCK = 4  # seconds by the clock for each of processor time, as others use the machine too
_GRACE = 10.0  # more seconds that a process has to start and to reply


@dataclass(frozen=True)
class Reading:
    """The documents that were read, and the files, rows and hidden texts that were skipped."""

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...] = ()


def read_documents(
    paths: Iterable[str], *, hidden_text: bool = False, on_file: Callable[[int, int], None] | None = None
) -> Reading:
    """Read text, Markdown, PDF and JSONL files, and folders of them.

    A file that was named must be readable. One found in a folder is skipped when it is not, and reported, since
    one bad file must not stop every answer. So is a bad row of a JSONL file in which others are good, and a file
    without text. When a folder's files are too many bytes, the largest ones are skipped.
    How many files of folders are of other kinds is reported, too.

    Args:
        paths: files and folders.
        hidden_text: True to read what nobody can see as well. Else texts of a PDF in no ink, in the colour of what they
            stand on, smaller than two points or off the page, comments and hidden elements of Markdown and of JSONL
            rows, tag characters and variation selectors are left out, and the report names the files.
        on_file: called before each file with the number that are done and the number of all files.

    Raises:
        CorpusError: a path or a named file cannot be read, or there is no text at all.
        ImportError: reading PDF files needs pypdf.
    """
    given = list(paths)
    documents: list[Document] = []
    with ExitStack() as held:
        files, skipped = find_files(given, held)
        too_large = _beyond(files, LARGEST_READING)
        reader = _Reader(LARGEST_READING, hidden_text)
        for done, file in enumerate(files):
            if on_file is not None:
                on_file(done, len(files))
            try:
                if file in too_large:
                    raise CorpusError(f"{file.label} is one of the largest of more than {LARGEST_READING >> 20} MiB")
                found, left_out = reader.read(file)
            except CorpusError as error:
                if file.named:
                    raise
                skipped.append(Skipped(file.path, str(error)))
            else:
                documents += found
                skipped += left_out
                if not left_out and not any(d.text.strip() for d in found):
                    skipped.append(Skipped(file.path, f"{file.label} holds no text"))
    if not any(d.text.strip() for d in documents):
        why = f" (skipped: {skipped[0].reason})" if skipped else ""
        raise CorpusError(f"no text in {', '.join(given)}; {', '.join(SUFFIXES)} are read{why}")
    return Reading(tuple(documents), tuple(skipped))


def _beyond(files: Sequence[SourceFile], limit: int) -> set[SourceFile]:
    """Return the largest files, without which the rest is within a limit of bytes; named ones are never among them."""
    left, out = sum(file.size for file in files), set()
    for file in sorted(files, key=lambda file: file.size, reverse=True):
        if left <= limit:
            break
        if not file.named:
            out.add(file)
            left -= file.size
    return out


class _Reader:
    """Reads files one after the other.

    PDFs that keep it busy for nothing make it less patient, so that a folder full of them costs little more time than
    reading the others.

    Args:
        most_bytes: of all files together; beyond, only files that the user named are read.
        hidden_text: True to read what nobody can see as well.
    """

    def __init__(self, most_bytes: int, hidden_text: bool) -> None:
        self._left = most_bytes
        self._hidden_text = hidden_text
        self._lost = 0.0  # seconds

    def read(self, file: SourceFile) -> tuple[list[Document], list[Skipped]]:
        """Return the documents of a file, one, or one per row of a JSONL file; and what was left out.

        Raises:
            CorpusError: it cannot be read; the message names the file.
        """
        data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise CorpusError(f"{file.label} is larger than {LARGEST_FILE >> 20} MiB; split it into smaller files")
        if len(data) > self._left and not file.named:
            raise CorpusError(f"{file.label} has grown since it was found, and is too much together with the others")
        self._left -= len(data)
        name = file.path.lower()
        skipped: list[Skipped] = []
        left_out = 0
        if name.endswith(".jsonl"):
            documents, skipped = _jsonl(_text(data, file), file)
        else:
            text, left_out = self._pdf(data, file) if name.endswith(".pdf") else (_text(data, file), 0)
            documents = [Document(text, file.name, file.name, {"file_path": file.name}, "file_path")]
        if not self._hidden_text:
            for place, document in enumerate(documents):
                text, invisible = without_invisible(document.text)
                text, hidden = without_hidden(text) if name.endswith(_MARKUP) else (text, 0)
                documents[place] = replace(document, text=text)
                left_out += invisible + hidden
        if left_out:
            what = count_of(left_out, "piece")
            reason = f"{file.label}: {what} of text that nobody can see; --hidden-text (hidden_text=True) reads them"
            skipped.append(Skipped(file.path, reason))
        return documents, skipped

    def _pdf(self, data: bytes, file: SourceFile) -> tuple[str, int]:
        base, began = _SECONDS if self._lost < _SECONDS_LOST else _SECONDS_AFTERWARDS, time.monotonic()
        limits = PDFLimits(
            seconds=base + _SECONDS_PER_MIB * len(data) / (1 << 20),
            characters=min(LARGEST_TEXT, _TEXT + _TEXT_PER_BYTE * len(data)),
            pages=MOST_PAGES,
            memory=_MEMORY,
        )
        try:
            return text_in_process(data, limits, hidden=self._hidden_text)
        except PDFError as error:
            self._lost += min(time.monotonic() - began, limits.seconds)
            raise CorpusError(f"{file.label} {error}") from error


def text_in_process(data: bytes, limits: PDFLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the text of a PDF, and the number of strings that are left out, as of `text_of_pdf`.

    Raises:
        PDFError: it cannot be read, or not within the limits; the message goes after the file's name.
        ImportError: pypdf is not installed.
    """
    needed("pypdf", "reading PDF files")
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, a file of this package
            [sys.executable, "-I", pdf_text.__file__, json.dumps(sys.path)],
            input=json.dumps({"limits": asdict(limits), "hidden": hidden}).encode() + b"\n" + data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_CLOCK * limits.seconds + _GRACE,
            start_new_session=True,  # an interrupt is for this process to deal with
            check=True,
        )
    except OSError as error:
        raise PDFError(f"cannot be read: no process could be started for it ({error.strerror})") from error
    except subprocess.SubprocessError as error:
        raise PDFError(
            f"took more than the {limits.seconds:.3g} s or the memory that a file of its size has; print it to a new "
            "PDF"
        ) from error
    text = valid_text(done.stdout[1:].decode("utf-8", "surrogatepass"))
    if done.stdout[:1] != pdf_text.READ:
        raise PDFError(printable(text, 300))
    left_out, _, text = text.partition("\n")
    return text, int(left_out)


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


def _jsonl(text: str, file: SourceFile) -> tuple[list[Document], list[Skipped]]:
    """Return a document per readable row; a row of one author must not cost those of the others."""
    documents, skipped = [], []
    lines = text.split("\n", MOST_ROWS)
    if len(lines) > MOST_ROWS and lines.pop().strip():
        reason = f"{file.label} has more than {MOST_ROWS:,} rows; the others were not read. Split it into smaller files"
        skipped.append(Skipped(file.path, reason))
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                documents.append(_row(line, number, file))
            except CorpusError as error:
                skipped.append(Skipped(file.path, str(error)))
    if skipped and not documents:
        raise CorpusError(skipped[0].reason)
    return documents, skipped


def _row(line: str, number: int, file: SourceFile) -> Document:
    where = f"{file.label}, line {number}"
    if len(line) > LONGEST_ROW:
        raise CorpusError(f"{where}: longer than {LONGEST_ROW:,} characters; split it into several rows")
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
    others = {valid_text(k): v for k, v in row.items() if k not in ("text", "title", "id", "source")}
    plain = {name: v for name, v in others.items() if isinstance(v, str | int | float)}
    metadata = {name: valid_text(v) if isinstance(v, str) else v for name, v in plain.items()}
    # A row that names no origin belongs to the file: leaving it out must not gain a vote.
    named = names_in(metadata)
    source = valid_text(row.get("source") or "") or (None if named else file.name)
    if not file.named:  # who wrote the file wrote its rows, and chose their names
        source, metadata = source or named[0][1].given, {**metadata, "file_path": file.name}
    return Document(text, id=identity, source=source, metadata=metadata)


def _titled(title: str, text: str) -> str:
    """Put the title above the text, unless the text's beginning contains it."""
    if not title.strip() or title.casefold() in text[:300].casefold():
        return text
    return f"{title}\n{text}"
