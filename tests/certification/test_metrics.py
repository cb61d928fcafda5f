from __future__ import annotations

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.certification.metrics import (
    GuardedMetric,
    LLMJudge,
    checked_score,
    contains_answer,
    exact_choice,
    metric_of,
    parse_score,
    references_of,
)


@pytest.mark.parametrize(
    ("response", "references"),
    [
        ("It was Paris.", ["paris"]),
        ("The answer: the  Eiffel-Tower!", ["Eiffel Tower"]),
        ("ＰＡＲＩＳ", ["Paris"]),
        ("either Lyon\nor Paris", ["Rome", "Paris"]),
        ("答えは東京です", ["東京"]),
    ],
)
def test_an_answer_is_found_whatever_its_dress(response: str, references: list[str]) -> None:
    assert contains_answer(response, references) == 1.0


@pytest.mark.parametrize(
    ("response", "references"),
    [
        ("parisian", ["paris"]),
        ("in 19251", ["1925"]),
        ("", ["paris"]),
        ("I don't know whether it was Paris", ["Paris"]),
        ("anything", ["..."]),
    ],
)
def test_what_is_not_there_scores_nothing(response: str, references: list[str]) -> None:
    assert contains_answer(response, references) == 0.0


@pytest.mark.parametrize(
    ("response", "references", "score"),
    [
        ("I don't know", ["I don't know"], 1.0),
        ("The text does not say.", ["I don't know"], 1.0),
        ("Paris", ["I don't know"], 0.0),
        ("I don't know", ["Paris"], 0.0),
        ("", [""], 0.0),
        ("I don't know", ["..."], 0.0),
    ],
)
def test_an_abstention_is_right_where_the_answer_is_one(response: str, references: list[str], score: float) -> None:
    assert contains_answer(response, references) == score


def test_a_choice_is_met_exactly() -> None:
    assert exact_choice("The Seine.", ["seine"]) == 1
    assert exact_choice("Seine and Rhine", ["seine"]) == 0


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("85", 85),
        ("85/100", 85),
        ("I would give it 85 out of 100, for 3 reasons.", 85),
        ("Score: 85", 85),
        ('{"score": 85}', 85),
        ("Score: 20 at first. Final score: 70", 70),
        ("８５", 85),
    ],
)
def test_a_readable_score_is_read(reply: str, score: float) -> None:
    assert parse_score(reply) == score


@pytest.mark.parametrize(
    "reply", ["", "excellent", "101", "-5 or 12", "between 60 and 80", "2024-05-05", "1e3", "score: 900", "x" * 10**6]
)
def test_an_unreadable_score_is_nobodys_guess(reply: str) -> None:
    assert parse_score(reply) is None


def test_a_judge_is_asked_once_per_question_and_never_about_abstentions() -> None:
    asked: list[str] = []

    def judge(prompt: str) -> str:
        asked.append(prompt)
        return "Score: 40"

    metric = LLMJudge(CallableModel(judge), "Who?")
    assert [metric("Anna {x}", ["Anna"]), metric("Anna {x}", ["Anna"]), metric("I don't know", ["Anna"])] == [40, 40, 0]
    assert len(asked) == 1
    assert "Anna {x}" in asked[0]
    assert metric.about("Where?")("Anna {x}", ["Anna"]) == 40
    assert len(asked) == 2


def test_a_judge_that_babbles_is_asked_again_and_then_scores_zero() -> None:
    replies = iter(["hm", "Score: 70", "hm", "well"])
    metric = LLMJudge(CallableModel(lambda p: next(replies), max_concurrency=1))
    assert metric("a", ["a"]) == 70
    assert metric("b", ["a"]) == 0
    assert (metric.read("a", ["a"]), metric.read("b", ["a"])) == (70, None)


def test_references_and_scores_are_checked() -> None:
    assert references_of("a") == ("a",)
    assert references_of(["a", "b"]) == ("a", "b")
    for wrong in ("", [], ["a", " "]):
        with pytest.raises(ValueError, match="reference"):
            references_of(wrong)
    with pytest.raises(TypeError, match="list of str"):
        references_of([1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="at least 0"):
        checked_score(-1.0, contains_answer)
    with pytest.raises(ValueError, match="contains_answer"):
        checked_score(float("nan"), contains_answer)


def test_metrics_are_found_by_name_and_custom_ones_by_module(tmp_path, monkeypatch) -> None:
    assert metric_of("contains") is contains_answer
    assert metric_of("exact") is exact_choice
    assert metric_of("robustrag_integrations.certification.metrics:contains_answer") is contains_answer
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_metric.py").write_text(
        "class M:\n    def half(self, response, references):\n        return 0.5\nm = M()\n"
    )
    assert metric_of("my_metric:m.half")("a", ["a"]) == 0.5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("f1", "'f1' is unknown; use one of contains, exact, all, or module:function"),
        ("nowhere:f", "cannot import 'nowhere:f'"),
        ("broken:f", "cannot import 'broken:f'"),
    ],
)
def test_a_metric_that_cannot_be_found_is_named_with_the_fix(tmp_path, monkeypatch, name, said) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def f(:\n")
    with pytest.raises(ValueError, match=said):
        metric_of(name)


def test_a_guarded_metric_scores_zero_where_it_fails_and_keeps_what_went_wrong() -> None:
    guarded = GuardedMetric(lambda response, references: {"a": 1.0, "b": -1.0}[response])
    assert [guarded(r, ["a"]) for r in "abc"] == [1.0, 0.0, 0.0]
    assert "at least 0" in guarded.failures["b"]
    assert guarded.failures["c"] == "KeyError: 'c'"
    assert set(guarded.failures) == {"b", "c"}


def test_a_judge_that_cannot_be_asked_is_an_error_even_when_guarded() -> None:
    def broken(prompt: str) -> str:
        raise RuntimeError("no judge today")

    with pytest.raises(ModelError):
        GuardedMetric(LLMJudge(CallableModel(broken)))("a", ["a"])


@pytest.mark.parametrize(
    ("response", "reference", "held"),
    [
        ("5 °C", "-5 °C", 0),
        ("It was \u22125 °C.", "-5 °C", 1),
        ("O+", "O-", 0),
        ("C", "C++", 0),
        ("It is C++.", "C++", 1),
        ("5 million", "$5 million", 1),
        ("about 10-15", "15", 1),
    ],
)
def test_an_opposite_sign_is_another_answer(response: str, reference: str, held: int) -> None:
    assert contains_answer(response, [reference]) == held
