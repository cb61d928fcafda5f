"""Questions of the bundled demo, with passages of its world that answer them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import robustrag_integrations

DEMO = Path(robustrag_integrations.__file__).parent / "evaluation" / "world"


@cache
def demo_question(number: int) -> tuple[str, tuple[str, ...]]:
    """A question of the demo, three passages that answer it, and one about something else."""
    row = _rows("questions.jsonl")[number]
    texts = [article["text"] for article in _rows("world.jsonl")]
    answering = [text for text in texts if row["answer"] in text]
    return row["question"], (*answering[:3], next(text for text in texts if row["answer"] not in text))


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text().splitlines()]
