"""The repeat probe: what it counts, alone and under load, and what a file of its findings may do to a report."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from robustrag_integrations import CallableModel, MajorityVoting, ModelError
from robustrag_integrations.models.base import Response, Role
from robustrag_integrations.models.determinism_probe import PROMPTS, probe_determinism
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.scripted import ScriptedModel


class Batched(ScriptedModel):
    """Answers otherwise when other prompts share its batch, as a server does whose batches move the bits."""

    def __init__(self, alone: str = "Four or five.", crowded: str = "four, or five") -> None:
        super().__init__({})
        self._alone, self._crowded = alone, crowded

    def generate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
        return [Response(self._alone if len(prompts) == 1 else self._crowded) for _ in prompts]


def test_a_model_that_repeats_itself_shows_no_difference_and_the_calls_are_as_many_as_announced() -> None:
    seen: list[tuple[int, int]] = []
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return f"{len(prompt)} characters"

    model = CallableModel(answer, name="m")
    found = probe_determinism(model, repeats=4, load=3, on_progress=lambda done, total: seen.append((done, total)))
    assert (found.compared, found.differed, found.examples) == (24, 0, ())
    assert len(asked) == len(PROMPTS) * 4 * (3 + 2) == seen[-1][0] == seen[-1][1]
    assert [asked.count(p) for p in PROMPTS] == [8, 8, 8]
    assert len(set(asked)) == len(asked) - 21, "the prompts beside it differ from each other"


def test_differences_under_load_alone_are_told_from_those_alone() -> None:
    found = probe_determinism(Batched(), ["How many?"], repeats=5, load=2)
    assert (found.alone.differed, found.under_load.differed) == (0, 5)
    assert found.examples == (("Four or five.", "four, or five"),)


def test_a_sampling_model_differs_alone_and_the_usual_reply_is_not_counted() -> None:
    rng = random.Random(1)
    model = CallableModel(lambda prompt: rng.choice(["a", "a", "a", "b"]), max_concurrency=1)
    found = probe_determinism(model, ["q"], repeats=40, load=1)
    assert 3 <= found.alone.differed <= 19
    assert found.examples == (("a", "b"),)


def test_failed_calls_are_counted_and_compared_with_nothing() -> None:
    replies = iter(range(10_000))

    def answer(prompt: str) -> str:
        if next(replies) % 2:
            raise ValueError("overloaded")
        return "fine"

    found = probe_determinism(CallableModel(answer, attempts=1, max_concurrency=1), ["q"], repeats=10, load=2)
    assert found.alone.failed + found.under_load.failed > 0
    assert found.differed == 0
    assert found.alone.replies + found.alone.failed == 10


def test_a_model_that_never_answers_is_an_error_that_says_why() -> None:
    def broken(prompt: str) -> str:
        raise ValueError("no such model")

    with pytest.raises(ModelError, match=r"nothing to compare.*no such model"):
        probe_determinism(CallableModel(broken, attempts=1), repeats=2, load=1)


@pytest.mark.parametrize(
    "wrong", [{"repeats": 1}, {"load": 0}, {"prompts": []}, {"repeats": True}], ids=lambda w: str(next(iter(w)))
)
def test_arguments_are_checked_at_the_door(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        probe_determinism(CallableModel(lambda p: "a"), **wrong)


def test_what_was_found_stands_in_answers() -> None:
    model = Batched("A", "B")
    model.probe = probe_determinism(model, ["q"], repeats=3, load=1).summary()
    answer = MajorityVoting(model).answer("q", ["one", "two", "three"], choices=["x", "y"])
    assert answer.determinism.model == "samples"
    assert "a probe compared 6 replies to equal prompts: 3 differed" in answer.determinism.why
    assert any("3 differed" in warning for warning in answer.warnings)
