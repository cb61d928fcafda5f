"""How well the confidence of isolated replies tells right ones from wrong ones, over a run's rows.

Confidence counts for nothing in a vote. It decides what people see where nothing is agreed on (`sure_from`), and
whether unsure replies abstain (`unsure="abstain"`). These numbers say from which level on to call a model sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations._util.display import decimals, printable
from robustrag_integrations.answers.answer import ANSWERING
from robustrag_integrations.certification.metrics import contains_answer
from robustrag_integrations.evaluation.score.rows import Row, attack_of_row


@dataclass(frozen=True)
class Sureness:
    """The confidence of one model's isolated replies: of `right` ones, which contain an answer, and `wrong` others.

    Attributes:
        area: the area under the curve: the probability that a right reply is surer than a wrong one, where equal ones
            count one half. 0.5 tells nothing.
        level: the confidence, from 0 to 1, from which on replies count as sure where that separates best: the largest
            difference between `right_from` and `wrong_from`, the shares that are as sure; of several the lowest.
    """

    model: str
    right: int
    wrong: int
    area: float
    level: float
    right_from: float
    wrong_from: float

    def in_words(self) -> str:
        """One line for a terminal."""
        return (
            f"confidence of isolated replies ({printable(self.model, 100)}): area under the curve "
            f"{decimals(self.area, 2)} ({self.right} right, {self.wrong} wrong); separates best from "
            f"{decimals(self.level, 2)} on: {decimals(self.right_from, 0, 100)}% of the right and "
            f"{decimals(self.wrong_from, 0, 100)}% of the wrong ones"
        )


def sureness(rows: Iterable[Row]) -> tuple[Sureness, ...]:
    """Return one entry per model of which both right and wrong replies have a known confidence.

    Clean rows of short answers and choices count, and a reply that several setups got counts once.
    """
    replies: dict[str, dict[tuple[Any, ...], tuple[bool, float]]] = {}
    for row in rows:
        if row.get("error") is not None or row["task"] == "long" or attack_of_row(row).name != "none":
            continue
        for group in row["answer"].get("groups", ()):
            sure, said = group.get("confidence"), group.get("response")
            if sure is not None and said is not None and group.get("status") in ANSWERING:
                text = ", ".join(group.get("words", ())) if row["task"] == "mc" else said
                asked = (row["dataset"], row["task"], row["question_id"], *group["passage_ids"], said)
                is_right = contains_answer(text, row["answers"]) > 0
                replies.setdefault(row["model"], {})[asked] = is_right, float(sure)
    found = []
    for model, known in replies.items():
        right, wrong = ([sure for is_right, sure in known.values() if is_right is kind] for kind in (True, False))
        if right and wrong:
            found.append(_separated(model, right, wrong))
    return tuple(found)


def _separated(model: str, right: Sequence[float], wrong: Sequence[float]) -> Sureness:
    import numpy as np
    from scipy.stats import mannwhitneyu

    area = mannwhitneyu(right, wrong).statistic / (len(right) * len(wrong))
    levels = np.unique([0.0, *right, *wrong])
    right_from, wrong_from = (np.mean(np.array(sure)[:, None] >= levels, axis=0) for sure in (right, wrong))
    best = int(np.argmax(right_from - wrong_from))
    ends = float(levels[best]), float(right_from[best]), float(wrong_from[best])
    return Sureness(model, len(right), len(wrong), float(area), *ends)
