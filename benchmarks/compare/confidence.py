"""How well the confidence of isolated replies tells right ones from wrong ones, over a run's rows: an estimate.

Confidence counts for nothing in a vote. It decides what people see where nothing is agreed on (`sure_from`), and
whether unsure replies abstain (`unsure="abstain"`). These numbers say from which level on to call a model sure.

A level that is judged on the questions that chose it looks better than it is. So the questions are halved at random:
what each half chooses is judged on the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from robustrag_integrations._util.display import decimals, printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import ANSWERING
from robustrag_integrations.certification.metrics import contains_answer
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.evaluation.score.rows import Row, attack_of_row
from robustrag_integrations.evaluation.score.summary import LEVEL

ENOUGH_QUESTIONS = 40
ENOUGH_REPLIES = 20  # right ones, and wrong ones, to each half of the questions: the area is then known to about 0.15
_RESAMPLES = 500

Reply = tuple[bool, float]  # whether it is right, and its confidence


@dataclass(frozen=True)
class Estimate:
    """The separation of right and wrong replies.

    Attributes:
        area: the area under the curve (AUROC): the probability that a right reply is surer than a wrong one, where
            equal ones count one half. 0.5 tells nothing. `low` and `high`: its 95% interval, by drawing questions anew.
        level: the confidence, from 0 to 1, from which on replies count as sure where that separates best: the largest
            difference between the shares of right and wrong ones that are as sure; of several the lowest.
        right_from, wrong_from: these shares, each half of the questions judged by the level that the other half chose.
    """

    area: float
    low: float
    high: float
    level: float
    right_from: float
    wrong_from: float


@dataclass(frozen=True)
class Confidence:
    """The confidence of one model's isolated replies: of `right` ones, which contain an answer, and `wrong` others.

    Attributes:
        questions: the number of questions with such replies; 0 where the model told no log-probabilities.
        estimate: None where there are too few of them.
    """

    model: str
    questions: int
    right: int
    wrong: int
    estimate: Estimate | None

    def in_words(self) -> str:
        """One paragraph for a terminal."""
        about = f"Confidence of {printable(self.model, 100)}"
        if not self.questions:
            return (
                f"{about}: its replies came without log-probabilities, so that no level of confidence can be estimated."
            )
        n = f"{self.right} right and {self.wrong} wrong replies to {count_of(self.questions, 'question')}"
        if self.estimate is None:
            return (
                f"{about}: no estimate from {n}. It takes {ENOUGH_QUESTIONS} questions, and to each half of them "
                f"{ENOUGH_REPLIES} right and {ENOUGH_REPLIES} wrong replies of single sources."
            )
        found = self.estimate
        area, low, high, level = (decimals(v, 2) for v in (found.area, found.low, found.high, found.level))
        told = (
            f"{about}, an estimate from {n}: of a right and a wrong one the right one is surer in "
            f"{decimals(found.area, 0, 100)} of 100 pairs (AUROC {area} [{low}, {high}], where 0.5 tells nothing). "
        )
        if found.low <= 0.5:
            return told + "That may be chance, so that no level is suggested."
        return told + (
            f"The level that it would take: sure_from={level}. Levels chosen on one half of the questions and judged "
            f"on the other leave {decimals(found.right_from, 0, 100)}% of the right replies and "
            f"{decimals(found.wrong_from, 0, 100)}% of the wrong ones."
        )


def confidence(rows: Iterable[Row]) -> tuple[Confidence, ...]:
    """Return one entry per model of which isolated replies are known.

    Clean rows of short answers and choices count, and a reply that several setups got counts once.
    """
    replies: dict[str, dict[tuple[Any, ...], dict[Any, Reply]]] = {}
    for row in rows:
        if row.get("error") is not None or row["task"] == "long_form" or attack_of_row(row).name != "none":
            continue
        question = (row["dataset"], row["task"], row["question_id"])
        for source in row["answer"].get("sources", ()):
            sure, said = source.get("confidence"), source.get("response")
            if said is None or source.get("status") not in ANSWERING or row["method"] not in METHODS:
                continue
            known = replies.setdefault(row["model"], {})
            if sure is not None:
                text = ", ".join(source.get("words", ())) if row["task"] == "multiple_choice" else said
                is_right = contains_answer(text, row["answers"]) > 0
                known.setdefault(question, {})[(*source["passage_ids"], said)] = is_right, float(sure)
    return tuple(_of_model(model, [[*each.values()] for each in known.values()]) for model, known in replies.items())


def _of_model(model: str, questions: Sequence[Sequence[Reply]]) -> Confidence:
    right, wrong = (sum(is_right is kind for each in questions for is_right, _ in each) for kind in (True, False))
    shuffled = Random(0).sample(questions, len(questions))
    halves = shuffled[::2], shuffled[1::2]
    least = min(sum(is_right is kind for q in half for is_right, _ in q) for half in halves for kind in (True, False))
    enough = len(questions) >= ENOUGH_QUESTIONS and least >= ENOUGH_REPLIES
    return Confidence(model, len(questions), right, wrong, _estimate(questions, halves) if enough else None)


def _estimate(questions: Sequence[Sequence[Reply]], halves: Sequence[Sequence[Sequence[Reply]]]) -> Estimate:
    import numpy as np

    random = Random(0)
    areas = [_area(*_split(random.choices(questions, k=len(questions)))) for _ in range(_RESAMPLES)]
    low, high = np.nanquantile(areas, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    as_sure: dict[bool, list[bool]] = {True: [], False: []}
    for chooser, judged in (halves, halves[::-1]):
        level = _best_level(*_split(chooser))
        for is_right, sure in (reply for question in judged for reply in question):
            as_sure[is_right].append(sure >= level)
    right_from, wrong_from = (float(np.mean(as_sure[kind])) for kind in (True, False))
    whole = _split(questions)
    return Estimate(_area(*whole), float(low), float(high), _best_level(*whole), right_from, wrong_from)


def _split(questions: Sequence[Sequence[Reply]]) -> tuple[list[float], list[float]]:
    """The confidence of right replies, and that of wrong ones."""
    replies = [reply for question in questions for reply in question]
    return [sure for is_right, sure in replies if is_right], [sure for is_right, sure in replies if not is_right]


def _area(right: Sequence[float], wrong: Sequence[float]) -> float:
    import numpy as np

    if not right or not wrong:
        return float("nan")
    ordered = np.sort(wrong)
    below = np.searchsorted(ordered, right, "left") + np.searchsorted(ordered, right, "right")
    return float(np.mean(below)) / (2 * len(wrong))


def _best_level(right: Sequence[float], wrong: Sequence[float]) -> float:
    import numpy as np

    levels = np.unique([0.0, *right, *wrong])
    right_from, wrong_from = (np.mean(np.array(sure)[:, None] >= levels, axis=0) for sure in (right, wrong))
    return float(levels[int(np.argmax(right_from - wrong_from))])
