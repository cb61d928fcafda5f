"""The paper's tables and figures as configurations, each run to its end."""

from __future__ import annotations

from typing import Any

import pytest

import benchmarks.compare  # noqa: F401 - makes no-rag known
from robustrag_integrations.evaluation.run.config import ConfigError, load_config, read_config
from robustrag_integrations.evaluation.run.planning import make_plan
from robustrag_integrations.evaluation.run.runner import LocalEngine, evaluate
from robustrag_integrations.evaluation.score.summary import Line, summarise
from robustrag_integrations.evaluation.show.tables import main_tables
from tests.evaluation.worlds import LIGHT, write_long, write_questions
from tests.needs import ROOT

FOLDER = ROOT / "benchmarks" / "compare" / "studies"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def study(name: str, **more: Any) -> dict[str, Any]:
    return {**load_config(str(FOLDER / f"{name}.yaml")), **more}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "field"])
def test_every_study_runs_to_its_end_with_the_bundled_reader(name, tmp_path, cache) -> None:
    pytest.importorskip("transformers")
    data = [write_questions(tmp_path, count=1, passages=3), write_long(tmp_path)]
    config = read_config(study(name, data=data, limit=1))
    engine = LocalEngine(cache)
    done = evaluate(config, output=str(tmp_path / "run.jsonl"), engine=engine)
    assert [r["error"] for r in done.rows if r["error"]] == []
    assert main_tables(summarise(done.rows))


def _lines(name, tmp_path, **more) -> dict[tuple[str, str, str], Line]:
    """The lines of a study over a light model, by task, setup and attack."""
    given = study(name, models=[LIGHT], data=[write_questions(tmp_path)], top_k=[4], **more)
    return {(line.task, line.setup, line.attack.name): line for line in summarise(evaluate(read_config(given)).rows)}


def test_table_1_has_a_line_per_defence_and_no_number_for_what_cannot_be_measured(tmp_path) -> None:
    lines = _lines("paper-table1", tmp_path, methods=["no-rag", "vanilla", "keyword", "voting"])
    assert {key: line.accuracy.mean for key, line in lines.items()} == {
        ("multiple_choice", "no-rag", "none"): 0,
        ("multiple_choice", "vanilla", "none"): 1,
        ("multiple_choice", "voting", "none"): 1,
        ("short_answer", "no-rag", "none"): 0,
        ("short_answer", "vanilla", "none"): 1,
        ("short_answer", "keyword", "none"): 1,
    }
    assert {key[1] for key, line in lines.items() if line.certified} == {"keyword", "voting"}


def test_attack_success_stands_next_to_accuracy(tmp_path) -> None:
    lines = _lines("paper-table2", tmp_path, methods=["vanilla", "keyword"])
    attacked = lines["short_answer", "vanilla", "pia"]
    assert (attacked.accuracy.mean, attacked.asr.mean) == (0, 1)


def test_a_study_leaves_out_what_a_chat_api_cannot_do_and_says_so(tmp_path) -> None:
    data = [write_questions(tmp_path), write_long(tmp_path)]
    for name in (
        "paper-table1",
        "paper-table2",
        "modification",
        "passages-per-source",
        "top-k",
        "corruption",
        "runtime",
    ):
        config = read_config(study(name, data=data, models=["openai:gpt-x", "bundled"]))
        plan = make_plan(config)
        defenses = {(job.setup.model.name, job.setup.method) for job in plan.jobs}
        assert ("openai:gpt-x", "decoding") not in defenses
        assert ("bundled", "decoding") in defenses
        assert ("openai:gpt-x", "keyword") in defenses
        said = next(note for note in plan.notes if note.startswith("openai:gpt-x: "))
        assert "decoding" in said
        assert said.endswith("left out: it gives no token probabilities")
    with pytest.raises(ConfigError, match=r"there is nothing to do.*openai:gpt-x: decoding left out"):
        make_plan(read_config(study("eta", data=data, models=["openai:gpt-x"])))


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_a_valid_config(name: str) -> None:
    assert read_config(study(name)).methods
