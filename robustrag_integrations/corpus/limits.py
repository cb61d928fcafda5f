"""The limits on reading one file in a process of its own, and the error of a file that cannot be read within them."""

from __future__ import annotations

from dataclasses import dataclass


class FileError(ValueError):
    """A file cannot be read; the message gives the reason and follows the file's name."""


@dataclass(frozen=True)
class FileLimits:
    """Limits on reading one file."""

    seconds: float  # of processor time, and several times as much by the clock
    characters: int
    pages: int  # of a PDF
    memory: int  # bytes, on systems that can limit it

    def check(self, size: int) -> None:
        """Raise a FileError for a text of more characters."""
        if size > self.characters:
            raise FileError(f"holds more than {self.characters:,} characters of text, too many for its size")
