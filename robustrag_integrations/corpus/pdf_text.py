"""The text of one PDF. Runs in a process of its own (`pdf_worker`), which may be killed at any moment."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.corpus.documents import valid_text
from robustrag_integrations.display import printable


class PDFError(ValueError):
    """A PDF could not be read; the message says why and follows the file's name."""


@dataclass(frozen=True)
class PDFLimits:
    """What reading one PDF may take.

    Attributes:
        seconds: of processor time, and several times as much by the clock.
        characters: of text.
        pages: how many there may be.
        memory: bytes of memory, on systems that can limit it.
    """

    seconds: float
    characters: int
    pages: int
    memory: int


def text_of_pdf(data: bytes, limits: PDFLimits) -> str:
    """The text of all pages, with a blank line between two.

    Raises:
        PDFError: it is not a PDF, is encrypted, holds no text, or is over a limit.
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
        reason = printable(str(error), 120) or type(error).__name__
        raise PDFError(f"is not a PDF that can be read ({reason}); print it to a new PDF") from error
    if not text.strip():
        raise PDFError("holds no text; if it is a scan, run text recognition on it first")
    return text


def _pages(reader: Any, limits: PDFLimits) -> str:
    pages: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages):
        pages.append(valid_text(page.extract_text()))
        size += len(pages[-1])
        if number >= limits.pages:
            raise PDFError(f"holds more than {limits.pages:,} pages; split it into smaller files")
        if size > limits.characters:
            raise PDFError(f"holds more than {limits.characters:,} characters of text, too many for its size")
    return "\n\n".join(pages)
