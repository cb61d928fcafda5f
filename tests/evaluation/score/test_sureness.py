"""How well confidence tells right replies from wrong ones."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from robustrag_integrations.evaluation.score.sureness import Sureness, sureness
from tests.evaluation.rows import PIA, failed, row


def asked(number: int, *replies: tuple[str, float | None], status: str = "differs", **change: Any) -> dict[str, Any]:
    groups = [
        {
            "index": i,
            "status": status,
            "passage_ids": [str(i)],
            "response": said,
            "words": [said],
            "confidence": sure,
        }
        for i, (said, sure) in enumerate(replies)
    ]
    return row(number, answer={"groups": groups}, **change)


def test_the_area_and_the_level_by_hand() -> None:
    rows = [asked(1, ("It was Anna.", 0.75), ("Bo", 0.5)), asked(2, ("Anna", 0.5), ("Cleo", 0.25), ("Dan", 0.25))]
    # Of six pairs the right reply is surer in five, and as sure in one.
    assert sureness(rows) == (Sureness("bundled", 2, 3, 5.5 / 6, 0.5, 1.0, 1 / 3),)
    assert sureness(rows)[0].in_words() == (
        "confidence of isolated replies (bundled): area under the curve 0.92 (2 right, 3 wrong); separates best from "
        "0.50 on: 100% of the right and 33% of the wrong ones"
    )


@pytest.mark.parametrize("flip", [False, True])
def test_it_is_the_probability_that_a_right_reply_is_surer(flip: bool) -> None:
    right, wrong = [16, 12, 12, 7, 3, 0], [13, 12, 7, 7, 1]
    if flip:
        right, wrong = wrong, right
    replies = [("Anna", level / 16) for level in right] + [("Bo", level / 16) for level in wrong]
    [found] = sureness([asked(1, *replies)])
    pairs = list(itertools.product(right, wrong))
    assert found.area == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    gains = {
        level: sum(a >= level for a in right) / len(right) - sum(b >= level for b in wrong) / len(wrong)
        for level in range(17)
    }
    assert found.right_from - found.wrong_from == pytest.approx(max(0, *gains.values()))


def test_replies_that_tell_nothing_are_left_out() -> None:
    known = asked(1, ("Anna", 0.75), ("Bo", 0.25))
    others = [
        asked(1, ("Anna", 0.75), ("Bo", 0.25), setup="consensus"),  # the same replies
        asked(2, ("Anna", 0.25), attack=PIA),
        asked(3, ("I don't know", 0.75), status="abstained"),
        asked(4, ("Bo", None)),
        asked(5, ("Bo", 0.75), task="long"),
        failed(6),
    ]
    assert sureness([known, *others]) == sureness([known])
    assert (sureness([known])[0].right, sureness([known])[0].wrong) == (1, 1)
