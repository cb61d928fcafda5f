"""Lists are scored by the right answers they hold and the wrong ones beside them; the reader makes no mistake."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.data.world import world_folder
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.prompts import ABSTENTION, prompts_for
from tests.evaluation.lists import ListScore, perfect_reader, score_list

QUESTION = EvalQuestion(
    "1",
    "Who wrote Harbour Lights?",
    ("Ada Moss", "Tom Reed"),
    "Jo Lum",
    (
        Passage("The novel Harbour Lights is by Ada Moss.", source="a"),
        Passage("Tom Reed sang Harbour Lights.", source="b"),
        Passage("Jo Lum wrote Harbour Lights.", source="c"),
        Passage("A harbour has lights.", source="d"),
    ),
    wrong=("Jo Lum",),
    several=True,
)


@pytest.mark.parametrize(
    ("items", "score", "exact"),
    [
        (["Ada Moss", "tom reed."], ListScore(2, 2, 0, 0), True),
        (["Ada Moss (novel)", "Tom Reed", "Al"], ListScore(2, 2, 0, 1), True),
        (["Ada Moss", "Tom Reed", "Jo Lum"], ListScore(2, 2, 1, 0), False),
        (["Ada Moss", "Ada Moss"], ListScore(1, 2, 0, 0), False),
        (["Ada Mossman"], ListScore(0, 2, 0, 1), False),
        ([], ListScore(0, 2, 0, 0), False),
    ],
)
def test_a_list_is_exact_with_all_right_answers_and_no_wrong_one(
    items: list[str], score: ListScore, exact: bool
) -> None:
    found = score_list(QUESTION, items)
    assert (found, found.is_exact) == (score, exact)


def test_the_perfect_reader_answers_from_the_passages_of_its_prompt_alone() -> None:
    read, isolated = perfect_reader([QUESTION]), prompts_for("short_answer").isolated
    texts = [p.text for p in QUESTION.passages]
    said = [read(isolated.render(context=text, query=QUESTION.question).text) for text in texts]
    assert said == ["Ada Moss", "Tom Reed", "Jo Lum", ABSTENTION]
    assert read(isolated.render(context=" ".join(texts), query=QUESTION.question).text).split("\n") == said[:3]
    assert read(isolated.render(context=texts[0], query="Who sang?").text) == ABSTENTION


def test_each_document_of_the_shipped_lists_holds_its_own_answer_alone() -> None:
    rows = [json.loads(line) for line in (world_folder() / "lists.jsonl").read_text().splitlines()]
    questions = load_dataset("demo-lists").questions
    read = perfect_reader(questions)
    assert len(rows) == len(questions) == 100
    support: Counter[tuple[str, int]] = Counter()
    for row, question in zip(rows, questions, strict=True):
        assert question.several
        assert (list(question.answers), list(question.wrong)) == (row["gold_answers"], row["wrong_answers"])
        assert len({p.source for p in question.passages}) == len(question.passages)
        for document in row["documents"]:
            said = ABSTENTION if document["type"] == "noise" else document["answer"]
            assert read(f"{document['text']} {question.question}") == said
        for answer in (*question.answers, *question.wrong):
            told = sum(document["answer"] == answer for document in row["documents"])
            support["right" if answer in question.answers else "wrong", told] += 1
    assert all(support[kind, told] for kind in ("right", "wrong") for told in (1, 2, 3))
