"""One loader for every layout; a bad row costs itself and is named, whatever is in it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from robustrag_integrations.evaluation.data import datasets
from robustrag_integrations.evaluation.data.datasets import Dataset, DatasetError, load_dataset
from tests.needs import DATA, or_skip

OWN = {"question": "Where is it?", "answer": "Paris", "passages": ["It is in Paris.", {"text": "Rome.", "source": "s"}]}
PAPER = {
    "id": 7,
    "question": "How many?",
    "correct answer": ["15%"],
    "expanded answer": ["0.15", "15%"],
    "incorrect answer": "32%",
    "incorrect_context": ["It is 32% of all.", "Nobody knows."],
    "context": [{"title": "T", "text": "15% of them.", "link": "https://a"}, {"title": "Only", "link": "https://b"}],
    "choices": ["10%", "15%", "45%", ""],
    "choices answer": "1",
}


def written(folder: Path, name: str, *values: object) -> str:
    """A file of these rows: a JSON list for `.json`, else lines; gzipped when its name says so."""
    if name.removesuffix(".gz").endswith(".json"):
        text = json.dumps(values)
    else:
        text = "".join(v + "\n" if isinstance(v, str) else json.dumps(v) + "\n" for v in values)
    data = text.encode()
    path = folder / name
    path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return str(path)


@pytest.mark.parametrize("name", ["d.json", "d.json.gz", "d.jsonl", "d.jsonl.gz", "d.txt"])
def test_lists_and_lines_gzipped_or_not_hold_the_same_questions(tmp_path: Path, name: str) -> None:
    found = load_dataset(written(tmp_path, name, OWN, PAPER))
    assert (found.name, found.task, found.bad_rows) == ("d.txt" if name == "d.txt" else "d", "short_answer", ())
    assert [q.question for q in found.questions] == ["Where is it?", "How many?"]


def test_the_papers_layout(tmp_path: Path) -> None:
    [q] = load_dataset(written(tmp_path, "d.json", PAPER)).questions
    assert q.id == "7"
    assert q.answers == ("15%", "0.15")
    assert (q.incorrect, q.incorrect_choice) == ("32%", None)
    assert [(p.text, p.origin) for p in q.passages] == [("T\n15% of them.", "https://a"), ("Only", "https://b")]
    assert (q.choices, q.correct_choice) == (("10%", "15%", "45%"), 1)
    assert q.poisoned == ("It is 32% of all.", "Nobody knows.")


def test_multiple_choice_attacks_an_option_and_its_lies_are_about_that_option(tmp_path: Path) -> None:
    [q] = load_dataset(written(tmp_path, "d.json", PAPER), task="multiple_choice").questions
    assert q.answers == ("15%",)
    assert (q.incorrect, q.incorrect_choice) == ("45%", 2)
    assert q.poisoned == ("It is 45% of all.",)


def test_top_k_and_limit_cut(tmp_path: Path) -> None:
    path = written(tmp_path, "d.jsonl", OWN, PAPER, "not read any more")
    found = load_dataset(path, top_k=1, limit=2)
    assert [len(q.passages) for q in found.questions] == [1, 1]
    assert (found.bad_rows, found.top_k) == ((), 1)


BAD = [
    ("[1]", "expected an object"),
    ("{}", "there is no 'answer'"),
    ("not json", "not JSON"),
    ('{"question": "q", "answer": NaN, "passages": []}', "NaN"),
    ('{"question": "q", "answer": "a", "passages": "p"}', "passages must be a list"),
    ('{"question": " ", "answer": "a", "passages": []}', "question must be a text"),
    ('{"question": "q", "answer": "a", "passages": [], "choices": ["a"], "correct_choice": 1}', "correct_choice=1"),
    ('{"question": "q", "correct answer": "a"}', "there is no 'context'"),
    ('{"question": "q", "correct answer": "a", "context": [], "choices answer": "9" }', "correct_choice=9"),
    ('{"question": "q", "answer": "' + "a" * 20_001 + '", "passages": []}', "20,001 characters"),
    ('{"question": "q", "answer": "a", "passages": ["' + "a" * 1_000_001 + '"]}', "1,000,001 characters"),
    ('{"question": "q", "answer": "a", "passages": [' + ",".join(["0"] * 10_001) + "]}", "10,001 passages"),
    ("[" * 100_000, "nested too deeply"),
]


@pytest.mark.parametrize(("line", "said"), BAD, ids=[said for _, said in BAD])
def test_a_bad_row_is_named_by_line_and_costs_only_itself(tmp_path: Path, line: str, said: str) -> None:
    path = written(tmp_path, "d.jsonl", OWN, "", line, PAPER)
    found = load_dataset(path)
    assert len(found.questions) == 2
    [bad] = found.bad_rows
    assert bad.line == 3
    assert said in bad.reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choices": None}, "choices"),
        ({"choices": ["15%"], "choices answer": 0}, "2 to 26"),
        ({"choices": ["b", "15%", "15%"]}, "the same"),
        ({"choices answer": None, "choices": ["1", "2"]}, "none of the choices"),
    ],
)
def test_multiple_choice_needs_options_and_a_right_one(tmp_path: Path, change: dict[str, object], said: str) -> None:
    row = {**PAPER, **change}
    if row["choices"] is None:
        row["choices answer"] = None
    path = written(tmp_path, "d.json", PAPER, {**row, "id": "other"})
    assert len(load_dataset(path).questions) == 2
    [bad] = load_dataset(path, task="multiple_choice").bad_rows
    assert said in bad.reason


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "LARGEST_FILE", 1 << 20)
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * (50 << 20), mtime=0))
    with pytest.raises(DatasetError, match="holds more than 1 MiB"):
        load_dataset(str(path))
    plain = tmp_path / "d.jsonl"
    plain.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(DatasetError, match="holds more than 1 MiB"):
        load_dataset(str(plain))


def test_a_file_of_too_many_rows_or_too_long_a_list_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "MOST_ROWS", 3)
    monkeypatch.setattr(datasets, "LARGEST_LIST", 100)
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps(OWN) + "\n\n\n\n1\n2\n3\n")
    with pytest.raises(DatasetError, match="more than 3 rows"):
        load_dataset(str(path))
    assert len(load_dataset(str(path), limit=1).questions) == 1
    with pytest.raises(DatasetError, match="one question per line"):
        load_dataset(written(tmp_path, "d.json", PAPER))


def check(found: Dataset) -> None:
    """What everything downstream relies on."""
    assert len({q.id for q in found.questions}) == len(found.questions)
    for q in found.questions:
        assert q.question.strip()
        assert q.answers
        assert all(a.strip() for a in q.answers)
        for index in (q.correct_choice, q.incorrect_choice):
            assert index is None or 0 <= index < len(q.choices)
        json.dumps([q.question, q.answers, q.incorrect, q.poisoned]).encode()
        if found.task == "multiple_choice":
            assert q.correct_choice is not None
            assert q.incorrect_choice != q.correct_choice
            assert q.incorrect_choice is not None
            assert q.incorrect == q.choices[q.incorrect_choice]
            assert q.answers == (q.choices[q.correct_choice],)


def test_the_shipped_questions_have_passages_answers_and_targets() -> None:
    pytest.importorskip("bm25s")
    found = load_dataset("demo", limit=12)
    assert (found.name, found.top_k, found.bad_rows) == ("demo", 10, ())
    check(found)
    for q in found.questions:
        assert len(q.passages) == 10
        assert q.incorrect
        assert q.correct_choice is not None
        assert any(a in p.text for a in q.answers for p in q.passages)
    check(load_dataset("demo", task="multiple_choice", limit=3))


@pytest.mark.parametrize(
    ("name", "task", "count", "bad"),
    [
        ("robustrag-realtimeqa.json.gz", "short_answer", 100, 0),
        ("robustrag-realtimeqa.json.gz", "multiple_choice", 99, 1),  # one question names an option twice
        ("robustrag-biogen.json.gz", None, 50, 0),
        ("realtimeqa-news-2023.jsonl.gz", "short_answer", 1022, 6),  # six rows stand in it twice
    ],
)
def test_the_real_files_are_read(name: str, task, count: int, bad: int) -> None:
    or_skip("PAPER_DATA")
    path = DATA / name
    found = load_dataset(str(path), task=task, top_k=10)
    assert (len(found.questions), len(found.bad_rows)) == (count, bad)
    assert found.task == (task or "long_form")
    check(found)
    assert all(q.incorrect and q.passages for q in found.questions)


CHOICES = {**OWN, "choices": ["Rome", "Paris", "Oslo"]}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**CHOICES, "correct_choice": 0}, "the answer 'Paris' is not the right option, 'Rome' (number 0, from 0)"),
        ({**OWN, "incorrect": "Paris"}, "the incorrect answer 'Paris' is a right one as well"),
        (
            {**OWN, "answer": ["Rome", "Paris"], "incorrect": "the  paris."},
            "the incorrect answer 'the  paris.' is a right",
        ),
        ({**PAPER, "choices answer": "2"}, "the answer '15%' is not the right option, '45%'"),
        ({**PAPER, "incorrect answer": "0.15"}, "the incorrect answer '0.15' is a right one as well"),
    ],
)
def test_a_row_that_contradicts_itself_is_left_out_and_named(tmp_path, row, said) -> None:
    found = load_dataset(written(tmp_path, "d.jsonl", OWN, row))
    assert len(found.questions) == 1
    assert [bad.line for bad in found.bad_rows] == [2]
    assert said in found.bad_rows[0].reason
