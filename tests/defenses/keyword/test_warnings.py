"""What keyword aggregation says about responses that did not come together."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations import CallableModel, KeywordAggregation, Passage
from robustrag_integrations.answers.answer import RobustAnswer


def _answer(replies: Sequence[str], **settings: object) -> RobustAnswer:
    def model(prompt: str) -> str:
        found = [reply for i, reply in enumerate(replies) if f"passage {i}." in prompt]
        return found[0] if found else "It is Paris."

    passages = [Passage(f"passage {i}.", origin=f"{i}.txt") for i in range(len(replies))]
    return KeywordAggregation(CallableModel(model), **settings).answer("Which?", passages)  # type: ignore[arg-type]


def test_nothing_retained_names_the_settings_to_change() -> None:
    answer = _answer(["Oslo", "Oslo", "Bern", "Kyiv"], beta=3, alpha=1)
    [warning] = [w for w in answer.warnings if "that it takes" in w]
    assert answer.abstained
    assert "no keyword has the 3 sources that it takes (1 of those that answer, 3 at most): the most is 2" in warning


def test_sources_that_say_something_else_are_named_from_the_first_on() -> None:
    answer = _answer(["Yes.", "Yes", "Yes.", "Yes!", "No.", "No, never.", "Perhaps."], alpha=0.5, final="never")
    [against] = [w for w in answer.warnings if "answering sources" in w]
    assert answer.text == "yes"
    assert all(part in against for part in ("3 of 7", "4.txt", "'No.", "'Perhaps."))
