"""Small data sets for runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from robustrag_integrations.evaluation.run.config import EvalConfig, read_config

CITIES = ("Strelsau", "Zenda", "Hentzau", "Tarlen", "Ruritz", "Modenstein")
LIGHT = "python:tests.evaluation.light:answer"


def question(number: int, passages: int = 4) -> dict[str, Any]:
    """A question that all passages but the last answer rightly."""
    right, wrong = CITIES[number % 6], CITIES[(number + 1) % 6]
    told = [f"The capital of land {number} is {right}. Source {i}." for i in range(passages - 1)]
    return {
        "id": f"q{number}",
        "question": f"What is the capital of land {number}?",
        "answer": right,
        "incorrect": wrong,
        "choices": [right, wrong, "Nowhere"],
        "correct_choice": 0,
        "passages": [{"text": text, "source": f"s{i}"} for i, text in enumerate([*told, "Nobody knows."])],
    }


def write_questions(folder: Path, count: int = 3, passages: int = 4) -> str:
    """A file of such questions."""
    path = folder / "lands.jsonl"
    path.write_text("".join(json.dumps(question(n, passages)) + "\n" for n in range(count)), encoding="utf-8")
    return str(path)


def write_long(folder: Path, passages: int = 3) -> str:
    """One request for a long answer."""
    path = folder / "lives.jsonl"
    row = question(0, passages) | {"question": "Tell me about land 0.", "long": True, "choices": []}
    del row["correct_choice"]
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return str(path)


def lands_config(folder: Path, *, count: int = 3, **given: Any) -> EvalConfig:
    """Choices and short answers about lands: two setups, an attack at two ranks, certificates."""
    standard = {
        "data": [write_questions(folder, count)],
        "models": [LIGHT],
        "tasks": ["multiple_choice", "short_answer"],
        "methods": ["vanilla", "voting"],
        "attacks": ["pia"],
        "ranks": ["first", "last"],
        "certify": [1],
        "top_k": [4],
    }
    return read_config({**standard, **given})


def untimed(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what two runs may differ in."""
    return {key: value for key, value in row.items() if key != "timing"}
