from __future__ import annotations

import json
from pathlib import Path

import pytest

from robustrag_integrations.cli import main
from robustrag_integrations.cli.output import EXIT_USAGE
from robustrag_integrations.evaluation.run.config import load_config, read_config
from tests.evaluation.worlds import LIGHT, write_questions


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """`robustrag eval` with a light model, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    data = write_questions(tmp_path)

    def call(*arguments: str, model: str = LIGHT, given: bool = True):
        capsys.readouterr()
        base = [
            "--data",
            data,
            "--model",
            model,
            "--set",
            "top_k=4",
            "--method",
            "vanilla",
            "voting",
            "--task",
            "multiple_choice",
        ]
        code = main(["eval", *(base if given else []), *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_run_ends_with_a_table_and_rows(run) -> None:
    code, out, err = run("--certify", "1", "2", "--output", "run.jsonl")
    assert code == 0
    assert out.startswith("One planted passage that gives orders (prompt injection): plain RAG said the attacker's")
    assert out.count("plain RAG  none") == out.count("voting     none") == 1
    assert "2 injected" in out
    assert max(map(len, out.splitlines())) <= 120
    assert "run.jsonl holds 18 rows, 18 of them new" in err
    assert len(Path("run.jsonl").read_text().splitlines()) == 19
    _, out, _ = run("--certify", "1", "2", "--json", "--output", "run.jsonl")
    lines = json.loads(out)["lines"]
    assert {line["setup"] for line in lines} == {"vanilla", "voting"}
    assert (lines[0]["accuracy"]["mean"], lines[0]["accuracy"]["n"]) == (1.0, 3)
    assert 0 < lines[0]["accuracy"]["low"] < 1
    assert lines[0]["model_calls"] == 1


def test_the_same_command_goes_on_and_another_one_adds(run) -> None:
    run("--attack", "pia")
    _, _, err = run("--attack", "pia")
    assert "12 of 12 rows are in eval.jsonl already" in err
    _, _, err = run("--attack", "pia", "jamming")
    assert "eval.jsonl holds 18 rows, 6 of them new" in err


def test_what_show_config_prints_is_a_config(run, tmp_path) -> None:
    pytest.importorskip("yaml")
    code, out, _ = run("--certify", "1", "--show-config", "--limit", "3")
    assert code == 0
    path = tmp_path / "c.yaml"
    path.write_text(out)
    config = read_config(load_config(str(path)))
    assert config.certify.corruption_sizes == (1,)
    assert config.limit == 3
    assert not Path("eval.jsonl").exists()


def test_an_origin_has_one_vote_by_default_and_the_configuration_says_so(run, tmp_path) -> None:
    yaml = pytest.importorskip("yaml")
    passages = [{"text": f"The mayor of Velbury is Anna Lind. {n}", "source": "a.pdf"} for n in range(4)]
    row = {"question": "Who is the mayor of Velbury?", "answer": "Anna Lind", "passages": passages}
    (tmp_path / "q.jsonl").write_text(json.dumps(row))
    for given, sources, shown in (([], 1, "origin"), (["--set", "group_by=passage"], 4, "passage")):
        flags = ["--data", str(tmp_path / "q.jsonl"), "--method", "vanilla", "consensus", "--attack", "none", *given]
        assert run(*flags, "--output", f"{shown}.jsonl", given=False)[0] == 0
        rows = [json.loads(line) for line in Path(f"{shown}.jsonl").read_text().splitlines()]
        [answer] = [row["answer"] for row in rows if row.get("method") == "consensus"]
        assert len(answer["sources"]) == sources
        _, out, _ = run(*flags, "--show-config", given=False)
        assert yaml.safe_load(out)["methods"][1] == {"name": "consensus", "group_by": shown}
    _, out, _ = run("--method", "keyword", "--set", "passages_per_source=2", "--show-config", given=False)
    assert yaml.safe_load(out)["methods"] == [{"name": "keyword", "passages_per_source": 2, "group_by": "passage"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "alpha=0.2"], "alpha: no --method here takes it"),
        (["--base-url", "http://x/v1"], "base-url: no --model here takes it"),
        (["--set", "dtype=bfloat16"], "dtype: no --model here takes it"),
        (["--data", "nowhere.jsonl"], "cannot read 'nowhere.jsonl'"),
        (["--output", "."], "cannot open '.'"),
        (["--cache", "lands.jsonl"], "cannot use the cache"),
    ],
)
def test_wrong_usage_names_the_fix(run, arguments, said) -> None:
    code, out, err = run(*arguments)
    assert said in err
    assert code == EXIT_USAGE
    assert out == ""


def test_flags_win_over_the_file(run, tmp_path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"top_k": [5], "limit": 7, "methods": ["vanilla", "decoding"]}))
    flags = ("--limit", "2", "--set", "eta=0.5,1", "--certify", "2", "--model", "bundled", "python:math:sqrt")
    more = ("--set", "dtype=bfloat16", "--set", "seed=7")
    _, out, _ = run(str(path), *flags, *more, "--show-config", given=False)
    path.with_suffix(".yaml").write_text(out)
    shown = load_config(str(path.with_suffix(".yaml")))
    assert (shown["top_k"], shown["limit"], shown["seed"]) == ([5], 2, 7)
    assert shown["methods"] == ["vanilla", {"name": "decoding", "eta": [0.5, 1], "group_by": "origin"}]
    assert shown["certify"] == {"corruption_sizes": [2]}
    assert shown["models"] == [{"name": "bundled", "dtype": "bfloat16"}, "python:math:sqrt"]
