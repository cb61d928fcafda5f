"""Rows of a measurement: what they say, that they are kept, and that an interruption loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.evaluation.retrieval.bench import RetrievalError
from robustrag_integrations.evaluation.retrieval.measure import measure_retrieval
from robustrag_integrations.evaluation.retrieval.questions import write_questions as write_certifiable
from robustrag_integrations.evaluation.retrieval.rows import read_retrieval
from robustrag_integrations.evaluation.run.config import ConfigError, read_config
from robustrag_integrations.evaluation.run.journal import JournalError
from robustrag_integrations.evaluation.run.runner import RunStopped
from tests.docs.pages import Page
from tests.evaluation.worlds import write_questions

HERE = "tests.evaluation.retrieval.plugin"
RULES = ["passage", "origin"]


def config(data: str, **retrieve: Any) -> Any:
    given = {"plant": [1, 3], "rules": RULES, **retrieve}
    return read_config({"data": [data], "attacks": ["pia"], "top_k": [4], "retrieve": given})


@pytest.fixture
def data(tmp_path: Path) -> str:
    return write_questions(tmp_path)


def votes(row: Any) -> dict[int, dict[str, tuple[int, int]]]:
    return {p["m"]: {v["rule"]: (v["owned"], v["groups"]) for v in p["votes"]} for p in row["measured"]}


def test_planted_documents_are_retrieved_and_owned(data: str) -> None:
    found = measure_retrieval(config(data, chunk_size=10_000))
    assert (found.made, found.failed) == (3, 0)
    for row in found.rows:
        counted = votes(row)
        assert counted[0]["passage"][0] == 0
        assert [counted[m]["passage"][0] for m in (1, 3)] == [1, 3]
        planted = [p for p in row["measured"][2]["passages"] if p["planted"]]
        assert len(planted) == 3
        assert row["measured"][2]["votes"][0]["displaced"] >= 3


def test_a_document_of_many_pieces_has_many_votes_by_passage_and_one_by_origin(data: str) -> None:
    [row, *_] = measure_retrieval(config(data, chunk_size=100)).rows
    assert votes(row)[1]["passage"][0] > 1
    assert votes(row)[1]["origin"][0] == 1


def test_sites_and_authors_are_those_of_the_attacker(data: str) -> None:
    counted = config(data, corpus=[f"{HERE}:authored"], rules=["passage", "author"], chunk_size=10_000, sites=2)
    [row, *_] = measure_retrieval(counted).rows
    assert votes(row)[3]["author"][0] == 2
    alone = config(data, corpus=[f"{HERE}:authored"], rules=["author"], chunk_size=10_000)
    assert votes(measure_retrieval(alone).rows[0])[3]["author"][0] == 1


def test_a_limit_per_source_leaves_votes_to_others(data: str) -> None:
    flooded = measure_retrieval(config(data, chunk_size=60, rules=["origin"]))
    spread = measure_retrieval(config(data, chunk_size=60, rules=["origin"], per_source=1))
    assert votes(flooded.rows[0])[1]["origin"] == (1, 1)
    owned, groups = votes(spread.rows[0])[1]["origin"]
    assert owned == 1
    assert groups == 4


@pytest.mark.parametrize("retriever", [f"{HERE}:embedding", f"{HERE}:langchain", f"{HERE}:llamaindex"])
def test_any_retriever_is_measured(data: str, retriever: str) -> None:
    if "chain" in retriever:
        pytest.importorskip("langchain_core")
    if "llama" in retriever:
        pytest.importorskip("llama_index.core")
    copying = {**config(data, retrievers=[retriever], chunk_size=10_000).given, "attacks": [f"{HERE}:asks"]}
    found = measure_retrieval(read_config(copying))
    assert found.failed == 0, found.rows[0]["error"]
    assert all(votes(row)[0]["passage"][0] == 0 for row in found.rows)
    assert all(votes(row)[3]["passage"][0] == 3 for row in found.rows)


class Stopping:
    """Interrupts after some rows, as Ctrl-C does."""

    def __init__(self, after: int) -> None:
        self._left = after

    def start(self, total: int, known: int, notes: Any) -> None:
        self.total, self.known = total, known

    def row(self, row: Any) -> None:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


def timeless(path: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in json.loads(line).items() if k != "timing"} for line in path.read_text().splitlines()]


def test_an_interrupted_measurement_goes_on_and_ends_as_an_undisturbed_one(data: str, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    measure_retrieval(config(data), output=str(whole))
    with pytest.raises(KeyboardInterrupt):
        measure_retrieval(config(data), output=str(broken), watcher=Stopping(2))
    with broken.open("ab") as file:
        file.write(b'{"torn": ')
    watcher = Stopping(9)
    assert measure_retrieval(config(data), output=str(broken), watcher=watcher).made == 1
    assert (watcher.total, watcher.known) == (3, 2)
    assert timeless(broken) == timeless(whole)
    assert measure_retrieval(config(data), output=str(broken)).made == 0
    assert measure_retrieval(config(data, plant=[2]), output=str(broken)).made == 3
    assert len(read_retrieval(broken)) == 6


def test_a_failing_retriever_costs_rows_and_then_the_run(data: str, tmp_path: Path, monkeypatch: Any) -> None:
    failing = config(data, retrievers=[f"{HERE}:failing"])
    found = measure_retrieval(failing, output=str(tmp_path / "a.jsonl"))
    assert found.failed == 3
    assert found.rows[0]["error"] == {"type": "RuntimeError", "message": "the index is down"}
    assert measure_retrieval(failing, output=str(tmp_path / "a.jsonl")).made == 3  # tried again
    monkeypatch.setattr("robustrag_integrations.evaluation.retrieval.measure.MOST_FAILURES", 2)
    with pytest.raises(RunStopped, match="the index is down"):
        measure_retrieval(failing)


def test_a_file_of_something_else_is_left_as_it_is(data: str, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"schema": "robustrag/eval-run/1"}\n')
    with pytest.raises(JournalError, match="does not begin like a measurement"):
        measure_retrieval(config(data), output=str(other))
    assert other.read_text() == '{"schema": "robustrag/eval-run/1"}\n'


@pytest.mark.parametrize(
    ("retrieve", "said"),
    [
        ({"plant": [0]}, "plant: 0"),
        ({"plant": "many"}, "plant: 'many'"),
        ({"retrievers": ["bm52"]}, "'bm52' must be 'bm25'"),
        ({"rules": []}, "rules is an empty list"),
        ({"sites": 0}, "sites: 0"),
        ({"chunk_size": 10}, "chunk_size: 10"),
        ({"retriever": "bm25"}, "unknown key 'retriever'"),
        (7, "true or keys and values"),
    ],
)
def test_wrong_settings_are_refused_by_name(retrieve: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_config({"retrieve": retrieve})


def test_what_cannot_be_measured_is_an_error_at_the_front_door(data: str) -> None:
    with pytest.raises(RetrievalError, match="cannot import"):
        measure_retrieval(config(data, retrievers=["no.such:thing"]))
    with pytest.raises(RetrievalError, match="/no/such/folder"):
        measure_retrieval(config(data, corpus=["/no/such/folder"]))
    searching = read_config({"data": [data], "attacks": ["adaptive"], "retrieve": True})
    with pytest.raises(RetrievalError, match="plants no documents"):
        measure_retrieval(searching)
    with pytest.raises(RetrievalError, match="top_k"):
        measure_retrieval(read_config({"data": [data], "top_k": "all", "retrieve": True}))


def test_certifiable_questions_hold_the_clean_retrieval_of_the_retriever(data: str, tmp_path: Path) -> None:
    [made] = write_certifiable(config(data), tmp_path / "questions", "passage")
    rows = [json.loads(line) for line in Path(made["source"]).read_text().splitlines()]
    assert len(rows) == 3
    assert all(len(row["passages"]) <= 4 for row in rows)
    assert {row["question"] for row in rows} == {r["question"] for r in measure_retrieval(config(data)).rows}


def test_the_snippet_of_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("bm25s")
    [snippet] = [s for s in Page.read("docs/evaluation.md").snippets("python") if "measure_retrieval" in s]
    exec(compile(snippet, "docs/evaluation.md", "exec"), {"__name__": "snippet"})
    assert "passage 5 10.0 10.0" in capsys.readouterr().out
