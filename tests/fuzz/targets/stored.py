"""Files of questions and of certificates."""

from __future__ import annotations

import gzip
from typing import Any

from robustrag_integrations.cli import certify
from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.evaluation.data.datasets import DatasetError, load_dataset
from tests.fuzz.checks import assert_harmless_on_a_terminal, assert_short_and_harmless, assert_valid_unicode
from tests.fuzz.hostile import damaged, data, json_line, text
from tests.fuzz.scratch import scratch
from tests.fuzz.source import Source
from tests.fuzz.target import Target
from tests.fuzz.targets.answers import a_certificate

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
        found = load_dataset(str(path), task=source.pick((None, "qa", "mc", "long")), top_k=source.pick((None, 3)))
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


def stored_certificates(source: Source) -> None:
    """A file to go on from is taken as a whole, or refused and left alone; what is taken can be summed up."""
    certificate = a_certificate(source).to_dict() if source.chance(2) else {"tau": 1.0, "corruption_size": 1}
    shape = {"key": text(source, 2), "certificates": [certificate]}
    path = scratch() / "certificates.jsonl"
    raw = data(source, source.some(lambda: json_line(source, shape), 4))
    path.write_bytes(raw)
    try:
        with certify._journal(str(path)) as journal:
            known = certify._known(journal)
    except UsageError as refused:
        assert_short_and_harmless(str(refused))
        return
    assert raw.startswith(path.read_bytes())
    rows = [row for found in known.values() for row in found]
    for size in (0, 1):
        assert_harmless_on_a_terminal(str(certify._summary(size, rows)))


TARGETS = (Target("questions", questions, 8), Target("stored-certificates", stored_certificates, 8))
