"""A file of JSON lines that survives its writer: every row is on disk before the next one is begun.

A writer that is killed in the middle of a line leaves a torn last line, which is cut off when the next row is written.
Until then not a byte changes, so that a file of something else stays whole. A new file can be read by its owner alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from robustrag_integrations._util.errors import RobustRAGError

_FIRST = b'{"schema": "robustrag/'  # how the first line of every run begins


class JournalError(RobustRAGError):
    """A journal that cannot be read, written or locked, or is none; the message names the file and what to do."""


class Journal:
    """A JSONL file, opened for reading what is there and for appending; made when it is not there.

    Attributes:
        rows: the rows of the file when it was opened, in its order.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = _locked(self.path)
        self._torn_from: int | None = None  # where a last line begins that was not written to its end
        try:
            self.rows: Sequence[dict[str, Any]] = self._read()
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; it is on disk when this returns."""
        try:
            if self._torn_from is not None:
                self._file.truncate(self._torn_from)
                self._torn_from = None
            self._file.write(_line(row))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise JournalError(f"cannot write to {str(self.path)!r}: {error.strerror}") from error

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put these rows in place of the whole file, at once or not at all; the journal is closed by it."""
        draft = self.path.with_name(f".{self.path.name}.part")
        try:
            draft.unlink(missing_ok=True)  # of a run that was killed, or a link that somebody put there
            with open(draft, "xb", opener=private) as file:
                file.writelines(map(_line, rows))
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(self.path, draft)
            os.replace(draft, self.path)
        except OSError as error:
            raise JournalError(f"cannot replace {str(self.path)!r}: {error.strerror}") from error
        self.close()

    def close(self) -> None:
        """Close the file and let others have it."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError) if error[0] else contextlib.nullcontext():  # a full disk has been told
            self.close()

    def _read(self) -> list[dict[str, Any]]:
        self._file.seek(0)
        *lines, torn = self._file.read().split(b"\n")
        rows = []
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise JournalError(f"{self.path}, line {number} is not a row; give another file, or delete that line")
            rows.append(row)
        if torn:
            if not torn.startswith(b"{" if lines else _FIRST[: len(torn)]):
                raise JournalError(f"{str(self.path)!r} is not a run and is left as it is; give another file")
            self._torn_from = sum(len(line) + 1 for line in lines)
        return rows


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, plain ASCII, no spaces; NaN and infinity are refused."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"


def private(path: str, flags: int) -> int:
    """Open a file; a new one can be read by its owner alone."""
    return os.open(path, flags, 0o600)


def _locked(path: Path) -> IO[bytes]:
    """The file, open and locked: the one that has this name now, and not one that another run replaced meanwhile."""
    while True:
        try:
            file: IO[bytes] = open(path, "a+b", opener=private)  # noqa: SIM115 - it stays open
        except OSError as error:
            raise JournalError(f"cannot open {str(path)!r}: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise JournalError(f"{str(path)!r} is no regular file; give another one")
            _lock(file, path)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise JournalError(
            f"another run is writing to {str(path)!r}; wait for it to end, or give another file"
        ) from error
