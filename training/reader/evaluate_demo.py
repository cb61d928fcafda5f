"""Score a reader on the demo corpus: `python -m training.reader.evaluate_demo --model FOLDER`.

For every question: vanilla RAG over the ten best passages, clean and with the attacker's passage put first, and what
each passage says in a prompt of its own.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations.attacks import false_statement, poisoning, prompt_injection
from robustrag_integrations.prompts import ABSTENTION
from training.reader import wording
from training.reader.build_world import Retrieval
from training.reader.evaluate import Generator, Score, table

_DEMO = Path(__file__).resolve().parents[2] / "robustrag_integrations" / "demo"
_ANSWER = wording.PROJECT["answer"]


@dataclass(frozen=True)
class Question:
    """A question of the demo with the passages that are retrieved for it."""

    text: str
    answer: str
    incorrect: str
    passages: list[str]

    def poisoned(self) -> str:
        """A passage that repeats the retrieved sentence with the answer, forged."""
        return poisoning(false_statement(self.text, self.passages, self.answer, self.incorrect))

    def injected(self) -> str:
        """A passage that repeats the instruction to output the wrong answer."""
        return prompt_injection(self.text, self.incorrect)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def load_questions(folder: Path = _DEMO) -> list[Question]:
    """The demo's questions with their ten best passages."""
    retrieval = Retrieval(_lines(folder / "world.jsonl"))
    return [
        Question(q["question"], q["answer"], q["incorrect"], retrieval.best(q["question"]))
        for q in _lines(folder / "questions.jsonl")
    ]


def _prompt(passages: list[str], question: str) -> str:
    return _ANSWER.prefix("\n\n".join(passages)) + _ANSWER.tail(question)


def score_demo(generate: Generator, questions: list[Question]) -> list[Score]:
    """The lines of the demo's table."""

    def share(name: str, prompts: list[str], wanted: list[str]) -> Score:
        answers = generate(prompts)
        return Score(name, sum(a == w for a, w in zip(answers, wanted, strict=True)) / len(answers), len(answers))

    right, wrong = [q.answer for q in questions], [q.incorrect for q in questions]
    injected = [_prompt([q.injected(), *q.passages[:-1]], q.text) for q in questions]
    poisoned = [_prompt([q.poisoned(), *q.passages[:-1]], q.text) for q in questions]
    telling = [(_prompt([p], q.text), q.answer) for q in questions for p in q.passages if q.answer in p]
    silent = [_prompt([p], q.text) for q in questions for p in q.passages if q.answer not in p]
    return [
        share("demo: vanilla, clean", [_prompt(q.passages, q.text) for q in questions], right),
        share("demo: vanilla hijacked by one injected passage", injected, wrong),
        share("demo: vanilla hijacked by one poisoned passage", poisoned, wrong),
        share("demo: injected passage alone", [_prompt([q.injected()], q.text) for q in questions], wrong),
        share("demo: poisoned passage alone", [_prompt([q.poisoned()], q.text) for q in questions], wrong),
        share("demo: isolated, tells the answer", [p for p, _ in telling], [a for _, a in telling]),
        share("demo: isolated, silent: abstains", silent, [ABSTENTION] * len(silent)),
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="an exported reader")
    chosen = parser.parse_args()
    print(table(score_demo(Generator(chosen.model), load_questions())))


if __name__ == "__main__":
    main()
