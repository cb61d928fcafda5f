"""One row of an evaluation: its schema, and the one function that begins a row.

A row is one question, answered by one setup under one attack (or none), with its scores and certificates. It is written
by `blank_row` and filled in by the runner, checked by `misfit_in_row`, and read from a file by `run_file.read_run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from robustrag_integrations.answer import STATUSES
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.score.shapes import LARGEST, Each, Maybe, Null, OneOf, Within, misfit

ROW_SCHEMA = "robustrag/eval/1"
HEADER_SCHEMA = "robustrag/eval-run/1"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class AttackSpec:
    """An attack as it is run; `none` for the clean retrieval, the other fields then mean nothing.

    Attributes:
        name: of `attacks.ATTACKS`, or `module:function`.
        mode: `injection` pushes the last passages out, `modification` replaces passages.
        rank: where the first planted passage stands: a name, or a rank from 1, the top; `1+10` for several.
        corruption_size: k', how many passages are planted.
        seed: of what is random in it.
        repeat: how often the planted text is repeated; None for the attack's own default.
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


def header_row(
    config: Mapping[str, Any], versions: Mapping[str, str], planned: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The first line of a run's file: what is run, with which versions, and how many rows that makes."""
    return {"schema": HEADER_SCHEMA, "config": dict(config), "versions": dict(versions), "planned": list(planned)}


def blank_row(
    question: EvalQuestion,
    attack: AttackSpec,
    *,
    key: str,
    dataset: str,
    task: str,
    top_k: int | None,
    model: str,
    defense: str,
    settings: Mapping[str, Any],
    setup: str,
    metric: str | None,
) -> dict[str, Any]:
    """A row with everything that is known before the model is asked; the rest of its fields are empty."""
    return {
        "schema": ROW_SCHEMA,
        "key": key,
        "dataset": dataset,
        "task": task,
        "question_id": question.id,
        "question": question.question,
        "answers": list(question.answers),
        "incorrect": question.incorrect,
        "target": None,
        "choices": list(question.choices),
        "top_k": top_k,
        "model": model,
        "defense": defense,
        "settings": dict(settings),
        "setup": setup,
        "metric": metric,
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
    """Of rows with the same key the last one, but an error never takes the place of an answer."""
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


_MAYBE_TEXT, _MAYBE_NUMBER = Maybe(str), Maybe(float)

_GROUP = {
    "index": int,
    "passage_ids": [str],
    "origins": [str],
    "status": OneOf(STATUSES),
    "response": Null(str),
    "keywords": [str],
    "choice": Null(int),
    "margin": Null(float),
    "error": Null(str),
    "truncated": bool,
    "positions": [int],
    "words": [str],
    "note": Maybe(Null(str)),
}
_EVIDENCE = {
    "counts": Maybe(Each(float)),
    "threshold": _MAYBE_NUMBER,
    "rule": _MAYBE_TEXT,
    "retained": Maybe([str]),
    "shown": Maybe([str]),
    "always_retained": Maybe([str]),
    "distinct_keywords": _MAYBE_NUMBER,
    "answering": _MAYBE_NUMBER,
    "corrupted_groups": _MAYBE_NUMBER,
    "untouched_groups": _MAYBE_NUMBER,
    "gaps": Maybe([float]),
    "indecisive_steps": _MAYBE_NUMBER,
    "tokens": Maybe([int]),
    "words": Maybe([str]),
    "rivals": Maybe([str]),
    "fallback_steps": Maybe([int]),
    "tree": Maybe([{"prefix": [int], "gap": float, "kind": str, "tokens": [int], "words": [str]}]),
}
DETERMINISM = {
    "model": OneOf(("deterministic", "samples", "unknown")),
    "why": str,
    "scope": OneOf(("every_run", "this_run", "final_prompt", "nothing")),
    "promise": str,
}
_USAGE = dict.fromkeys(("prompt", "cached", "completion", "reasoning"), _MAYBE_NUMBER)
_ANSWER = {
    "text": str,
    "radius": int,
    "abstained": bool,
    "query": str,
    "defense": str,
    "warnings": [str],
    "settings": {"eta": _MAYBE_NUMBER},
    "evidence": _EVIDENCE,
    "margin_unit": str,
    "model_calls": int,
    "determinism": Maybe(DETERMINISM),
    "spending": Maybe({"calls": int, "rounds": int, "silent": int, "total": _USAGE, "told": _USAGE, "shared": _USAGE}),
    "groups": [_GROUP],
    "alternatives": Maybe([{"text": str, "support": int, "groups": [int]}]),
}
_CERTIFICATE = {
    "tau": Within(0, 100),
    "certified": bool,
    "corruption_size": int,
    "attack": str,
    "query": str,
    "references": [str],
    "metric": str,
    "defense": str,
    "responses": [{"text": Null(str), "score": float, "cause": str}],
    "complete": bool,
    "stopped": Null(str),
    "estimate": Null({"value": Within(0, 100), "sample_size": int}),
    "cases": int,
    "model_calls": int,
    "warnings": [str],
    "evidence": _EVIDENCE,
}
ROW = {
    "key": str,
    "dataset": str,
    "task": str,
    "question_id": str,
    "question": str,
    "answers": [str],
    "incorrect": _MAYBE_TEXT,
    "target": _MAYBE_TEXT,
    "top_k": Maybe(int),
    "model": str,
    "defense": str,
    "settings": dict,
    "setup": str,
    "metric": _MAYBE_TEXT,
    "attack": {
        "name": str,
        "mode": _MAYBE_TEXT,
        "rank": Maybe((str, int)),
        "corruption_size": Maybe(int),
        "seed": Maybe(int),
        "repeat": Maybe(int),
    },
    "passages": [{"id": _MAYBE_TEXT, "text": str, "source": _MAYBE_TEXT, "planted": Maybe(bool)}],
    "certificates": Maybe([_CERTIFICATE]),
    "further_runs": Maybe([{"text": Null(str), "correct": Null(float), "radius": int}]),
    "error": Maybe({"type": str, "message": str}),
}
ATTACKED = {"rank": (str, int), "corruption_size": int}
ANSWERED = {
    "answer": _ANSWER,
    "scores": {
        "correct": Null(Within(0, 1)),
        "hijacked": Null(bool),
        "both": bool,
        "abstained": bool,
        "judge": Null(Within(0, 100)),
        "unreadable": Maybe(bool),
        "failure": _MAYBE_TEXT,
        "found": Maybe(Within(0, 1)),
    },
    "cost": {
        "model_calls": _MAYBE_NUMBER,
        "rounds": _MAYBE_NUMBER,
        "prompt_tokens": _MAYBE_NUMBER,
        "cached_tokens": _MAYBE_NUMBER,
        "completion_tokens": _MAYBE_NUMBER,
        "reasoning_tokens": _MAYBE_NUMBER,
    },
    "timing": {
        "seconds": Within(0, LARGEST),
        "cached_calls": _MAYBE_NUMBER,
        "cached_tokens": Maybe(_USAGE),
        "first": Maybe(bool),
    },
}


def misfit_in_row(row: Any) -> str | None:
    """What is wrong with a row; None when it has everything that is drawn."""
    if problem := misfit(row, ROW):
        return problem
    if row["attack"]["name"] != "none" and (problem := misfit(row["attack"], ATTACKED, "attack")):
        return problem
    if row.get("error") is not None:
        return None
    if row["task"] != "long" and any(c["tau"] > 1 for c in row.get("certificates") or ()):
        return "certificates.tau must be at most 1"
    return misfit(row, ANSWERED)
