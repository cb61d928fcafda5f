from __future__ import annotations

import json
from pathlib import Path

import pytest

from robustrag_integrations.evaluation.run.config import DEFAULTS, ConfigError, PlannedAttack, load_config, read_config
from robustrag_integrations.evaluation.run.presets import PRESETS

CONFIG = {
    "data": ["demo"],
    "defenses": ["vanilla", {"name": "keyword", "alpha": [0.2, 0.3]}],
    "attacks": [{"name": "pia", "ranks": ["first", 3], "corruption_sizes": [1, 2]}],
    "certify": {"corruption_sizes": [2, 1], "attacks": ["modification"]},
}


def test_every_attack_is_run_at_every_rank_and_size_after_the_clean_run() -> None:
    config = read_config(CONFIG)
    assert config.planned_attacks[0].name == "none"
    assert [(a.rank, a.corruption_size) for a in config.planned_attacks[1:]] == [
        ("first", 1),
        (3, 1),
        ("first", 2),
        (3, 2),
    ]
    assert config.defenses[1].settings == {"alpha": (0.2, 0.3)}
    assert config.certify is not None
    assert config.certify.corruption_sizes == (1, 2)


def test_yaml_and_json_say_the_same(tmp_path) -> None:
    yaml = pytest.importorskip("yaml")
    (tmp_path / "c.json").write_text(json.dumps(CONFIG))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    read = [read_config(load_config(str(tmp_path / name))) for name in ("c.json", "c.yaml")]
    assert read[0] == read[1] == read_config(CONFIG)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"defences": []}, "defences: unknown key; did you mean 'defenses'?"),
        ({"defenses": ["keywrd"]}, "defenses.name: 'keywrd' must be one of vanilla, keyword"),
        ({"defenses": ["vanilla", {"name": "keyword", "alpha": 2}]}, "defenses[1].alpha: alpha=2 must lie in [0, 1]"),
        ({"defenses": [{"name": "keyword", "eta": 1}]}, "defenses.eta: unknown key of the defence 'keyword'"),
        ({"defenses": [{"name": "decoding", "gamma": "x"}]}, "defenses.gamma: gamma='x' must lie in [0, 1]"),
        ({"defenses": [{"name": "voting", "group_size": 0}]}, "group_size=0 must be a whole number"),
        ({"defenses": [{"name": "voting", "group_by": ""}]}, "the name of a metadata entry"),
        ({"defenses": [{"name": "voting", "copies": "two"}]}, "must be 'report' or 'one_vote'"),
        ({"defenses": [{"name": "voting", "min_groups": -1}]}, "min_groups=-1"),
        ({"defenses": [{"name": "voting", "stop_when_decided": 1}]}, "stop_when_decided=1 must be True or False"),
        ({"defenses": [{"name": "voting", "wave_size": 2}]}, "defenses.wave_size: requires stop_when_decided: true"),
        (
            {"defenses": [{"name": "keyword", "stop_when_decided": True}]},
            "KeywordAggregation needs what all groups say",
        ),
        (
            {"defenses": [{"name": "vanilla", "exemplars": 5}]},
            "exemplars=5 must be true, false or a number",
        ),
        ({"defenses": []}, "defenses: is an empty list"),
        ({"defenses": [3]}, "must be a text or keys and values with 'name', got 3"),
        ({"attacks": ["pi"]}, "attacks.name: 'pi' must be one of"),
        ({"attacks": ["no_such_module:attack"]}, "attacks.name: attack 'no_such_module:attack'"),
        ({"attacks": [{"name": "pia", "rank": 1}]}, "attacks.rank: unknown key; did you mean 'ranks'?"),
        (
            {"ranks": ["top"]},
            "random, or a rank from 1, the top",
        ),
        ({"ranks": [0]}, "ranks: 0 must be one of first"),
        (
            {"ranks": [99]},
            "ranks: 99 is beyond the end: with top_k 10 and 1 planted",
        ),
        ({"ranks": [4], "top_k": [5], "corruption_sizes": [3]}, "stands at 1, the top, to 3"),
        ({"corruption_sizes": [0]}, "corruption_sizes: 0 must be a whole number from 1 to 100"),
        ({"corruption_sizes": [11]}, "corruption_sizes: 11 is more than the 10 passages of top_k"),
        ({"certify": [11]}, "certify: corruption_sizes 11 is more than the 10 passages"),
        ({"certify": {"sizes": 1}}, "certify.sizes: unknown key"),
        ({"top_k": "ten"}, "top_k: 'ten' must be a whole number"),
        ({"limit": True}, "limit: True must be a whole number"),
        ({"strict": "yes"}, "strict: must be true or false, got 'yes'"),
        ({"models": ["nowhere"]}, "models: unknown model 'nowhere'"),
        ({"models": [{"name": "bundled", "base_url": "http://x"}]}, "base_url goes with openai:NAME"),
        ({"models": [{"name": "python:m"}]}, "must be python:MODULE:OBJECT"),
        ({"defenses": ["decoding"], "models": ["openai:m"]}, "decoding needs token probabilities"),
        (
            {"defenses": ["voting"], "data": [{"source": "demo", "task": "qa"}]},
            "it votes on choices: ask with task: mc",
        ),
        ({"defenses": ["keyword"], "tasks": ["mc"]}, "for multiple choice use voting"),
        ({"data": [{"task": "qa"}]}, "data: 'source' is missing"),
    ],
)
def test_an_error_names_the_key_the_value_and_the_fix(given, said) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.yaml", "a: [", "not YAML"),
        ("c.json", "{", "not YAML"),
        ("c.json", "[1]", "must hold keys and values"),
        ("c.toml", "limit = 5", "must hold keys and values"),
    ],
)
def test_a_config_that_cannot_be_read_is_named(tmp_path, name, text, said) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match="c\\.") as caught:
        load_config(str(tmp_path / name))
    assert said in str(caught.value)


