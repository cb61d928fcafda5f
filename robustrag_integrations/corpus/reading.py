"""Reads files and folders into documents. Files are hostile: size and time are bounded, and nothing is interpreted.

A folder may be somebody else's, who changes it while it is read: everything below it is opened relative to the open
folder, name by name. No link is followed, no pipe is waited for, and whether it is a plain file is asked of what was
opened. What goes wrong with a file below a folder is skipped and said, never raised.

Files are read in a process with little time and memory, which runs `extract.py`, gets the limits and the file on its
standard input, and replies on its standard output: nothing is unpickled. Each PDF, web page, Word and Excel file
has a fresh one, so that none meets what another one left in a library. Text, Markdown, CSV and JSONL files, which this
package parses, share one, which takes longer to start than to read most of them.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from typing import IO, Any, cast

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations._util.words import count_of, some_of
from robustrag_integrations.corpus import extract
from robustrag_integrations.corpus.documents import CorpusError, Skipped, needed
from robustrag_integrations.corpus.limits import FileError, FileLimits
from robustrag_integrations.grouping.origins import names_in, origin_named
from robustrag_integrations.grouping.passages import Passage

_KINDS = {
    ".txt": "text", ".text": "text", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html",
    ".xhtml": "html", ".docx": "docx", ".pdf": "pdf", ".jsonl": "jsonl", ".csv": "csv", ".tsv": "csv",
    ".xlsx": "xlsx",
}  # fmt: skip
SUFFIXES = tuple(_KINDS)
MOST_FILES = 100_000  # of a folder, and of all together
DEEPEST = 64  # folders within each other
LONGEST_PATH = 4096  # bytes
LARGEST_READING = 512 * 1024 * 1024  # bytes of all files together
LARGEST_FILE = 64 * 1024 * 1024  # bytes
_NAMED = 8  # files in an error
MOST_NAMED = 100  # files of other kinds in folders; further ones are counted
_LIBRARIES = {"pdf": ("pypdf",), "html": ("bs4", "lxml", "markdownify"), "docx": ("docx",), "xlsx": ("openpyxl",)}

# The limits grow with a file's size, so that a small one cannot cost much. Honest ones take a tenth of them.
MOST_PAGES = 10_000
LARGEST_TEXT = 32 * 1024 * 1024  # characters of any file, as it may be compressed
_TEXT = 1024 * 1024  # characters for a file of no size,
_TEXT_PER_BYTE = 50  # and for each byte of one
_SECONDS = 2.0  # of processor time for a file of no size,
_SECONDS_PER_MIB = 10.0  # and for each MiB of one
_SECONDS_LOST = 8.0  # on files that could not be read, after which another one has
_SECONDS_AFTERWARDS = 0.7  # in place of `_SECONDS`
_MEMORY = 2 << 30  # bytes
_CLOCK = 4  # seconds by the clock for each of processor time, as others use the machine too
_GRACE = 10.0  # more seconds that a process has to start and to reply

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = _FILE | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True)
class Reading:
    """The documents that were read, each a whole file or a row of one, and what was skipped of them."""

    documents: tuple[Passage, ...]
    skipped: tuple[Skipped, ...] = ()


def read_documents(paths: Iterable[str], *, hidden_text: bool = False) -> Reading:
    """Read text, Markdown, HTML, Word, PDF, CSV, Excel and JSONL files, and folders of them.

    Hidden files and links are left out. A file that was named must be readable. One found in a folder is skipped when
    it is not, and reported, since one bad file must not stop every answer. So is a bad row of a JSONL file in which
    others are good, a file without text, one of another kind, and one whose library is not installed.

    Args:
        paths: files and folders.
        hidden_text: True to read text that is hidden as well. Else it is left out, and the report names the files;
            docs/guide/command-line.md lists what is read as hidden, and much is not.

    Raises:
        CorpusError: a path or a named file cannot be read, there is no text at all, or more than 100,000 files or 512
            MiB of them.
        ImportError: a named file needs a library of the extra `cli`.
    """
    given = list(dict.fromkeys(paths))
    with closing(_Process()) as process:
        reader = _Reader(given, hidden_text, process)
        for path in given:
            reader.add(path)
    if not any(d.text.strip() for d in reader.documents):
        reasons = [skipped.reason for skipped in reader.skipped]
        why = f" (skipped: {some_of(reasons, len(reasons), _NAMED)})" if reasons else ""
        raise CorpusError(f"no text in {', '.join(given)}; {', '.join(SUFFIXES)} are read{why}")
    if (more := reader.others - MOST_NAMED) > 0:
        reason = f"{count_of(more, 'more file')} of folders: links, or of other kinds"
        reader.skipped.append(Skipped(", ".join(given), reason))
    return Reading(tuple(reader.documents), tuple(reader.skipped))


@dataclass(frozen=True)
class _File:
    """A file, its path for messages, and its name below what all paths have in common, which names its origin."""

    path: str
    label: str
    name: str
    named: bool  # by the user

    def document(self, text: str, identity: str) -> Passage:
        """A text of this file, whatever it says. A name that may be read as another one's goes with an id."""
        origin = origin_named(self.name, is_file=True)
        if origin is not None and origin.name == self.name:
            return Passage(text, identity, self.name, {"file_path": self.name}, origin_entry="file_path")
        path = f"./{self.name}"  # a folder called "https:" makes no address
        return Passage(text, identity, path, {"file_path": path, "file_id": self.name}, origin_entry="file_path")


