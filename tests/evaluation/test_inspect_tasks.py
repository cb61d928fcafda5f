"""Inspect runs the project's data, attacks and defences; where inspect-ai is installed (`make test-installs`, too)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

inspect_ai = pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "question": f"Who runs mill {n}?",
            "answer": "Anna Lind",
            "incorrect": "Eve Crook",
            "passages": [f"Mill {n} is run by Anna Lind. Page {page}." for page in range(5)],
        }
        for n in range(2)
    ]
    (tmp_path / "mills.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "mills.jsonl"


def believes(messages: list[Any], tools: Any, choice: Any, config: Any) -> Any:
    """Says what the attacker wants wherever it reads it; and its tokens, as Inspect would download a counter."""
    from inspect_ai.model import ModelOutput, ModelUsage

    said = ModelOutput.from_content("mockllm/model", "Eve Crook" if "Eve Crook" in messages[-1].text else "Anna Lind")
    said.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)
    return said


def scores(task_args: dict[str, Any]) -> dict[str, float]:
    from inspect_ai.model import get_model

    from robustrag_integrations.evaluation.inspect_tasks import attacked

    model = get_model("mockllm/model", custom_outputs=believes)
    [log] = inspect_ai.eval(attacked(**task_args), model=model, display="none", log_dir="logs")
    assert log.status == "success", log.error
    return {score.name: score.metrics["mean"].value for score in log.results.scores}


@pytest.mark.parametrize(
    ("defense", "expected"),
    [("vanilla", {"bacc": 1, "racc": 0, "asr": 1}), ("keyword", {"bacc": 1, "racc": 1, "asr": 0})],
)
def test_accuracy_and_attack_success_are_scored_on_inspects_model(
    data: str, defense: str, expected: dict[str, float]
) -> None:
    assert scores({"data": data, "defense": defense}) == expected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"questions": "long"}, "must be qa or mc"),
        ({"attack": "overthinking"}, "no success to score"),
        ({"attack": "nothing"}, "nothing"),
        ({"settings": {"nothing": 1}}, "nothing"),
    ],
)
def test_wrong_arguments_are_named(data: str, wrong: dict[str, Any], message: str) -> None:
    from robustrag_integrations.evaluation.inspect_tasks import attacked

    with pytest.raises((ValueError, TypeError), match=message):
        attacked(**{"data": data, **wrong})


def test_inspect_finds_the_task_by_its_name(data: str) -> None:
    [log] = inspect_ai.eval(
        "robustrag_integrations/attacked",
        task_args={"data": data, "reader": "python:robustrag_integrations._util.words:repeats_in_words"},
        model="none",
        display="none",
        log_dir="logs",
        limit=0,
    )
    assert log.eval.task == "robustrag_integrations/attacked"


def test_several_ranks_have_a_planted_passage_each(data: str) -> None:
    keeps_two = {"data": data, "defense": "keyword", "settings": {"alpha": 0.25}}
    assert scores({**keeps_two, "rank": "1+2"})["asr"] == 1
    assert scores({**keeps_two, "rank": 5})["asr"] == 0
