"""In how many of the retrieved passages the answer stands at all. It bounds what can be certified.

A defence that takes its answers from passages alone cannot be right where no passage that the attacker leaves says so.
A model that knows the answer by itself, or reads it out of other words, may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robustrag_integrations.evaluation.score.intervals import EMPTY, RATE, Interval, bootstrap_mean
from robustrag_integrations.metrics import holds_answer

Row = Mapping[str, Any]


@dataclass(frozen=True)
class AnswerPresence:
    """Where the right answers of a data set stand.

    Attributes:
        dataset: the data set's name.
        task: `qa` or `mc`.
        top_k: passages per question; None for all that it has.
        n: questions.
        passages: the share of a question's passages that hold a right answer as words, on average over those that have
            passages.
        found: the share of questions with such a passage among their top k.
        bound: by kind of attacker and corruption size: the share of questions of which a passage with the answer is
            left whatever the attacker replaces. Certified accuracy of defences that answer from passages is no higher.
    """

    dataset: str
    task: str
    top_k: int | None
    n: int
    passages: Interval = EMPTY
    found: Interval = EMPTY
    bound: Mapping[tuple[str, int], Interval] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """It in JSON's types."""
        bounds = [{"attack": a, "corruption_size": k, **found.to_dict()} for (a, k), found in self.bound.items()]
        shares = {"passages": self.passages.to_dict(), "found": self.found.to_dict(), "bound": bounds}
        return {"dataset": self.dataset, "task": self.task, "top_k": self.top_k, "n": self.n, **shares}


def answer_presence(rows: Iterable[Row]) -> tuple[AnswerPresence, ...]:
    """One per data set, task and number of passages, over the clean questions of a run; none for long answers.

    Args:
        rows: of a run; certificates among them say which attackers a bound is given for, else one injected passage.
    """
    questions: dict[tuple[Any, ...], dict[str, list[bool]]] = {}
    against: dict[tuple[Any, ...], set[tuple[str, int]]] = {}
    for row in rows:
        if row["attack"]["name"] != "none" or row["task"] == "long":
            continue
        known = (row["dataset"], row["task"], row.get("top_k"))
        listed = questions.setdefault(known, {})
        if not listed.get(row["question_id"]):
            shown = row.get("passages") or ()
            listed[row["question_id"]] = [holds_answer(p["text"], row["answers"]) for p in shown]
        sizes = {(c["attack"], c["corruption_size"]) for c in row.get("certificates") or ()}
        against.setdefault(known, set()).update(sizes)
    return tuple(
        _of(known, list(q.values()), sorted(against[known])) for known, q in questions.items() if any(q.values())
    )


def _of(
    known: tuple[Any, ...], questions: Sequence[Sequence[bool]], against: Sequence[tuple[str, int]]
) -> AnswerPresence:
    dataset, task, top_k = known
    return AnswerPresence(
        dataset,
        task,
        top_k,
        len(questions),
        bootstrap_mean([sum(q) / len(q) for q in questions if q], limits=RATE),
        bootstrap_mean([float(any(q)) for q in questions], limits=RATE),
        {
            (attack, size): bootstrap_mean([float(_left(q, attack, size, top_k)) for q in questions], limits=RATE)
            for attack, size in against or [("injection", 1)]
        },
    )


def _left(holds: Sequence[bool], attack: str, size: int, top_k: int | None) -> bool:
    """Whether a passage with the answer is left: injection ejects the last ones, modification any."""
    if attack == "modification":
        return sum(holds) > size
    return any(holds[: max(min(len(holds), (top_k or len(holds)) - size), 0)])
