"""Scores of lists: the right answers of a question that has several, and the wrong ones beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.metrics import holds_answer
from robustrag_integrations.prompts import ABSTENTION


@dataclass(frozen=True)
class ListScore:
    """The score of a list.

    Attributes:
        right: how many of the right answers it holds.
        wanted: number of right answers.
        wrong: how many of the answers that are known to be wrong it holds.
        other: how many of its items hold neither.
    """

    right: int
    wanted: int
    wrong: int
    other: int

    @property
    def is_exact(self) -> bool:
        """True if all right answers are there and no wrong one: RAMDocs' own score."""
        return self.right == self.wanted and not self.wrong


def score_list(question: EvalQuestion, items: Iterable[str]) -> ListScore:
    """Score the items of a list; an item holds an answer that stands in it as whole words."""
    listed = tuple(items)
    golds, wrong = (sum(any(holds_answer(i, [w]) for i in listed) for w in of) for of in _known(question))
    other = sum(not holds_answer(item, [*question.answers, *question.wrong]) for item in listed)
    return ListScore(golds, len(question.answers), wrong, other)


def perfect_reader(questions: Iterable[EvalQuestion]) -> Callable[[str], str]:
    """Return a function from a prompt to what its passages say, for `CallableModel`: a reader that makes no mistake.

    It names the answers, right or wrong, that stand in the passages of the prompt, one a line, and abstains without
    any. Lies are believed: what is left of them is the aggregation's doing.

    Args:
        questions: those that it will be asked; texts of other passages are not known to it.
    """
    told: dict[tuple[str, str], list[str]] = {}
    for question in questions:
        candidates = [answer for of in _known(question) for answer in of]
        for passage in question.passages:
            answers = [answer for answer in candidates if holds_answer(passage.text, [answer])]
            told[question.question, passage.text] = answers

    def read(prompt: str) -> str:
        said = [a for (asked, text), answers in told.items() if asked in prompt and text in prompt for a in answers]
        return "\n".join(dict.fromkeys(said)) or ABSTENTION

    return read


def _known(question: EvalQuestion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return question.answers, question.wrong
