"""Extracts the text of one PDF, in a program of its own that may be killed at any moment (`pdf_worker` runs it).

It imports nothing of this package, which takes longer to import than most files take to read.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

READ, NOT_READ = b"+", b"-"  # the first bytes of a reply; the text follows, or the error


class PDFError(ValueError):
    """A PDF cannot be read; the message gives the reason and follows the file's name."""


@dataclass(frozen=True)
class PDFLimits:
    """Limits on reading one PDF.

    Attributes:
        seconds: of processor time, and several times as much by the clock.
        characters: of text.
        pages: maximum number of pages.
        memory: bytes of memory, on systems that can limit it.
    """

    seconds: float
    characters: int
    pages: int
    memory: int


def text_of_pdf(data: bytes, limits: PDFLimits) -> str:
    """Return the text of all pages with blank lines between them, as the PDF has it, which may be invalid Unicode.

    Raises:
        PDFError: it is not a PDF, is encrypted, holds no text, or is over a limit. The message may quote the file.
        ImportError: pypdf is not installed.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise PDFError("is encrypted; remove its password first, for example with qpdf --decrypt")
        text = _pages(reader, limits)
    except PDFError:
        raise
    except pypdf.errors.DependencyError as error:
        raise PDFError(
            "is encrypted with AES; pip install cryptography if it needs no password, or remove the password first, "
            "for example with qpdf --decrypt"
        ) from error
    except Exception as error:  # a hostile PDF may raise nearly anything inside the parser
        reason = str(error)[:120] or type(error).__name__
        raise PDFError(f"is not a PDF that can be read ({reason}); print it to a new PDF") from error
    if not text.strip():
        raise PDFError("holds no text; if it is a scan, run text recognition on it first")
    return text


def _pages(reader: Any, limits: PDFLimits) -> str:
    pages: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages):
        pages.append(page.extract_text())
        size += len(pages[-1])
        if number >= limits.pages:
            raise PDFError(f"holds more than {limits.pages:,} pages; split it into smaller files")
        if size > limits.characters:
            raise PDFError(f"holds more than {limits.characters:,} characters of text, too many for its size")
    return "\n\n".join(pages)


def main() -> None:
    """Read the limits and the file from standard input, and write the text or the error."""
    sys.path[:] = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not a reply
    limits = PDFLimits(**json.loads(sys.stdin.buffer.readline()))
    data = sys.stdin.buffer.read()
    _limit(limits)
    try:
        kind, text = READ, text_of_pdf(data, limits)
    except PDFError as error:
        kind, text = NOT_READ, str(error)
    out.write(kind + text.encode("utf-8", "surrogatepass"))
    out.close()


def _limit(limits: PDFLimits) -> None:
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)  # ends the process; the limit below only counts whole seconds
    used = math.ceil(sum(os.times()[:2]))
    wanted = (
        (resource.RLIMIT_CPU, used + math.ceil(limits.seconds) + 1),
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in wanted:
        with suppress(OSError, ValueError):  # a system may refuse, or already allow less
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