class _Reader:
    """Reads files one after the other; those that keep it busy for nothing make it less patient."""

    def __init__(self, paths: list[str], hidden_text: bool, process: _Process) -> None:
        self.documents: list[Passage] = []
        self.skipped: list[Skipped] = []
        self.others = 0  # links and files of other kinds
        absolute = map(os.path.abspath, paths)
        self._top = os.path.commonpath([p if os.path.isdir(p) else os.path.dirname(p) for p in absolute] or ["."])
        self._hidden_text = hidden_text
        self._files: set[str] = set()
        self._bytes = 0
        self._lost = 0.0  # seconds
        self._process = process  # that texts are read in

    def add(self, path: str) -> None:
        """Read a file or folder that the user named."""
        try:
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                descriptor = os.open(path, _FOLDER)
                try:
                    for inner, folder in self._below(path, descriptor, 1):
                        self._read(inner, folder)
                finally:
                    os.close(descriptor)
                return
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CorpusError(f"cannot open {_label(path)}: {reason}") from error
        if not stat.S_ISREG(mode):
            raise CorpusError(f"{_label(path)} is neither a folder nor a plain file")
        if not path.lower().endswith(SUFFIXES):
            raise CorpusError(f"{_label(path)}: {_unknown(path)}; {', '.join(SUFFIXES)} are read")
        self._read(path, None)

    def _below(self, path: str, folder: int, depth: int) -> Iterator[tuple[str, int]]:
        """Yield the path of every file to read in an open folder and below it, with the folder that it is in."""
        try:
            with os.scandir(folder) as listing:
                entries = sorted(islice(listing, MOST_FILES + 1), key=lambda entry: entry.name)
            if len(entries) > MOST_FILES:
                raise CorpusError(f"it holds more than {MOST_FILES:,} files")
            if depth > DEEPEST or len(os.fsencode(path)) > LONGEST_PATH:
                raise CorpusError(f"it is more than {DEEPEST} folders deep, or its path is too long")
        except (OSError, CorpusError) as error:
            self._skip_folder(path, error)
            return
        folders = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(SUFFIXES):
                yield os.path.join(path, entry.name), folder
            else:
                self._skip_other(os.path.join(path, entry.name), entry)
        for name in folders:
            inner = os.path.join(path, name)
            try:
                descriptor = os.open(name, _FOLDER | _NO_LINK, dir_fd=folder)
            except OSError as error:
                self._skip_folder(inner, error)
                continue
            try:
                yield from self._below(inner, descriptor, depth + 1)
            finally:
                os.close(descriptor)

    def _skip_other(self, path: str, entry: os.DirEntry[str]) -> None:
        self.others += 1
        if self.others <= MOST_NAMED:
            why = "a link; links are not followed" if entry.is_symlink() else _unknown(path)
            self.skipped.append(Skipped(path, f"{_label(path)}: {why}"))

    def _skip_folder(self, path: str, error: OSError | CorpusError) -> None:
        reason = error.strerror if isinstance(error, OSError) else error
        self.skipped.append(Skipped(path, f"the folder {_label(path)} is not read: {reason}"))

    def _read(self, path: str, folder: int | None) -> None:
        """Read a file: in this open folder, or one that the user named."""
        above, last = os.path.split(path)
        place = os.path.realpath(path) if folder is None else os.path.join(os.path.realpath(above), last)
        if place in self._files:
            return
        self._files.add(place)
        if len(self._files) > MOST_FILES or self._bytes > LARGEST_READING:
            most = f"{MOST_FILES:,} files or {LARGEST_READING >> 20} MiB"
            raise CorpusError(f"there are more than {most}; name fewer folders")
        name = os.path.relpath(os.path.abspath(path), self._top).encode(errors="backslashreplace").decode()
        file = _File(path, _label(path), name, folder is None)
        try:
            documents, left_out = self._documents(file, _bytes_of(file, folder))
        except (CorpusError, ImportError) as error:
            if file.named:
                raise
            reason = f"{file.label}: {error}" if isinstance(error, ImportError) else str(error)
            self.skipped.append(Skipped(path, reason))
            return
        self.documents += documents
        if left_out:
            what = count_of(left_out, "piece")
            reason = f"{file.label}: {what} of hidden text; --hidden-text (hidden_text=True) reads them"
            self.skipped.append(Skipped(path, reason, whole=False))
        elif not any(d.text.strip() for d in documents):
            self.skipped.append(Skipped(path, f"{file.label} holds no text"))

    def _documents(self, file: _File, data: bytes) -> tuple[list[Passage], int]:
        """Return the documents of a file, one, or one per row of a JSONL file; and how much hidden text is left out."""
        if len(data) > LARGEST_FILE:
            raise CorpusError(f"{file.label} is larger than {LARGEST_FILE >> 20} MiB; split it into smaller files")
        self._bytes += len(data)
        kind = next(kind for ending, kind in _KINDS.items() if file.path.lower().endswith(ending))
        text, left_out = self._extracted(data, kind, file)
        return self._rows(text, file) if kind == "jsonl" else [file.document(text, file.name)], left_out

    def _extracted(self, data: bytes, kind: str, file: _File) -> tuple[str, int]:
        base, began = _SECONDS if self._lost < _SECONDS_LOST else _SECONDS_AFTERWARDS, time.monotonic()
        seconds = base + _SECONDS_PER_MIB * len(data) / (1 << 20)
        characters = min(LARGEST_TEXT, _TEXT + _TEXT_PER_BYTE * len(data))
        limits = FileLimits(seconds, characters, MOST_PAGES, _MEMORY)
        try:
            if kind in _LIBRARIES:
                return text_in_process(data, kind, limits, hidden=self._hidden_text)
            return self._process.text_of(data, kind, limits, hidden=self._hidden_text)
        except FileError as error:
            self._lost += min(time.monotonic() - began, seconds)
            raise CorpusError(f"{file.label} {error}") from error

    def _rows(self, text: str, file: _File) -> list[Passage]:
        """Return a document per readable row; a row of one author must not cost those of the others."""
        documents: list[Passage] = []
        skipped: list[Skipped] = []
        for number, row in json.loads(text):
            if isinstance(row, str):
                skipped.append(Skipped(file.path, f"{file.label}, line {number}: {row}", whole=False))
            else:
                documents.append(_document(row, number, file))
        if skipped and not documents:
            raise CorpusError(skipped[0].reason)
        self.skipped += skipped
        return documents


