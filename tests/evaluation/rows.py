"""Rows of a run, made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PIA = {"name": "pia", "rank": "first", "corruption_size": 1, "seed": 0}


def row(number: int, **change: Any) -> dict[str, Any]:
    """A clean row of keyword aggregation with a right answer, changed in parts."""
    made: dict[str, Any] = {
        "schema": "robustrag/eval/3",
        "key": f"{change.get('setup', 'keyword')} {change.get('attack')} {number}",
        "dataset": "demo",
        "task": "short_answer",
        "question_id": str(number),
        "question": "Who?",
        "answers": ["Anna"],
        "incorrect": "Bo",
        "choices": [],
        "top_k": 10,
        "model": "bundled",
        "method": "keyword",
        "settings": {"alpha": 0.3},
        "setup": "keyword",
        "attack": {"name": "none"},
        "passages": [],
        "answer": {
            "text": "Anna",
            "radius": 2,
            "abstained": False,
            "query": "Who?",
            "method": "keyword",
            "warnings": [],
            "settings": {},
            "evidence": {},
            "model_calls": 11,
            "sources": [],
        },
        "scores": {"correct": 1.0, "hijacked": False, "both": False, "abstained": False, "judge": None},
        "certificates": [],
        "cost": {"model_calls": 11, "prompt_tokens": 100, "completion_tokens": 10},
        "timing": {"seconds": 2.0},
        "error": None,
    }
    for name, value in change.items():
        made[name] = {**made[name], **value} if name in ("scores", "timing", "answer", "cost") and value else value
    return made


def failed(number: int, message: str = "timed out", **change: Any) -> dict[str, Any]:
    """A row that failed."""
    nothing = {"answer": None, "scores": None, "cost": None, "timing": None}
    return row(number, error={"type": "ModelError", "message": message}, **{**nothing, **change})


def certificate(tau: float, size: int = 1, attack: str = "injection", **change: Any) -> dict[str, Any]:
    """A decided certificate."""
    about = {"query": "Who?", "references": ["Anna"], "metric": "contains", "method": "keyword"}
    made: dict[str, Any] = {"responses": [], "complete": True, "stopped": None, "warnings": [], "evidence": {}}
    made |= {"cases": 1, "model_calls": 0}
    score = {"attack": attack, "corruption_size": size, "tau": tau, "certified": True}
    return {**about, **made, **score, **change}


def rows_in(path: str | Path) -> list[dict[str, Any]]:
    """The whole lines of a file of rows."""
    data = Path(path).read_bytes()
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
