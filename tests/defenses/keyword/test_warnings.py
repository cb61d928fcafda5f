"""What keyword aggregation says about responses that did not come together."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations import CallableModel, KeywordAggregation, Passage
from robustrag_integrations.answer import RobustAnswer


def _answer(replies: Sequence[str], **settings: object) -> RobustAnswer:
    def model(prompt: str) -> str:
        found = [reply for i, reply in enumerate(replies) if f"passage {i}." in prompt]
        return found[0] if found else "It is Paris."

    passages = [Passage(f"passage {i}.", source=f"{i}.txt") for i in range(len(replies))]
    return KeywordAggregation(CallableModel(model), **settings).answer("Which?", passages)  # type: ignore[arg-type]


def test_responses_without_a_keyword_are_counted_in_a_warning() -> None:
    answer = _answer(["Paris"] * 4 + ["Rome"], extractor=lambda text: {"paris"} if "Paris" in text else set())
    assert any("no keyword in the responses of 1 of 5" in warning for warning in answer.warnings)


def test_nothing_retained_names_the_settings_to_change() -> None:
    answer = _answer(["Oslo", "Rome", "Bern", "Kyiv"], beta=3, alpha=1)
    [warning] = [w for w in answer.warnings if "reaches" in w]
    assert "alpha=" in warning
    assert "beta=" in warning
    assert "with 1" in warning


def test_two_answers_with_support_are_a_conflict() -> None:
    answer = _answer(["Yes.", "Yes, it is.", "Yes.", "Yes!", "No.", "No.", "No, never."])
    assert answer.evidence["conflict"] == {"yes": 4, "no": 3}
    assert any("'yes' is said by 4 groups and 'no' by 3 others" in warning for warning in answer.warnings)


def test_a_second_answer_that_was_not_kept_is_a_conflict_from_two_votes_on() -> None:
    answer = _answer(["Yes.", "Yes, it is.", "Yes.", "Yes!", "No.", "No, never."])
    assert answer.evidence["conflict"] == {"yes": 4, "no": 2}
    [warning] = [w for w in answer.warnings if "contradict" in w]
    assert warning.endswith("'yes' is said by 4 groups and 'no' by 2 others")
    alone = _answer(["Yes.", "Yes, it is.", "Yes.", "Yes!", "No."])
    assert "conflict" not in alone.evidence


def test_agreement_warns_of_nothing() -> None:
    answer = _answer(["Paris.", "It is Paris.", "Paris, France.", "Paris"])
    assert "conflict" not in answer.evidence
    assert answer.warnings == ()
