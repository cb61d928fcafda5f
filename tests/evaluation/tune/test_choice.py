"""The rule that chooses, on made-up candidates and rows."""

from __future__ import annotations

from functools import cache
from typing import Any

from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.defenses.settings_file import SavedSettings
from robustrag_integrations.evaluation.score.intervals import clopper_pearson
from robustrag_integrations.evaluation.show.lines import MOST_WARNINGS
from robustrag_integrations.evaluation.tune.show import in_words, warned_in_words
from robustrag_integrations.evaluation.tune.tuning import Candidate, Tuned, Wish, candidate_of, choose

N = 50
share = cache(lambda count: clopper_pearson(count, N))


def candidate(right: int, certified: int, silent: int = 0, *, calls: float = 10, radius: float = 1.0, **settings: Any):
    defaults = METHODS["keyword"].in_force({})
    shares = (share(count) for count in (right, certified, silent))
    label = f"{right} {certified} {silent} {settings}"
    return Candidate(label, "keyword", {**defaults, **settings}, 10, *shares, radius=radius, calls=calls)


def test_it_is_said_whether_the_halves_agree() -> None:
    chosen, saved = candidate(25, 10), SavedSettings("settings.yaml", "keyword")
    for held, agree in ((candidate(30, 12), True), (candidate(45, 11), False)):
        lines = in_words(Tuned((chosen,), chosen, held, saved, 1, 0), Wish())
        assert any(("halves agree" if agree else "halves do not agree: accuracy") in line for line in lines)


def test_few_kinds_of_warnings_are_listed() -> None:
    warned = {f"kind {number}": 1 for number in range(MOST_WARNINGS + 3)}
    chosen = candidate(25, 10)
    tuned = Tuned((chosen,), chosen, chosen, SavedSettings("settings.yaml", "keyword"), 1, 0, warnings=warned)
    [*_, last] = warned_in_words(tuned)
    assert last == "and 3 more kinds of warnings"


def test_certified_wins_within_a_question_of_the_best_and_not_below() -> None:
    accurate, near, far = candidate(48, 10), candidate(47, 30), candidate(46, 50)
    assert choose([accurate, near, far], "certified") is near
    assert choose([accurate, far], "certified") is accurate
    assert choose([accurate, near, far], "accuracy") is accurate
    assert choose([candidate(48, 10), candidate(48, 11)], "accuracy").certified.mean == 11 / N


def test_ties_go_to_fewer_calls_then_the_larger_radius_then_the_defaults() -> None:
    slow, quick = candidate(40, 20, calls=11), candidate(40, 20, calls=10)
    assert choose([slow, quick], "certified") is quick
    wide = candidate(40, 20, radius=2.0)
    assert choose([quick, wide], "certified") is wide
    other = candidate(40, 20, beta=7)
    assert choose([other, quick], "certified") is quick
    assert choose([quick, other], "certified") is quick


def row(correct: float, radius: int, *, abstained: bool = False, error: bool = False):
    return {
        "setup": "keyword", "defense": "keyword", "settings": {"alpha": 0.3}, "top_k": 10, "task": "qa",
        "error": {"type": "ModelError", "message": "gone"} if error else None,
        "scores": None if error else {"correct": correct, "abstained": abstained},
        "answer": None if error else {"radius": radius, "determinism": {"scope": "answer"}},
        "cost": None if error else {"model_calls": 11},
    }  # fmt: skip


def test_expected_certified_accuracy_is_right_with_a_radius_and_failures_are_not_right() -> None:
    rows = [row(1, 2), row(1, 1), row(1, 0), row(0, 3), row(0, 0, abstained=True), row(0, 0, error=True)]
    found = candidate_of(rows, 1)
    assert (found.accuracy, found.certified) == (clopper_pearson(3, 6), clopper_pearson(2, 6))
    assert (found.abstention, found.failed, found.calls) == (clopper_pearson(1, 6), 1, 11)
    assert candidate_of(rows, 2).certified == clopper_pearson(1, 6)
    assert candidate_of(rows, 4).certified == clopper_pearson(0, 6)
