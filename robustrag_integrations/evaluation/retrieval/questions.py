"""Questions with the clean retrieval of the measured retriever, as data that certificates can be made of."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.retrieval.bench import Bench, RetrievalError
from robustrag_integrations.evaluation.retrieval.spec import RetrievalSpec
from robustrag_integrations.evaluation.run.config import EvalConfig


def write_questions(config: EvalConfig, folder: str | Path, rule: str) -> list[dict[str, Any]]:
    """Write a file per data set and retriever.

    Args:
        config: as for `measure_retrieval`.
        rule: what one vote is; with `per_source` it decides what is retrieved.
        folder: where the files go, made when it is not there.

    Returns:
        What the configuration of an evaluation names as its `data`.

    Raises:
        RetrievalError: a corpus or retriever cannot be used, or a file cannot be written.
    """
    made = []
    for dataset, retriever, questions in Bench(config, config.retrieve or RetrievalSpec()).clean_questions(rule):
        name = re.sub(r"[^\w-]+", "-", f"{dataset.name}-{retriever}-by-{rule}")[:100]
        path = Path(folder) / f"{name}.jsonl"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_lines(questions, dataset.task), encoding="utf-8")
        except OSError as error:
            raise RetrievalError(f"cannot write {str(path)!r}: {error.strerror}") from error
        made.append({"source": str(path), "task": dataset.task})
    return made


def _lines(questions: Sequence[EvalQuestion], task: str) -> str:
    return "".join(json.dumps(_row(question, task), ensure_ascii=True) + "\n" for question in questions)


def _row(question: EvalQuestion, task: str) -> dict[str, Any]:
    """The question in the project's layout."""
    row: dict[str, Any] = {
        "id": question.id,
        "question": question.question,
        "answer": list(question.answers),
        "passages": [{"text": p.text, "source": p.source, "id": p.id} for p in question.passages],
        "incorrect": question.incorrect,
        "choices": list(question.choices) or None,
        "correct_choice": question.correct_choice,
        "poisoned": list(question.poisoned) or None,
        "poison_target": question.poison_target,
        "long": task == "long" or None,
    }
    return {key: value for key, value in row.items() if value is not None}
