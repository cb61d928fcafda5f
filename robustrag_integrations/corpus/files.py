"""Finding the files to read: nothing outside the given folders, nothing that is not a plain file."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from robustrag_integrations.corpus.documents import CorpusError, shown_path
from robustrag_integrations.display import printable

SUFFIXES = (".txt", ".text", ".md", ".markdown", ".pdf", ".jsonl")
MOST_FILES = 100_000


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
        path: where it is.
        named: whether the user named it; files found in a folder may be skipped, a named one may not.
        name: its path below the folder that all files of the search have in common, for reports.
    """

    path: str
    named: bool
    name: str = ""

    @property
    def size(self) -> int:
        """Bytes; 0 for a file that has gone."""
        try:
            return os.stat(self.path).st_size
        except OSError:
            return 0

    @property
    def label(self) -> str:
        """The path for messages."""
        return printable(shown_path(self.path), 200)


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        files: those to read.
        unread: how many files of folders are left out, by what they are: a suffix that is not read, or what else.
    """

    files: tuple[SourceFile, ...]
    unread: Mapping[str, int]


def find_files(paths: Iterable[str]) -> Found:
    """The files of a list of files and folders, without repeats, in the order given; folders sorted by name.

    Folders are searched to any depth. Hidden files and symbolic links in them are left out, so that a hostile
    folder can neither have files outside it read nor make the search run in circles.

    Raises:
        CorpusError: a path does not exist, cannot be opened, or is neither folder nor plain file of a known kind.
    """
    found: dict[str, SourceFile] = {}
    unread: Counter[str] = Counter()
    for path in paths:
        candidates = _walk(path, unread) if _is_folder(path) else [SourceFile(path, named=True)]
        for file in candidates:
            found.setdefault(os.path.realpath(file.path), file)
            if len(found) > MOST_FILES:
                raise CorpusError(f"{_label(path)} holds more than {MOST_FILES:,} files; name smaller folders")
    top = os.path.commonpath([os.path.dirname(os.path.abspath(f.path)) for f in found.values()] or ["."])
    named = (replace(f, name=shown_path(os.path.relpath(os.path.abspath(f.path), top))) for f in found.values())
    return Found(tuple(named), unread)


def _is_folder(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError(f"cannot open {_label(path)}: {reason}") from error
    if stat.S_ISDIR(mode):
        return True
    if not stat.S_ISREG(mode):
        raise CorpusError(f"{_label(path)} is neither a folder nor a plain file")
    if not path.lower().endswith(SUFFIXES):
        raise CorpusError(f"{_label(path)}: unknown kind of file; {', '.join(SUFFIXES)} can be read")
    return False


def _walk(folder: str, unread: Counter[str]) -> Iterator[SourceFile]:
    """The files to read; what else is there is counted."""
    for parent, folders, names in os.walk(folder, onerror=_refused, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(n for n in names if not n.startswith(".")):
            path = os.path.join(parent, name)
            if os.path.islink(path) or not os.path.isfile(path):
                unread["symbolic links" if os.path.islink(path) else "no plain files"] += 1
            elif name.lower().endswith(SUFFIXES):
                yield SourceFile(path, named=False)
            else:
                unread[os.path.splitext(name)[1].lower() or "without a suffix"] += 1


def _refused(error: OSError) -> None:
    raise CorpusError(f"cannot open the folder {_label(str(error.filename))}: {error.strerror}") from error


def _label(path: str) -> str:
    return printable(shown_path(path), 200)
