"""Finds and opens the files to read: plain files inside the given folders, and nothing else.

A folder may be somebody else's, who changes it while it is read. A folder that the user named is therefore opened once,
and everything below it is opened relative to it, name by name: no link is followed, no pipe is waited for, and whether
it is a plain file is asked of what was opened. What goes wrong below a folder is skipped and said, never raised.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import islice

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations._util.words import count_of
from robustrag_integrations.corpus.documents import CorpusError, Skipped

SUFFIXES = (".txt", ".text", ".md", ".markdown", ".pdf", ".jsonl")
MOST_FILES = 100_000  # of a folder, and of all together
DEEPEST = 64  # folders within each other
LONGEST_PATH = 4096  # bytes

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = _FILE | getattr(os, "O_DIRECTORY", 0)
_REASONS = {errno.ELOOP: "a symbolic link stands there now", errno.ENOTDIR: "its folder is no folder any more"}


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
        path: the place where it was found.
        name: its path below the folder that was given, whatever else is in it; where several paths were given, below
            the folder that they have in common. It names its origin.
        size: bytes, when it was found.
        root: the descriptor of the folder that was searched; None for a file that the user named, which must be
            readable, while others may be skipped.
        below: the names that lead from there to the file.
        is_link: True if the user named a link.
    """

    path: str
    name: str = ""
    size: int = 0
    root: int | None = None
    below: tuple[str, ...] = ()
    is_link: bool = False

    @property
    def named(self) -> bool:
        """True if the user named the file."""
        return self.root is None

    @property
    def label(self) -> str:
        """The path for messages."""
        return _label(self.path)

    def read(self, most: int) -> bytes:
        """Return the file's first bytes, at most this many.

        Raises:
            CorpusError: it cannot be opened, or something else stands in its place by now.
        """
        try:
            with open(self.path, "rb", opener=self._open) as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise CorpusError(f"cannot read {self.label}: it is no plain file any more")
                return stream.read(most)
        except OSError as error:
            raise CorpusError(f"cannot read {self.label}: {_reason(error)}") from error

    def _open(self, path: str, flags: int) -> int:
        if self.root is None:
            return os.open(path, _FILE | (0 if self.is_link else _NO_LINK))
        with ExitStack() as held:
            folder = self.root
            for name in self.below[:-1]:
                folder = os.open(name, _FOLDER | _NO_LINK, dir_fd=folder)
                held.callback(os.close, folder)
            return os.open(self.below[-1], _FILE | _NO_LINK, dir_fd=folder)


def find_files(paths: Sequence[str], held: ExitStack) -> tuple[list[SourceFile], list[Skipped]]:
    """Find the files in a list of files and folders, without repeats, in the order given; folders sorted by name.

    Hidden files and symbolic links below a folder are left out. A folder that cannot be searched, or is too deep, is
    skipped; where there are too many files, the subfolders with most of them are.

    Args:
        paths: files and folders.
        held: closes the folders, once the files are read.

    Returns:
        The files, and what of the folders is left out, with the reason.

    Raises:
        CorpusError: a path does not exist, cannot be opened, or is neither folder nor plain file of a known kind.
    """
    search = _Search()
    given = {path: _files_at(path, search, held) for path in dict.fromkeys(paths)}
    named = {path: files for path, files in given.items() if any(file.named for file in files)}
    kept = named | search.lightest((path, files) for path, files in given.items() if path not in named)
    found: dict[str, SourceFile] = {}
    for path in given:
        real = os.path.realpath(path)
        for file in kept.get(path, ()):
            found.setdefault(os.path.join(real, *file.below), file)
    folders = (os.path.dirname(os.path.abspath(p)) if p in named else os.path.abspath(p) for p in given)
    top = os.path.commonpath([*folders] or ["."])
    files = [replace(f, name=valid_text(os.path.relpath(os.path.abspath(f.path), top))) for f in found.values()]
    if search.unread:
        unread = f"{count_of(search.unread, 'file')} of folders: links, or not of {', '.join(SUFFIXES)}"
        search.skipped.insert(0, Skipped(", ".join(paths), unread))
    return files, search.skipped


