"""The paper's tables and figures, each run to its end."""

from __future__ import annotations

import pytest

from robustrag_integrations.evaluation.run.bench import LocalEngine
from robustrag_integrations.evaluation.run.config import ConfigError, read_config
from robustrag_integrations.evaluation.run.planning import make_plan
from robustrag_integrations.evaluation.run.presets import PRESETS
from robustrag_integrations.evaluation.run.runner import evaluate
from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.lines import lines_table
from robustrag_integrations.evaluation.show.paper import layout_table
from robustrag_integrations.evaluation.show.tables import text_table
from tests.evaluation.worlds import LIGHT, write_long, write_questions

HEADERS = {
    "paper-table1": "model  defence  lands (mc) bacc  lands (mc) cacc  lands (qa) bacc  lands (qa) cacc  lives (long)",
    "paper-table2": "lands (qa) pia racc / asr  lands (qa) poison racc / asr  lives (long) pia rllmj / asr",
    "modification": "lands (mc) injection  lands (mc) modification  lands (qa) injection",
}
NAMES = [name for name in PRESETS if name != "field"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


def test_the_preset_of_the_fields_attacks_runs_to_its_end(tmp_path) -> None:
    data = write_questions(tmp_path, count=1, passages=5)
    config = read_config({**PRESETS["field"].config, "models": [LIGHT], "data": data, "ranks": ["last"]})
    done = evaluate(config, output=str(tmp_path / "run.jsonl"), engine=LocalEngine(None))
    assert [r["error"] for r in done.rows if r["error"]] == []
    assert {r["attack"]["name"] for r in done.rows} > {"none", "conditional", "refusal", "overthinking", "bidi"}


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_runs_to_its_end_with_the_bundled_reader(name, tmp_path, cache) -> None:
    pytest.importorskip("transformers")
    data = [write_questions(tmp_path, count=1, passages=3), write_long(tmp_path)]
    config = read_config({**PRESETS[name].config, "data": data, "limit": 1})
    engine = LocalEngine(cache if PRESETS[name].cached else None)
    done = evaluate(config, output=str(tmp_path / "run.jsonl"), engine=engine)
    assert [r["error"] for r in done.rows if r["error"]] == []
    lines = summarise(done.rows)
    shown = text_table(layout_table(name, lines)) if name in HEADERS else lines_table(lines)
    assert " ".join(HEADERS.get(name, "setup").split()) in " ".join(shown.split())


def test_table_1_has_a_row_per_defence_and_marks_what_cannot_be_measured(tmp_path) -> None:
    given = {
        **PRESETS["paper-table1"].config,
        "models": [LIGHT],
        "defenses": ["no-rag", "vanilla", "keyword", "voting"],
    }
    config = read_config({**given, "data": [write_questions(tmp_path)], "top_k": [4]})
    lines = [
        " ".join(line.split())
        for line in text_table(layout_table("paper-table1", summarise(evaluate(config).rows))).split("\n")
    ]
    assert f"{LIGHT} no-rag 0.0 -- 0.0 --" in lines
    assert f"{LIGHT} vanilla 100.0 -- 100.0 --" in lines
    assert f"{LIGHT} keyword 100.0 0.0" in lines or f"{LIGHT} keyword 100.0 100.0" in lines
    assert f"{LIGHT} voting 100.0 100.0" in lines


def test_attack_success_stands_next_to_accuracy(tmp_path) -> None:
    given = {**PRESETS["paper-table2"].config, "models": [LIGHT], "defenses": ["vanilla", "keyword"]}
    config = read_config({**given, "data": [write_questions(tmp_path)], "top_k": [4]})
    shown = text_table(layout_table("paper-table2", summarise(evaluate(config).rows)))
    assert f"{LIGHT} vanilla 0.0 / 100.0" in " ".join(shown.split())


def test_prompts_show_as_many_worked_examples_as_the_papers_none_for_choices_four_short_one_long() -> None:
    for name in NAMES:
        for spec in read_config(PRESETS[name].config).defenses:
            shown = {"mc": {0}, "qa": {1, 4} if name == "runtime" else {4}, "long": {1}}
            for task in spec.tasks if spec.name != "no-rag" else ():
                assert set(spec.settings.get("exemplars", (0,))) == shown[task], (name, spec.name, task)


def test_time_is_measured_without_the_cache() -> None:
    assert [name for name, preset in PRESETS.items() if not preset.cached] == ["runtime"]


def test_a_preset_leaves_out_what_a_chat_api_cannot_do_and_says_so(tmp_path) -> None:
    data = [write_questions(tmp_path), write_long(tmp_path)]
    for name in ("paper-table1", "paper-table2", "modification", "group-size", "top-k", "corruption", "runtime"):
        config = read_config({**PRESETS[name].config, "data": data, "models": ["openai:gpt-x", "bundled"]})
        plan = make_plan(config)
        defenses = {(job.setup.model.name, job.setup.defense) for job in plan.jobs}
        assert ("openai:gpt-x", "decoding") not in defenses
        assert ("bundled", "decoding") in defenses
        assert ("openai:gpt-x", "keyword") in defenses
        said = next(note for note in plan.notes if note.startswith("openai:gpt-x: "))
        assert "decoding" in said
        assert said.endswith("left out: it gives no token probabilities")
    with pytest.raises(ConfigError, match=r"there is nothing to do.*openai:gpt-x: decoding left out"):
        make_plan(read_config({**PRESETS["eta"].config, "data": data, "models": ["openai:gpt-x"]}))


def test_the_thresholds_of_each_task_stay(tmp_path) -> None:
    config = read_config({**PRESETS["paper-table1"].config, "models": ["openai:gpt-x"],
                          "data": [write_questions(tmp_path), write_long(tmp_path)]})  # fmt: skip
    found = {(j.task, dict(j.setup.settings)["alpha"], dict(j.setup.settings)["beta"])
             for j in make_plan(config).jobs if j.setup.defense == "keyword"}  # fmt: skip
    assert found == {("qa", 0.2, 3), ("long", 0.4, 4)}


def test_injection_stands_beside_modification(tmp_path) -> None:
    given = {**PRESETS["modification"].config, "models": [LIGHT], "data": [write_questions(tmp_path)], "top_k": [4]}
    lines = summarise(evaluate(read_config(given)).rows)
    shown = [" ".join(line.split()) for line in text_table(layout_table("modification", lines)).split("\n")]
    pairs = "lands (mc) injection lands (mc) modification lands (qa) injection lands (qa) modification"
    assert f"model defence {pairs}" in shown
    assert not any("decoding" in line for line in shown)
    keyword, voting = (next(line for line in shown if f" {name} " in line) for name in ("keyword", "voting"))
    for line in (keyword, voting):
        injected, modified = map(float, line.split()[-2:])
        assert modified <= injected
