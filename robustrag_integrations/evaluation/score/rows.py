"""One row of an evaluation: its schema, and the one function that begins a row.

A row is one question, answered by one setup under one attack (or none), with its scores and certificates. It is written
by `blank_row` and filled in by the runner, checked by `schema`, and read from a file by `run_file.read_run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from robustrag_integrations.evaluation.data.questions import EvalQuestion

ROW_SCHEMA = "robustrag/eval/1"
HEADER_SCHEMA = "robustrag/eval-run/1"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class AttackSpec:
    """An attack as it is run; `none` for the clean retrieval, the other fields then mean nothing.

    Attributes:
        name: of `attacks.ATTACKS`, or `module:function`.
        mode: `injection` pushes the last passages out, `modification` replaces passages.
        rank: the place of the first planted passage: a name, or a rank from 1, the top.
        corruption_size: k', how many passages are planted.
        seed: of what is random in it.
        repeat: number of times the planted text is repeated; None for the attack's own default.
    """

    name: str = "none"
    mode: str = "injection"
    rank: str | int = "first"
    corruption_size: int = 0
    seed: int = 0
    repeat: int | None = None

    def __str__(self) -> str:
        if self.name == "none":
            return "none"
        extras = [] if self.mode == "injection" else [self.mode]
        extras += [] if self.repeat is None else [f"x{self.repeat}"]
        extras += [] if self.seed == 0 else [f"seed {self.seed}"]
        place = "" if self.name == "adaptive" else f" @{self.rank}"  # it chooses its own ranks
        where = f"{self.name}{place} k'={self.corruption_size}"
        return f"{where} ({', '.join(extras)})" if extras else where


def blank_row(question: EvalQuestion, attack: AttackSpec, **about: Any) -> dict[str, Any]:
    """Return a row with everything known before the model is asked; its other fields are empty.

    Args:
        question: the question.
        attack: the attack.
        about: the row's `key`, `dataset`, `task`, `top_k`, `model`, `defense`, `settings`, `setup` and `metric`.
    """
    return {
        "schema": ROW_SCHEMA,
        **about,
        "question_id": question.id,
        "question": question.question,
        "answers": list(question.answers),
        "incorrect": question.incorrect,
        "target": None,
        "choices": list(question.choices),
        "attack": {f.name: getattr(attack, f.name) for f in fields(AttackSpec)},
        "passages": [],
        "answer": None,
        "scores": None,
        "certificates": [],
        "cost": None,
        "timing": None,
        "error": None,
    }


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
    given = row["attack"]
    if given["name"] == "none":
        return AttackSpec()
    known = {f.name: given[f.name] for f in fields(AttackSpec) if f.name in given}
    return AttackSpec(**{**known, "rank": str(given.get("rank", AttackSpec.rank))})
