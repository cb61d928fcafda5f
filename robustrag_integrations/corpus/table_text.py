"""Reads one CSV or Excel file as lines, each a row with its headings: "Name: Ada; Room: 3" (`extract` runs it).

The first row with two filled cells holds the headings; a row with one filled cell is a title.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from robustrag_integrations.corpus.docx_text import check_package
from robustrag_integrations.corpus.limits import FileError, FileLimits
from robustrag_integrations.corpus.plain_text import text_of

_DELIMITERS = ",;\t|"
_HIDDEN_FORMAT = ";;;"
_WHITE = "FFFFFFFF"


def csv_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return a CSV file's rows; what stands most often in its first line is between the cells."""
    text, _ = text_of(data, limits)
    first = text.lstrip().partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=first.count))
    return "\n".join(_lines(rows, limits)), 0


def xlsx_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the rows of all sheets, formulas as they were last calculated, and how many hidden things are left out.

    These are sheets, rows, columns and cells in white on no colour or in the format ";;;"; with `hidden` they are read.
    """
    import openpyxl

    check_package(data, limits, "xl/", "an Excel file", ".xlsx")
    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    texts: list[str] = []
    left_out = 0
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible" and not hidden:
            left_out += 1
            continue
        table = _Sheet(sheet, hidden)
        lines = "\n".join(_lines(table.rows(), limits))
        left_out += table.left_out
        limits.check(sum(map(len, texts)) + len(lines))
        if lines:
            texts.append(f"## {sheet.title}\n\n{lines}" if len(book.worksheets) > 1 else lines)
    if not texts:
        raise FileError("holds no values that anybody can see; formulas count as they were last calculated and saved")
    return "\n\n".join(texts), left_out


def _lines(rows: Iterable[Sequence[str]], limits: FileLimits) -> Iterator[str]:
    headings: Sequence[str] = ()
    size = 0
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        filled = [(n, cell) for n, cell in enumerate(cells) if cell]
        if not headings and len(filled) > 1:
            headings = cells
        elif filled:
            named = [(headings[n] if n < len(headings) and len(filled) > 1 else "", cell) for n, cell in filled]
            line = "; ".join(f"{heading}: {cell}" if heading else cell for heading, cell in named)
            size += len(line) + 1
            limits.check(size)
            yield line
    if headings and not size:
        yield "; ".join(filter(None, headings))


class _Sheet:
    """The rows of a sheet, and how many hidden things were left out of it."""

    def __init__(self, sheet: Any, hidden: bool) -> None:
        self.left_out = 0
        self._sheet, self._hidden = sheet, hidden
        self._merged: dict[tuple[int, int], Any] = {}  # the value of a merged cell, for the rows below its first
        for cells in sheet.merged_cells.ranges:
            for row in range(cells.min_row + 1, min(cells.max_row, sheet.max_row) + 1):
                self._merged[row, cells.min_col] = sheet.cell(cells.min_row, cells.min_col)

    def rows(self) -> Iterator[list[str]]:
        """Yield the texts of each row's cells."""
        columns = self._sheet.column_dimensions.values()
        unseen = {n for column in columns if column.hidden for n in range(column.min or 0, (column.max or 0) + 1)}
        unseen = set() if self._hidden else unseen
        self.left_out += len(unseen & set(range(1, self._sheet.max_column + 1)))
        for number, row in enumerate(self._sheet.iter_rows(), start=1):
            if self._sheet.row_dimensions[number].hidden and not self._hidden:
                self.left_out += any(cell.value is not None for cell in row)
                continue
            yield ["" if cell.column in unseen else self._text(cell) for cell in row]

    def _text(self, cell: Any) -> str:
        cell = self._merged.get((cell.row, cell.column), cell)
        if cell.value is None or cell.data_type == "e":
            return ""
        if not self._hidden and _is_hidden(cell):
            self.left_out += 1
            return ""
        return _shown(cell.value, cell.number_format)


def _is_hidden(cell: Any) -> bool:
    colour = cell.font.color
    is_white = colour is not None and colour.type == "rgb" and colour.rgb == _WHITE and not cell.fill.fill_type
    return is_white or cell.number_format == _HIDDEN_FORMAT


def _shown(value: Any, style: str) -> str:
    """Write a value as the sheet shows it: dates without an empty time, percents, decimals and the currency."""
    if isinstance(value, datetime.datetime):
        return str(value.date() if value.time() == datetime.time() else value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    style = re.sub(r"\[\$([^\]-]*)[^\]]*\]", r"\1", style).partition(";")[0]
    if decimals := re.search(r"0(?:\.(0+))?(%?)", style):
        value = value * 100 if decimals[2] else value
        text = f"{value:.{len(decimals[1] or '')}f}{decimals[2]}"
    else:
        text = f"{value:.15g}"
    currency = re.search(r"[€£$¥]", style)
    return f"{currency[0]}{text}" if currency else text
