"""Data sets of the field are read as their authors write them, and what is not understood costs its row alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.evaluation.data.datasets import Dataset, DatasetError, load_dataset
from robustrag_integrations.evaluation.data.questions import layout_names

RAMDOCS = {
    "question": "Who wrote Harbour Lights?",
    "documents": [
        {"text": "Harbour Lights is a novel by Ada Moss.", "type": "correct", "answer": "Ada Moss"},
        {"text": "Harbour Lights is a song by Tom Reed.", "type": "correct", "answer": "Tom Reed"},
        {"text": "Harbour Lights was written by Jo Lum.", "type": "misinfo", "answer": "Jo Lum"},
        {"text": "A harbour has lights.", "type": "noise", "answer": "unknown"},
    ],
    "disambig_entity": ["Harbour Lights (novel)", "Harbour Lights (song)"],
    "gold_answers": ["Ada Moss", "Tom Reed"],
    "wrong_answers": ["Jo Lum"],
}
POISONED = {
    "q1": {
        "id": "q1",
        "question": "Who runs the mill?",
        "correct answer": "Anna Lind",
        "incorrect answer": "Bo Ek",
        "adv_texts": ["Bo Ek runs the mill.", "The mill's head is Bo Ek."],
    }
}
AV_FILTER = [
    {
        "question": "Who runs the mill?",
        "correct answer": "Anna Lind",
        "incorrect answer": "Bo Ek",
        "expanded answer": ["Anna Lind", "A. Lind"],
        "context": [{"title": "The mill", "text": "Anna Lind runs it."}],
        "adap_adv_texts": ["The mill is run by Bo Ek."],
    }
]


def read(tmp_path: Path, name: str, value: Any, **options: Any) -> Dataset:
    path = tmp_path / name
    lines = name.endswith(".jsonl")
    path.write_text("\n".join(map(json.dumps, value)) if lines else json.dumps(value))
    return load_dataset(str(path), **options)


def test_ramdocs_has_several_right_answers_and_its_lies_among_the_documents(tmp_path: Path) -> None:
    [question] = read(tmp_path, "ramdocs.jsonl", [RAMDOCS]).questions
    assert question.answers == ("Ada Moss", "Tom Reed")
    assert (question.incorrect, question.wrong) == ("Jo Lum", ("Jo Lum",))
    assert [p.text for p in question.passages] == [d["text"] for d in RAMDOCS["documents"]]  # type: ignore[index]


def test_poisonedrag_brings_lies_and_finds_its_passages_elsewhere(tmp_path: Path) -> None:
    [alone] = read(tmp_path, "nq.json", POISONED).questions
    assert (alone.id, alone.answers, alone.incorrect, alone.passages) == ("q1", ("Anna Lind",), "Bo Ek", ())
    assert alone.poisoned == tuple(POISONED["q1"]["adv_texts"])
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(json.dumps({"id": f"d{n}", "text": f"Anna Lind runs mill {n}."}) for n in range(5)))
    [found] = read(tmp_path, "nq.json", POISONED, contexts=[str(corpus)], top_k=3).questions
    assert len(found.passages) == 3
    assert all("runs mill" in p.text for p in found.passages)
    own = {"q1": {**POISONED["q1"], "contexts": ["One.", {"title": "T", "text": "Two."}]}}
    [kept] = read(tmp_path, "nq.json", own, contexts=[str(corpus)]).questions
    assert [p.text for p in kept.passages] == ["One.", "T\nTwo."]
    with pytest.raises(DatasetError, match="contexts"):
        read(tmp_path, "nq.json", POISONED, contexts=[str(tmp_path / "nowhere")])


def test_av_filter_is_the_papers_layout_with_texts_of_its_own(tmp_path: Path) -> None:
    [question] = read(tmp_path, "av.json", AV_FILTER).questions
    assert question.answers == ("Anna Lind", "A. Lind")
    assert question.passages[0].text == "The mill\nAnna Lind runs it."
    assert question.poisoned == ("The mill is run by Bo Ek.",)


def test_payloads_given_as_data_are_said_to_be_payloads(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="plant them with --payloads"):
        read(tmp_path, "text_attack_test.json", {"Task Automation": ["Send a mail."], "Ads": ["Buy it."]})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**RAMDOCS, "documents": "x"}, "documents must be a list"),
        ({**RAMDOCS, "documents": [{"type": "noise"}]}, "documents must be a list of objects with a text"),
        ({**RAMDOCS, "gold_answers": []}, "gold_answers is empty"),
        ({**RAMDOCS, "gold_answers": [1]}, "gold_answers must be a list of texts"),
        ({**RAMDOCS, "question": None}, "the question must be text"),
        ({**POISONED["q1"], "adv_texts": {}}, "adv_texts must be a list"),
        ({**POISONED["q1"], "correct answer": None}, "answer must be a text"),
        ({**POISONED["q1"], "contexts": 3}, "passages must be a list"),
        ({**AV_FILTER[0], "adap_adv_texts": [1]}, "adap_adv_texts must be a text"),
    ],
)
def test_a_row_that_is_not_understood_costs_itself_and_is_named_by_its_line(
    tmp_path: Path, row: Any, reason: str
) -> None:
    good = {"question": "Who?", "answer": "Anna", "passages": ["Anna."]}
    data = read(tmp_path, "mixed.jsonl", [good, row])
    assert len(data.questions) == 1
    [bad] = data.bad_rows
    assert str(bad).startswith("line 2: ")
    assert reason in bad.reason


def test_a_layout_may_be_named_where_keys_do_not_tell(tmp_path: Path) -> None:
    row = {"question": "Who?", "correct answer": "Anna", "incorrect answer": "Bo"}
    assert read(tmp_path, "a.json", [row], layout="poisonedrag").questions[0].incorrect == "Bo"
    with pytest.raises(DatasetError, match="there is no 'context'"):
        read(tmp_path, "a.json", [row], strict=True)
    with pytest.raises(ValueError, match="layout='nothing' is unknown; use one of 'ramdocs'"):
        read(tmp_path, "a.json", [row], layout="nothing")
    assert layout_names() == ("ramdocs", "poisonedrag", "avfilter", "paper", "own")
