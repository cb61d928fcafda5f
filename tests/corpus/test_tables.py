"""CSV and Excel files: rows with their headings, what nobody sees, and files made to harm the parser."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.corpus import CorpusError, read_documents

openpyxl = pytest.importorskip("openpyxl", reason="the extra cli is not installed")

ROWS = [["Our wards"], ["Ward", "Sister", "Beds"], ["North", "Ida Foss", 12], [], ["South", None, 8]]
LINES = ["Our wards", "Ward: North; Sister: Ida Foss; Beds: 12", "Ward: South; Beds: 8"]


def workbook(path: Path, rows: list[list[Any]], change: Callable[[Any], object] = lambda book: None) -> str:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    change(book)
    book.save(str(path))
    return str(path)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_csv_file_is_read_row_by_row_with_its_headings(tmp_path: Path, delimiter: str) -> None:
    rows = [delimiter.join("" if c is None else f'"{c}"' for c in row) for row in ROWS[1:]]
    (tmp_path / "a.csv").write_text("\r\n".join(rows), encoding="utf-8-sig")
    [document] = read_documents([str(tmp_path)]).documents
    assert (document.text.splitlines(), document.origin) == (LINES[1:], "a.csv")


def test_cells_of_a_csv_file_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('Name,Note\nAda,"one, ""two""\nthree"\nBen,x,y,z\nalone\n')
    [document] = read_documents([str(tmp_path)]).documents
    assert document.text.splitlines() == ['Name: Ada; Note: one, "two" three', "Name: Ben; Note: x; y; z", "alone"]


def test_a_workbook_is_one_source_with_its_sheets_and_values_as_they_are_shown(tmp_path: Path) -> None:
    def change(book: Any) -> None:
        fees = book.create_sheet("Fees")
        day = datetime.datetime(2026, 4, 1)
        for row in [
            ["Item", "Fee", "VAT", "From", "At"],
            ["Letter", 20.5, 0.2, day, datetime.time(8, 30)],
            [None, "=1+1"],
        ]:
            fees.append(row)
        fees["B2"].number_format, fees["C2"].number_format = "[$£-809]#,##0.00", "0%"
        fees.merge_cells("A2:A3")
        fees["B3"] = 9

    workbook(tmp_path / "a.xlsx", ROWS, change)
    [document] = read_documents([str(tmp_path)]).documents
    fees = ["Item: Letter; Fee: £20.50; VAT: 20%; From: 2026-04-01; At: 08:30:00", "Item: Letter; Fee: 9"]
    assert document.text.split("\n\n") == ["## Sheet", "\n".join(LINES), "## Fees", "\n".join(fees)]
    assert document.origin == "a.xlsx"


@pytest.mark.parametrize(
    "hide",
    [
        lambda book: setattr(book.active.row_dimensions[3], "hidden", True),
        lambda book: setattr(book.active.column_dimensions["B"], "hidden", True),
        lambda book: setattr(book.active["B3"], "number_format", ";;;"),
        lambda book: setattr(book.active["B3"], "font", openpyxl.styles.Font(color="FFFFFFFF")),
        lambda book: (setattr(book.active, "sheet_state", "hidden"), book.create_sheet("b").append(["seen", "x"])),
    ],
)
def test_hidden_cells_rows_columns_and_sheets_are_left_out_and_said(tmp_path: Path, hide: Any) -> None:
    path = workbook(tmp_path / "a.xlsx", ROWS, hide)
    found = read_documents([path])
    assert "Ida Foss" not in found.documents[0].text
    assert "1 piece of hidden text" in found.skipped[0].reason
    assert "Ida Foss" in read_documents([path], hidden_text=True).documents[0].text


def test_a_formula_that_was_never_calculated_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="holds no values that anybody can see; formulas"):
        read_documents([workbook(tmp_path / "a.xlsx", [["=1+1", "=2+2"]])])


def test_hostile_tables_cost_themselves(tmp_path: Path) -> None:
    workbook(tmp_path / "a.xlsx", [["A", "B"], ["x", "y"]])
    with zipfile.ZipFile(tmp_path / "a.xlsx") as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    hostile = {
        "zeros": b"<!--" + b"0" * 300_000_000 + b"-->",
        "laughs": b"<!DOCTYPE x [<!ENTITY a '%s'>%s]><worksheet>&h;</worksheet>"
        % (b"a" * 1000, b"".join(b"<!ENTITY %c '%s'>" % (c, b"&%c;" % (c - 1) * 50) for c in b"bcdefgh")),
        "outside": b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/hostname'>]><worksheet><sheetData><row><c t='str'><v>"
        b"&a;</v></c></row></sheetData></worksheet>",
        "wide": parts[sheet].replace(
            b"</sheetData>", b"</sheetData><mergeCells><mergeCell ref='A1:XFD1048576'/></mergeCells>"
        ),
        "deep": parts[sheet].replace(b"<sheetData>", b"<x>" * 100_000 + b"<sheetData>"),
    }
    for name, data in hostile.items():
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
            for part, content in parts.items():
                package.writestr(part, data if part == sheet else content)
        (tmp_path / f"{name}.xlsx").write_bytes(file.getvalue())
    (tmp_path / "old.xlsx").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(1000))
    (tmp_path / "heading.csv").write_bytes(b"a," + b"b" * 100_000 + b"\n" + b"1,2\n" * 10_000)
    (tmp_path / "zz.txt").write_text("fine")
    found = read_documents([str(tmp_path)])
    assert {d.id for d in found.documents} >= {"a.xlsx", "zz.txt"}
    reasons = {Path(s.path).name: s.reason for s in found.skipped}
    assert "unpacks to more than a file of its size may" in reasons["zeros.xlsx"]
    assert "is encrypted, or an old .xls file" in reasons["old.xlsx"]
    assert "too many for its size" in reasons["heading.csv"]
    assert {"laughs.xlsx", "deep.xlsx"} <= set(reasons)
    hostname = Path("/etc/hostname")
    assert all(hostname.read_text().strip() not in d.text for d in found.documents if hostname.exists())
