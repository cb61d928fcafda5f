"""The report of one question in JSON's types, as `robustrag ask --json` prints it and the playground saves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.grouping.passages import Passage

SCHEMA = "robustrag/ask/1"


def ask_report(
    model: str, answer: RobustAnswer, passages: Sequence[Passage], skipped: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """The report.

    Args:
        model: its description.
        answer: the answer.
        passages: all that it was made from, best first.
        skipped: files that could not be read: `path` and `reason`.
    """
    return {
        "schema": SCHEMA,
        "model": model,
        "answer": answer.to_dict(),
        "passages": [{"id": p.id, "source": p.source, "text": p.text} for p in passages],
        "skipped": list(skipped),
    }
