"""Files of questions and of rows."""

from __future__ import annotations

import gzip
import json
from typing import Any

from robustrag_integrations.evaluation.data.datasets import DatasetError, load_dataset
from robustrag_integrations.evaluation.run.journal import Journal, JournalError
from robustrag_integrations.evaluation.run.runner import known_rows
from robustrag_integrations.evaluation.score.rows import HEADER_SCHEMA, ROW_SCHEMA
from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.tables import main_tables, remarks
from tests.fuzz.checks import assert_harmless_on_a_terminal, assert_short_and_harmless, assert_valid_unicode
from tests.fuzz.hostile import damaged, data, json_line, text
from tests.fuzz.source import Source, Target, scratch
from tests.fuzz.targets.reports import a_stained_row

_OURS: dict[str, Any] = {
    "id": "7",
    "question": "Where?",
    "answer": ["Paris"],
    "passages": ["It is Paris.", {"text": "x", "source": "s", "id": "a"}],
    "choices": ["Paris", "Rome"],
    "correct_choice": 0,
    "incorrect": "Rome",
    "poisoned": ["It is Rome."],
}
_PAPERS: dict[str, Any] = {
    "question": "Where?",
    "correct answer": "Paris",
    "expanded answer": ["paris"],
    "incorrect answer": "Rome",
    "incorrect_context": ["It is Rome."],
    "context": [{"title": "Paris", "text": "It is Paris.", "link": "http://a.example"}],
    "choices": ["Paris", "Rome", ""],
    "choices answer": "0",
    "long_gen": False,
}


def questions(source: Source) -> None:
    """Questions are read; a bad row costs only itself, and its reason is harmless."""
    shape = source.pick((_OURS, _PAPERS))
    lines = source.some(lambda: json_line(source, shape), 4)
    raw = data(source, lines) if source.below(4) else data(source, [f"[{','.join(lines)}]"])
    if source.chance(4):
        raw = gzip.compress(raw, 1)
        raw = damaged(source, raw) if source.chance(2) else raw
    path = scratch() / source.pick(("questions.jsonl", "questions.json", "questions.jsonl.gz"))
    path.write_bytes(raw)
    try:
        found = load_dataset(
            str(path),
            task=source.pick((None, "short_answer", "multiple_choice", "long_form")),
            top_k=source.pick((None, 3)),
        )
    except DatasetError as refused:
        assert_short_and_harmless(str(refused))
        return
    for bad in found.bad_rows:
        assert_short_and_harmless(str(bad))
    for question in found.questions:
        assert question.question.strip()
        for shown in (question.id, question.question, *question.answers, *question.choices):
            assert_valid_unicode(shown)
        for passage in question.passages:
            assert_valid_unicode(passage.text)
    assert len({question.id for question in found.questions}) == len(found.questions)


def stored_rows(source: Source) -> None:
    """A file to go on from is taken as a whole, or refused and left alone; what is taken can be summed up."""
    header = json.dumps({"schema": HEADER_SCHEMA, "config": {}, "versions": {}})
    rows = [json.dumps(a_stained_row(source, n)) for n in range(source.below(3))]
    if source.chance(3):
        rows.append(json_line(source, {"schema": ROW_SCHEMA, "key": text(source, 2)}))
    path = scratch() / "run.jsonl"
    raw = data(source, [header, *rows, ""])
    path.write_bytes(raw)
    try:
        with Journal(path) as journal:
            known = known_rows(journal)
    except JournalError as refused:
        assert_short_and_harmless(str(refused))
        return
    assert raw.startswith(path.read_bytes())
    lines = summarise(known.values())
    assert_harmless_on_a_terminal("\n".join([*(table.as_text() for table in main_tables(lines)), *remarks(lines)]))


TARGETS = (Target("questions", questions, 8), Target("stored-rows", stored_rows, 8))
