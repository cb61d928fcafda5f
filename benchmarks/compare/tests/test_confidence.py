"""How well confidence tells right replies from wrong ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from benchmarks.compare.confidence import confidence
from tests.evaluation.rows import PIA, failed, row


def asked(number: int, *replies: tuple[str, float | None], status: str = "differs", **change: Any) -> dict[str, Any]:
    sources = [
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
    return row(number, answer={"sources": sources}, **change)


def questions(replies: Callable[[Random], tuple[float, float]], count: int = 60) -> list[dict[str, Any]]:
    """So many questions with a right and a wrong reply each, of such confidence."""
    random = Random(1)
    made = []
    for number in range(count):
        right, wrong = replies(random)
        made.append(asked(number, ("Anna", right), ("Bo", wrong)))
    return made


def test_the_area_is_the_probability_that_a_right_reply_is_surer_and_the_level_separates_best() -> None:
    rows = questions(lambda random: (random.choice([0.5, 0.75, 0.9]), random.choice([0.1, 0.5, 0.6])))
    sures = [(g["confidence"], g["words"] == ["Anna"]) for row in rows for g in row["answer"]["sources"]]
    right, wrong = ([sure for sure, is_right in sures if is_right is kind] for kind in (True, False))
    [found] = confidence(rows)
    assert (found.questions, found.right, found.wrong) == (60, 60, 60)
    assert found.estimate is not None
    pairs = list(itertools.product(right, wrong))
    assert found.estimate.area == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    assert 0.5 < found.estimate.low < found.estimate.area < found.estimate.high < 1
    gains = {x: sum(a >= x for a in right) - sum(b >= x for b in wrong) for x in {*right, *wrong}}
    assert gains[found.estimate.level] == max(gains.values())
    assert f"sure_from={found.estimate.level:.2f}" in found.in_words()
    assert "an estimate from 60 right and 60 wrong replies to 60 questions" in found.in_words()


def test_noise_suggests_no_level() -> None:
    told = confidence(questions(lambda random: (random.random(), random.random())))[0].in_words()
    assert "That may be chance, so that no level is suggested" in told
    assert "sure_from" not in told


def test_replies_that_tell_nothing_are_left_out() -> None:
    known = asked(1, ("Anna", 0.75), ("Bo", 0.25))
    others = [
        asked(1, ("Anna", 0.75), ("Bo", 0.25), setup="consensus"),  # the same replies
        asked(2, ("Anna", 0.25), attack=PIA),
        asked(3, ("I don't know", 0.75), status="abstained"),
        asked(4, ("Bo", None)),
        asked(5, ("Bo", 0.75), task="long_form"),
        failed(6),
    ]
    assert confidence([known, *others]) == confidence([known])
    assert (confidence([known])[0].right, confidence([known])[0].wrong) == (1, 1)