def _files_at(path: str, search: _Search, held: ExitStack) -> list[SourceFile]:
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            root = os.open(path, _FOLDER)
            held.callback(os.close, root)
            return search.files_of(SourceFile(path, root=root), root)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError(f"cannot open {_label(path)}: {reason}") from error
    if not stat.S_ISREG(status.st_mode):
        raise CorpusError(f"{_label(path)} is neither a folder nor a plain file")
    if not path.lower().endswith(SUFFIXES):
        raise CorpusError(f"{_label(path)}: unknown kind of file; {', '.join(SUFFIXES)} can be read")
    return [SourceFile(path, size=status.st_size, is_link=os.path.islink(path))]


@dataclass
class _Search:
    """A search through folders; records what is not read, and why."""

    unread: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def files_of(self, place: SourceFile, descriptor: int) -> list[SourceFile]:
        """Return the files to read in an open folder and below it; none if it cannot be searched."""
        try:
            with os.scandir(descriptor) as listing:
                entries = list(islice(listing, MOST_FILES + 1))
            if len(entries) > MOST_FILES:
                raise CorpusError(f"it holds more than {MOST_FILES:,} files")
            shown = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
            kept = self.lightest(self._lists(place, descriptor, shown))
            return [file for files in kept.values() for file in files]
        except (OSError, CorpusError) as error:
            self._skip(place.path, error)
            return []

    def _lists(
        self, place: SourceFile, descriptor: int, entries: Iterable[os.DirEntry[str]]
    ) -> Iterator[tuple[str, list[SourceFile]]]:
        """Yield the folder's own files, and those below each of its folders."""
        own, folders = [], []
        for entry in entries:
            inner = replace(place, path=os.path.join(place.path, entry.name), below=(*place.below, entry.name))
            if entry.is_dir(follow_symlinks=False):
                folders.append(inner)
            elif not entry.is_file(follow_symlinks=False) or not entry.name.lower().endswith(SUFFIXES):
                self.unread += 1
            else:
                size = 0
                with suppress(OSError):  # a missing one is reported when it is read
                    size = entry.stat(follow_symlinks=False).st_size
                own.append(replace(inner, size=size))
        yield place.path, own
        for inner in folders:
            yield inner.path, self._files_below(inner, descriptor)

    def _files_below(self, place: SourceFile, outer: int) -> list[SourceFile]:
        try:
            if len(place.below) > DEEPEST:
                raise CorpusError(f"it is more than {DEEPEST} folders deep")
            if len(os.fsencode(place.path)) > LONGEST_PATH:
                raise CorpusError(f"its path is longer than {LONGEST_PATH:,} bytes")
            descriptor = os.open(place.below[-1], _FOLDER | _NO_LINK, dir_fd=outer)
        except (OSError, CorpusError) as error:
            self._skip(place.path, error)
            return []
        try:
            return self.files_of(place, descriptor)
        finally:
            os.close(descriptor)

    def lightest(self, lists: Iterable[tuple[str, list[SourceFile]]]) -> dict[str, list[SourceFile]]:
        """Return the lists of files by folder, without the longest ones where all together are too many."""
        kept: dict[str, list[SourceFile]] = {}
        by_length: list[tuple[int, str]] = []
        total = 0
        for path, files in lists:
            kept[path] = files
            total += len(files)
            heappush(by_length, (-len(files), path))
            while total > MOST_FILES:
                negative, longest = heappop(by_length)
                total += negative
                del kept[longest]
                self._skip(longest, CorpusError(f"with it there are more than {MOST_FILES:,} files"))
        return kept

    def _skip(self, path: str, error: OSError | CorpusError) -> None:
        reason = _reason(error) if isinstance(error, OSError) else error
        self.skipped.append(Skipped(path, f"the folder {_label(path)} is not read: {reason}"))


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0) or error.strerror or type(error).__name__


def _label(path: str) -> str:
    return printable(valid_text(path), 200)