def _bytes_of(file: _File, folder: int | None) -> bytes:

    def opened(path: str, flags: int) -> int:
        if folder is None:
            return os.open(path, _FILE)
        return os.open(os.path.basename(path), _FILE | _NO_LINK, dir_fd=folder)

    try:
        with open(file.path, "rb", opener=opened) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise CorpusError(f"cannot read {file.label}: it is no plain file any more")
            return stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise CorpusError(f"cannot read {file.label}: {error.strerror}") from error


def text_in_process(data: bytes, kind: str, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the text of a file of one of `extract.KINDS`, and how many hidden pieces are left out of it.

    Raises a FileError where it cannot be read within the limits, an ImportError without its libraries.
    """
    for library in _LIBRARIES.get(kind, ()):
        needed(library, f"reading {kind.upper()} files")
    with closing(_Process()) as process:
        return process.text_of(data, kind, limits, hidden=hidden)


class _Process:
    """Reads one file after the other in another process, which starts with the first, and again where it was ended."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End it, whatever it does."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def text_of(self, data: bytes, kind: str, limits: FileLimits, *, hidden: bool) -> tuple[str, int]:
        """As `text_in_process`."""
        asked = {"kind": kind, "limits": asdict(limits), "hidden": hidden, "size": len(data)}
        try:
            mark, reply = self._reply(json.dumps(asked).encode() + b"\n" + data, _CLOCK * limits.seconds + _GRACE)
        except BaseException:  # an interrupt, too
            self.close()
            raise
        if not mark:
            self.close()
            limit = f"the {limits.seconds:.3g} s or the memory that a file of its size has"
            raise FileError(f"took more than {limit}; save it anew, or in parts")
        text = valid_text(reply.decode("utf-8", "surrogatepass"))
        if mark != extract.READ:
            raise FileError(printable(text, 300))
        left_out, _, text = text.partition("\n")
        return text, int(left_out)

    def _reply(self, asked: bytes, seconds: float) -> tuple[bytes, bytes]:
        """Return the mark and text of a reply; nothing where the process ends, or takes longer than this."""
        if self._running is None:
            try:
                self._running = subprocess.Popen(  # noqa: S603 - this interpreter, a file of this package
                    [sys.executable, "-I", extract.__file__, json.dumps(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # an interrupt is for this process to deal with
                )
            except OSError as error:
                reason = f"no process could be started for it ({error.strerror})"
                raise FileError(f"cannot be read: {reason}") from error
        sent, replies = cast("IO[bytes]", self._running.stdin), cast("IO[bytes]", self._running.stdout)
        timer = threading.Timer(seconds, self._running.kill)
        timer.start()
        try:
            sent.write(asked)
            sent.flush()
            head = replies.readline()
            reply = replies.read(int(head[1:] or 0))
        except OSError:  # it has ended
            return b"", b""
        finally:
            timer.cancel()
        return (head[:1], reply) if head and len(reply) == int(head[1:]) else (b"", b"")


def _document(row: dict[str, Any], number: int, file: _File) -> Passage:
    text, given = row.pop("text"), row.pop("id", None)
    if not file.named:  # who wrote the file wrote its rows; what they say of their source is no name
        return file.document(text, f"{file.name}:{number}")
    identity = f"{file.name}:{number}" if given in (None, "") or isinstance(given, float) else str(given)
    # A row that names no origin belongs to the file: leaving it out must not gain a vote.
    source = row.pop("source", None) or (None if names_in(row) else file.name)
    return Passage(text, id=identity, origin=source, metadata=row)


def _unknown(path: str) -> str:
    ending = os.path.splitext(path)[1]
    return f"unknown kind of file ({printable(valid_text(ending), 20)})" if ending else "unknown kind of file"


def _label(path: str) -> str:
    return printable(valid_text(path), 200)
