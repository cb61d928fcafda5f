"""Counts what each method asks of a model: `python -m benchmarks.costs` prints the table of docs/guide/costs.md.

Counted, not timed: the bundled reader answers questions of the demo, and every answer says what it spent. The numbers
are the same on every machine with the same tokenizer, but for answers that float noise moves.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from benchmarks.arguments import count
from robustrag_integrations import LocalModel
from robustrag_integrations.answers.usage import Spending
from robustrag_integrations.defenses.registry import METHODS, VANILLA, Method
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion

QUESTIONS = 10
PASSAGES = 10


def table(questions: int = QUESTIONS) -> str:
    """Return the means per question, as Markdown."""
    return "\n".join(lines(questions))


def lines(questions: int) -> Iterator[str]:
    """Yield the table's lines as they become known."""
    model = LocalModel.bundled()
    yield "| method | calls | rounds | tokens in | tokens out |\n|---|---:|---:|---:|---:|"
    for method in (VANILLA, *METHODS.values()):
        yield _row(method.name, list(_spent(method, model, questions)))


def _spent(method: Method, model: LocalModel, questions: int) -> Iterator[Spending]:
    votes = method.tasks == ("multiple_choice",)
    task = "multiple_choice" if votes else "short_answer"
    defense: Any = method.build(model, task=task)
    for question in _questions(questions, votes):
        passages = question.passages[:PASSAGES]
        choices = {"choices": question.choices} if votes else {}
        yield defense.answer(question.question, passages, **choices).spending


def _questions(count: int, votes: bool) -> Sequence[EvalQuestion]:
    return load_dataset(
        "demo", task="multiple_choice" if votes else "short_answer", top_k=PASSAGES, limit=count
    ).questions


def _row(name: str, spent: Sequence[Spending]) -> str:
    means = (
        mean(s.calls for s in spent),
        mean(s.rounds for s in spent),
        mean(s.total.prompt or 0 for s in spent),
        mean(s.total.completion or 0 for s in spent),
    )
    return f"| {name} | {means[0]:.1f} | {means[1]:.1f} | {means[2]:,.0f} | {means[3]:,.0f} |"


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=count, default=QUESTIONS, help=f"of the demo (default {QUESTIONS})")
    for line in lines(parser.parse_args(arguments).questions):
        print(line, flush=True)


if __name__ == "__main__":
    main()
