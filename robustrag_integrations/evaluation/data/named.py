"""Data sets that other packages add, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from robustrag_integrations.entry_points import Table
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.evaluation.data.files import BadRow, DatasetError, RawRow, read_rows
from robustrag_integrations.redaction import in_one_line

DEMO = "demo"

Rows = Callable[[], "str | os.PathLike[str] | Iterable[Any]"]


def _rows(name: str, found: object) -> Rows:
    """What another package's entry point names.

    Raises:
        TypeError: it is no function.
        ValueError: the name is that of the set that ships.
    """
    if name == DEMO:
        raise ValueError("the name is taken by what ships with robustrag")
    if not callable(found):
        raise TypeError(f"must be a function that returns rows or a file's path, got {type(found).__name__}")
    rows: Rows = found
    return rows


DATASETS: Table[Rows] = Table("robustrag.datasets", {}, _rows)
"""Functions without arguments that return a file's path, or rows as a file holds them (`questions.question_of`)."""


def rows_of(source: str) -> Iterable[RawRow | BadRow]:
    """The rows of a file, or of a data set of another package where there is no such file.

    Raises:
        DatasetError: it cannot be read.
    """
    if os.path.exists(source) or source not in DATASETS:
        return read_rows(source)
    try:
        found = DATASETS[source]()
    except INTERRUPTS:
        raise
    except BaseException as error:
        raise _broken(source, error) from error
    return read_rows(os.fspath(found)) if isinstance(found, (str, os.PathLike)) else _numbered(source, found)


def _numbered(source: str, rows: Iterable[Any]) -> Iterator[RawRow]:
    try:
        for number, row in enumerate(rows, 1):
            yield RawRow(number, row, "item")
    except INTERRUPTS:
        raise
    except BaseException as error:
        raise _broken(source, error) from error


def _broken(source: str, error: BaseException) -> DatasetError:
    return DatasetError(f"{source}: the package {DATASETS.package_of(source)} cannot read it: {in_one_line(error)}")
