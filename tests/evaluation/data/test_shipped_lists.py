"""The lists that ship: each document holds its own answer alone."""

from __future__ import annotations

import json
from collections import Counter

from robustrag_integrations.certification.metrics import holds_answer
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.evaluation.data.world import world_folder


def test_each_document_of_the_shipped_lists_holds_its_own_answer_alone() -> None:
    rows = [json.loads(line) for line in (world_folder() / "lists.jsonl").read_text().splitlines()]
    questions = load_dataset("demo-lists").questions
    assert len(rows) == len(questions) == 100
    support: Counter[tuple[str, int]] = Counter()
    for row, question in zip(rows, questions, strict=True):
        assert question.several
        assert (list(question.answers), list(question.wrong)) == (row["gold_answers"], row["wrong_answers"])
        assert len({p.origin for p in question.passages}) == len(question.passages)
        known = (*question.answers, *question.wrong)
        for document in row["documents"]:
            held = [answer for answer in known if holds_answer(document["text"], [answer])]
            assert held == ([] if document["type"] == "noise" else [document["answer"]])
        for answer in known:
            told = sum(document["answer"] == answer for document in row["documents"])
            support["right" if answer in question.answers else "wrong", told] += 1
    assert all(support[kind, told] for kind in ("right", "wrong") for told in (1, 2, 3))
