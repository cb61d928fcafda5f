"""One row of a measurement: one question, attacked in one way, through one retriever. Its schema, and reading a file.

A row holds, for each number m of planted documents, the passages that were retrieved (by id) and per rule how many
votes there were and how many the attacker owned. `m` = 0 is the clean retrieval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from robustrag_integrations.evaluation.run.journal import canonical
from robustrag_integrations.evaluation.score.run_file import file_lines, json_object
from robustrag_integrations.evaluation.score.shapes import Each, Maybe, Null, misfit

ROW_SCHEMA = "robustrag/retrieval/1"
HEADER_SCHEMA = "robustrag/retrieval-run/1"
ENDING = ".retrieval.jsonl"

Row = Mapping[str, Any]

_LONGEST_HEADER = 1_000_000  # bytes
MOST = 1_000_000  # passages, votes or documents in one retrieval

_MEASURED = {
    "m": int,
    "planted_passages": int,
    "found": int,
    "votes": [{"rule": str, "groups": int, "owned": int, "displaced": Null(int)}],
    "passages": [{"id": str, "planted": bool}],
}
ROW = {
    "key": str,
    "dataset": str,
    "task": str,
    "question_id": str,
    "question": str,
    "retriever": str,
    "attack": str,
    "top_k": int,
    "per_source": Maybe(int),
    "sites": int,
    "corpus_size": int,
    "clean": Null(Each(str)),
    "measured": [_MEASURED],
    "error": Null({"type": str, "message": str}),
}


def clean_digest(question: str, passages: Iterable[tuple[str, str | None]]) -> str:
    """What a clean retrieval is known by: the question with texts and sources, in order."""
    return hashlib.sha256(canonical([question, [list(p) for p in passages]]).encode()).hexdigest()


def misfit_in_row(row: Any) -> str | None:
    """What is wrong with a row; None if nothing is."""
    if not isinstance(row, dict) or row.get("schema") != ROW_SCHEMA:
        return f"its schema is not {ROW_SCHEMA!r}"
    return misfit(row, ROW) or next(filter(None, map(_misfit_in_counts, row["measured"])), None)


def _misfit_in_counts(part: Mapping[str, Any]) -> str | None:
    counts = [part[name] for name in ("m", "planted_passages", "found")]
    counts += [vote[name] or 0 for vote in part["votes"] for name in ("owned", "groups", "displaced")]
    if not all(0 <= count <= MOST for count in counts):
        return f"a count is not from 0 to {MOST:,}"
    return next(
        (f"{v['owned']} of {v['groups']} votes are owned" for v in part["votes"] if v["owned"] > v["groups"]), None
    )


def retrieval_file(output: str | Path) -> Path:
    """The file of a measurement, beside that of the run that it belongs to."""
    path = Path(output)
    return path if path.name.endswith(ENDING) else path.with_name(path.name.removesuffix(".jsonl") + ENDING)


def is_retrieval_file(path: str | Path) -> bool:
    """Whether a file begins like a measurement."""
    try:
        with Path(path).open("rb") as file:
            first = json_object(file.readline(_LONGEST_HEADER))
    except OSError:
        return False
    return isinstance(first, dict) and first.get("schema") == HEADER_SCHEMA


def read_retrieval(path: str | Path) -> list[Row]:
    """The rows of a measurement's file; lines that are not rows are left out.

    Raises:
        NotARunError: the file cannot be read.
    """
    found = (json_object(line) for _, line, _ in file_lines(Path(path)))
    return latest(row for row in found if isinstance(row, dict) and misfit_in_row(row) is None)


def latest(rows: Iterable[Row]) -> list[Row]:
    """Of rows with the same key the last one, but an error never takes the place of a measurement."""
    found: dict[str, Row] = {}
    for row in rows:
        key = str(row["key"])
        if row["error"] is None or key not in found or found[key]["error"] is not None:
            found[key] = row
    return list(found.values())
