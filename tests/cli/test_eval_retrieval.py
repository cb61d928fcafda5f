"""`robustrag eval --retrieve`: measured, certified, shown, resumed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.cli import main
from tests.evaluation.worlds import LIGHT, write_questions

VOTES = ("--one-vote", "passage", "origin")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    data = write_questions(tmp_path)

    def call(*arguments: str, base: tuple[str, ...] = ("--data", data, "--top-k", "4", *VOTES)) -> Any:
        capsys.readouterr()
        code = main(["eval", "--retrieve", *base, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_without_certificates_no_model_is_asked(run: Any) -> None:
    code, out, err = run("--plant", "1", "3", "--csv", "rho.csv", "--model", "python:no.such:model")
    assert code == 0
    assert "not a bound" in out
    assert "6 rows are in eval.retrieval.jsonl, 6 of them new" in err
    assert "add --certify" in err
    lines = list(csv.DictReader(Path("rho.csv").read_text().splitlines()))
    assert {(line["rule"], line["m"]) for line in lines} == {(r, m) for r in ("passage", "origin") for m in "013"}
    assert not Path("eval.jsonl").exists()


def test_the_same_command_makes_no_row_twice(run: Any) -> None:
    run("--plant", "2")
    _, _, err = run("--plant", "2")
    assert "6 of 6 rows are in eval.retrieval.jsonl already" in err


def test_certified_accuracy_stands_next_to_rho_for_each_kind_of_vote(run: Any) -> None:
    code, out, _ = run(
        *("--plant", "1", "--certify", "1", "2", "--model", LIGHT, "--defense", "keyword", "--json", "--no-cache")
    )
    assert code == 0
    shown = json.loads(out)
    assert shown["schema"] == "robustrag/retrieval-summary/1"
    clean = [line for line in shown["lines"] if line["m"] == 0]
    assert {line["rule"] for line in clean} == {"passage", "origin"}
    assert all(line["cacc"]["keyword"]["n"] == 3 for line in clean)
    rows = [json.loads(line) for line in Path("eval.jsonl").read_text().splitlines()[1:]]
    assert {row["attack"]["name"] for row in rows} == {"none"}


def test_with_one_passage_per_source_what_stays_certified_is_of_that_retrieval(run: Any) -> None:
    more = ("--per-source", "1", "--model", LIGHT, "--defense", "keyword", "--json", "--no-cache")
    code, out, err = run("--plant", "1", "--certify", "1", *more)
    assert code == 0, err
    lines = {(line["rule"], line["m"]): line for line in json.loads(out)["lines"]}
    assert lines["origin", 0]["cacc"]["keyword"]["n"] == 3
    assert lines["origin", 1]["displaced"] >= lines["origin", 1]["rho"]["mean"]
    code, out, err = run("--plant", "1", "--certify", "1", "--per-source", "2", *more[2:])
    lines = {(line["rule"], line["m"]): line for line in json.loads(out)["lines"]}
    assert lines["passage", 0]["cacc"]["keyword"]["n"] == 3
    assert lines["origin", 0]["cacc"] == {}


def test_a_run_to_certify_needs_a_defence_with_certificates(run: Any) -> None:
    code, _, err = run("--certify", "1", "--defense", "vanilla")
    assert code == 2
    assert "needs a defence that has certificates" in err


def test_the_report_shows_both_or_the_measurement_alone(run: Any) -> None:
    run("--plant", "1", "--certify", "1", "--model", LIGHT, "--defense", "keyword", "--no-cache")
    assert main(["report", "eval.jsonl"]) == 0
    page = Path("eval.html").read_text()
    assert "Planted documents among the retrieved" in page
    assert "cacc keyword" in page
    assert main(["report", "eval.retrieval.jsonl"]) == 0
    alone = Path("eval.retrieval.html").read_text()
    assert "an attacker owns" in alone


def test_the_fictional_world_is_the_corpus_of_the_demo(run: Any) -> None:
    pytest.importorskip("bm25s")
    code, out, _ = run("--limit", "1", "--plant", "5", "--attack", "pia", base=VOTES)
    assert code == 0
    assert "demo (qa)" in out
    [row] = [json.loads(line) for line in Path("eval.retrieval.jsonl").read_text().splitlines()[1:]]
    assert row["corpus_size"] == 495
    assert [v["owned"] for v in row["measured"][1]["votes"]] == [10, 5]


def test_a_config_names_it_too_and_flags_alone_do_nothing(run: Any, capsys: Any) -> None:
    Path("study.json").write_text(json.dumps({"retrieve": {"plant": [4], "rules": ["passage"]}, "limit": 1}))
    assert main(["eval", "study.json", "--attack", "pia"]) == 0
    assert Path("study.retrieval.jsonl").exists()
    capsys.readouterr()
    assert main(["eval", "--plant", "3"]) == 2
    assert "--plant goes with --retrieve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--retriever", "elastic"), "'elastic' must be 'bm25'"),
        (("--retriever", "no.such:thing"), "cannot import"),
        (("--corpus", "/no/such/place"), "/no/such/place"),
        (("--attack", "adaptive"), "plants no documents"),
    ],
)
def test_what_cannot_be_measured_is_wrong_usage(run: Any, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err


def test_tables_for_papers_and_pages(run: Any) -> None:
    code, _, _ = run("--plant", "1", "--latex", "rho.tex", "--markdown", "rho.md")
    assert code == 0
    assert "\\toprule" in Path("rho.tex").read_text()
    table = Path("rho.md").read_text()
    assert "| rho |" in table
    assert "| top k |" in table, "columns that the terminal shows above its table"
    assert "not a bound" in table
