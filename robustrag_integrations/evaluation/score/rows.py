"""One row of an evaluation, and the file of a run, which is not trusted: JSON and nothing else, each row checked.

A row is one question, answered by one setup under one attack (or none), with its scores and certificates. It is begun
by `blank_row`, filled in by the runner, and read again by `read_run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.json_values import restored
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.evaluation.data.datasets import BadRow, json_lines
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.score.scoring import Scores

ROW_SCHEMA = "robustrag/eval/3"
HEADER_SCHEMA = "robustrag/eval-run/3"
LARGEST = 1e15  # a larger number is no count, score or time of ours, and formatting it may fail
_LONGEST_LINE = 64 * 1024 * 1024  # bytes

Row = Mapping[str, Any]


@dataclass(frozen=True)
class AttackSpec:
    """An attack as it is run; `none` for the clean retrieval. A rank is a name, or a number from 1, the top."""

    name: str = "none"
    rank: str = "first"
    corruption_size: int = 0
    seed: int = 0
    repeat: int | None = None

    def __str__(self) -> str:
        if self.name == "none":
            return "none"
        extras = [] if self.repeat is None else [f"x{self.repeat}"]
        extras += [] if self.seed == 0 else [f"seed {self.seed}"]
        where = f"{self.name} @{self.rank} k'={self.corruption_size}"
        return f"{where} ({', '.join(extras)})" if extras else where


@dataclass(frozen=True)
class _Passage:
    text: str
    source: str | None = None
    planted: bool = False


@dataclass(frozen=True)
class _Cost:
    model_calls: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class _Timing:
    seconds: float
    cached_calls: int = 0
    first: bool = False


@dataclass(frozen=True)
class _Error:
    type: str
    message: str


@dataclass(frozen=True)
class _Shape:
    """The parts of every row; a row without an error has all of the last four."""

    key: str
    dataset: str
    task: str
    question_id: str
    question: str
    model: str
    method: str
    setup: str
    settings: Mapping[str, Any]
    attack: AttackSpec
    answers: tuple[str, ...]
    passages: tuple[_Passage, ...]
    top_k: int | None = None
    incorrect: str | None = None
    target: str | None = None
    metric: str | None = None
    certificates: tuple[Certification, ...] = ()
    error: _Error | None = None
    answer: RobustAnswer | None = None
    scores: Scores | None = None
    cost: _Cost | None = None
    timing: _Timing | None = None
    trusted_passages: tuple[_Passage, ...] = ()


def blank_row(question: EvalQuestion, attack: AttackSpec, **about: Any) -> dict[str, Any]:
    """Return a row with everything known before the model is asked; `about` has what neither argument says."""
    return {
        "schema": ROW_SCHEMA,
        **about,
        "question_id": question.id,
        "question": question.question,
        "answers": list(question.answers),
        "incorrect": question.incorrect,
        "target": None,
        "attack": {f.name: getattr(attack, f.name) for f in fields(AttackSpec)},
        "passages": [],
        "trusted_passages": [],
        "answer": None,
        "scores": None,
        "certificates": [],
        "cost": None,
        "timing": None,
        "error": None,
    }


def misfit(row: Any) -> str | None:
    """Describe what is wrong with a row of a file; None when it can be summed up and drawn."""
    if not isinstance(row, Mapping):
        return f"must be an object, got {type(row).__name__}"
    if row.get("schema") != ROW_SCHEMA:
        return f"its schema is {printable(repr(row.get('schema'))[:80], 40)}, not {ROW_SCHEMA!r}"
    try:
        if not _is_bounded(row):
            return f"holds a number beyond {LARGEST:g}"
        shape = restored(_Shape, row)
        if "name" not in row["attack"]:
            return "there is no 'attack.name'"
        if "error" not in row:
            return "there is no 'error'"
    except ValueError as error:
        return printable(str(error), 200)
    except RecursionError:
        return "nested too deeply"
    parts = {"answer": shape.answer, "scores": shape.scores, "cost": shape.cost, "timing": shape.timing}
    missing = [name for name, part in parts.items() if part is None]
    return f"there is no {missing[0]!r}" if missing and shape.error is None else None


def _is_bounded(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_bounded, value.values()))
    if isinstance(value, list):
        return all(map(_is_bounded, value))
    return not isinstance(value, (int, float)) or abs(value) <= LARGEST


def latest_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the last row of each key, but never an error in place of an answer."""
    found: dict[str, Row] = {}
    for row in rows:
        key = str(row["key"])
        if row.get("error") is None or key not in found or found[key].get("error") is not None:
            found[key] = row
    return list(found.values())


def attack_of_row(row: Row) -> AttackSpec:
    """The attack of a row."""
    return AttackSpec() if row["attack"]["name"] == "none" else restored(AttackSpec, row["attack"])


class NotARunError(RobustRAGError):
    """A file that is not a run of `robustrag eval`; the message says what is wrong, and what to do."""


@dataclass(frozen=True)
class Run:
    """A run's file: of two rows with one key the later one that did not fail; `bad` are lines that are not rows."""

    name: str
    header: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    bad: tuple[BadRow, ...] = ()


def read_run(path: str | Path) -> Run:
    """Read a run; lines that are not rows are reported and left out."""
    header: Mapping[str, Any] = {}
    rows: list[Row] = []
    bad: list[BadRow] = []
    try:
        with Path(path).open("rb") as file:
            for found in json_lines(iter(lambda: file.readline(_LONGEST_LINE), b"")):  # a longer one is no JSON
                if isinstance(found, BadRow):
                    bad.append(found)
                elif isinstance(found.value, dict) and found.value.get("schema") == HEADER_SCHEMA:
                    header = found.value
                elif problem := misfit(found.value):
                    bad.append(BadRow(found.line, problem))
                else:
                    rows.append(found.value)
    except OSError as error:
        raise NotARunError(f"cannot read {str(path)!r}: {error.strerror}") from error
    if not rows and not header:
        first = str(bad[0]) if bad else "there is nothing in it"
        raise NotARunError(f"{str(path)!r} is not a run ({first}); give the file that `robustrag eval` wrote")
    return Run(Path(path).name, header, tuple(latest_rows(rows)), tuple(bad))
