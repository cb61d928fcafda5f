"""PDF and Word files for tests."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import EncryptionMethod

logging.getLogger("fontTools").setLevel(logging.ERROR)


def write_pdf(path: Path, *pages: str, password: str | None = None) -> Path:
    """A PDF with a page per text; encrypted when there is a password."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=11)
    for text in pages:
        pdf.add_page()
        pdf.multi_cell(0, 6, text)
    if password is not None:
        pdf.set_encryption(owner_password="owner", user_password=password, encryption_method=EncryptionMethod.RC4)
    pdf.output(str(path))
    return path


def write_docx(path: Path, *paragraphs: str, table: Sequence[Sequence[str]] = ()) -> Path:
    """A Word file with a paragraph per text, and a table behind them."""
    import docx

    document = docx.Document()
    for text in paragraphs:
        document.add_paragraph(text)
    if table:
        drawn = document.add_table(rows=0, cols=len(table[0]))
        for row in table:
            for cell, text in zip(drawn.add_row().cells, row, strict=True):
                cell.text = text
    document.save(str(path))
    return path
