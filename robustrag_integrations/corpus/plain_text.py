"""Reads one text, Markdown or JSONL file (`extract` runs it)."""

from __future__ import annotations

import json
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.corpus.limits import FileError, FileLimits
from robustrag_integrations.corpus.markup import without_hidden, without_invisible

MOST_ROWS = 500_000
LONGEST_ROW = 8 << 20  # characters of one row, which may take twenty times the memory once parsed


def text_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return a text as it is, in which nothing is hidden."""
    if b"\x00" in data:
        raise FileError("is not text: it holds zero bytes (a binary file, or UTF-16?)")
    try:
        return data.decode("utf-8-sig"), 0
    except UnicodeDecodeError as error:
        fix = "convert it, for example with iconv -f latin1 -t utf-8"
        raise FileError(f"is not UTF-8 text (byte {error.start:,}); {fix}") from error


def markdown_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return a Markdown text, and how many hidden pieces are left out; with `hidden` they are read."""
    text, _ = text_of(data, limits)
    return (text, 0) if hidden else without_hidden(text)


def rows_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the rows of a JSONL file, and how many hidden pieces are left out of their texts.

    They are a JSON list of pairs, in ASCII: a line's number, and its row or the reason why it is not read.
    """
    lines = text_of(data, limits)[0].split("\n", MOST_ROWS)
    rest = lines.pop() if len(lines) > MOST_ROWS else ""
    rows: list[tuple[int, dict[str, Any] | str]] = []
    left_out = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _row(line)
        except FileError as error:
            rows.append((number, str(error)))
            continue
        if not hidden:
            text, invisible = without_invisible(row["text"])
            row["text"], unseen = without_hidden(text)
            left_out += invisible + unseen
        rows.append((number, row))
    if rest.strip():
        rows.append((MOST_ROWS + 1, f"more than {MOST_ROWS:,} rows; this one and those behind it are not read"))
    return json.dumps(rows), left_out


def _row(line: str) -> dict[str, Any]:
    if len(line) > LONGEST_ROW:
        raise FileError(f"longer than {LONGEST_ROW:,} characters; split it into several rows")
    try:
        row = json.loads(line)
    except RecursionError:
        raise FileError("nested too deeply") from None
    except ValueError as error:
        raise FileError(f"not JSON ({printable(str(error), 120)})") from error
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise FileError('needs an object with "text", like {"text": "...", "source": "..."}')
    if wrong := [key for key in ("source", "title") if not isinstance(row.get(key), (str, type(None)))]:
        raise FileError(f'"{wrong[0]}" must be a string')
    title, text = valid_text(row.pop("title", None) or ""), valid_text(row["text"])
    if title.strip() and title.casefold() not in text[:300].casefold():
        text = f"{title}\n{text}"
    plain = {valid_text(name): value for name, value in row.items() if isinstance(value, str | int | float)}
    return {name: valid_text(value) if isinstance(value, str) else value for name, value in plain.items()} | {
        "text": text
    }