def test_yaml_never_makes_objects(tmp_path) -> None:
    (tmp_path / "c.yaml").write_text("data: !!python/object/apply:os.system ['true']")
    with pytest.raises(ConfigError, match="not YAML"):
        load_config(str(tmp_path / "c.yaml"))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_valid_config(name) -> None:
    assert read_config(PRESETS[name].config).defenses
    assert set(PRESETS[name].config) <= set(DEFAULTS)


def test_values_that_are_given_twice_are_run_once() -> None:
    config = read_config({"attacks": ["pia", "pia", "none"], "top_k": [5, 5]})
    assert config.planned_attacks == (PlannedAttack(), PlannedAttack("pia", corruption_size=1))
    assert config.top_k == (5,)


@pytest.mark.parametrize("name", ["evaluation.yaml", "results/realtimeqa.yaml"])
def test_the_example_configs_are_configs(name) -> None:
    pytest.importorskip("yaml")
    examples = Path(__file__).resolve().parents[3] / "examples"
    assert read_config(load_config(str(examples / name))).defenses


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (
            "contain",
            "metric: 'contain' must be one of contains, exact or module:function for a custom one",
        ),
        ("nowhere:f", "metric: .*cannot import 'nowhere'"),
        ("math:pi", "metric: .*must be a function of"),
        (7, "metric: must be a text, got 7"),
    ],
)
def test_a_metric_that_cannot_be_used_is_refused_before_anything_is_loaded(metric, said) -> None:
    with pytest.raises(ConfigError, match=said):
        read_config({"metric": metric})


@pytest.mark.parametrize("more", [{"min_radius": 2}, {"min_groups": [0, 3]}, {"copies": ["report", "one_vote"]}])
@pytest.mark.parametrize("top_k", [10, "all"])
def test_what_cannot_be_certified_is_refused_before_the_first_row(more, top_k) -> None:
    given = {"defenses": ["vanilla", {"name": "keyword", **more}], "top_k": top_k}
    with pytest.raises(ConfigError, match=f"defenses: keyword: {next(iter(more))}=.*: certificates are about one vote"):
        read_config({**given, "certify": {"corruption_sizes": [1]}})
    assert read_config(given).certify is None


def test_a_key_that_is_there_twice_is_refused_also_in_lists(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "eval.yaml"
    for text in ("limit: 1\nlimit: 2\n", "defenses:\n  - {name: voting, name: keyword}\n", "? {a: 1, a: 2}\n: 3"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="is there twice; leave one out"):
            load_config(str(path))
