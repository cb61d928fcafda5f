"""Recorded replies as a data set and a model, for commands that ask one.

    python -m tests.defenses.recorded.replay tests/defenses/recorded/qwen-0.5b.jsonl > questions.jsonl
    robustrag tune --data questions.jsonl --model python:tests/defenses/recorded/replay.py:reply --final never

A passage is a number and the reply that the model gave to the passage of that number; the model repeats it.
No reply to a final prompt is recorded, so that nothing may ask one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from robustrag_integrations.prompts import prompts_for

_BEFORE, _AFTER = prompts_for("short_answer").isolated.render(context="|", query="").text.split("|")


def questions(paths: Iterable[str]) -> Iterator[dict[str, object]]:
    """Yield the questions of files that `record` wrote, each once, in the layout of `robustrag eval --data`."""
    known: set[str] = set()
    for row in (json.loads(line) for path in paths for line in Path(path).read_text(encoding="utf-8").splitlines()):
        if row["question"] not in known:
            known.add(row["question"])
            passages = [f"{number}: {reply}" for number, reply in enumerate(row["replies"], 1)]
            yield {key: row[key] for key in ("question", "incorrect")} | {
                "answer": row["answers"],
                "passages": passages,
            }


def reply(prompt: str) -> str:
    """Return the recorded reply to an isolated prompt.

    Raises:
        ValueError: it is another prompt.
    """
    text, end, _ = prompt.removeprefix(_BEFORE).rpartition(_AFTER.partition("Question: ")[0] + "Question: ")
    number, colon, recorded = text.partition(": ")
    if not (prompt.startswith(_BEFORE) and end and colon and number.isdecimal()):
        raise ValueError(f"no reply is recorded to {prompt!r:.300}")
    return recorded


if __name__ == "__main__":
    for question in questions(sys.argv[1:]):
        print(json.dumps(question, ensure_ascii=False))
