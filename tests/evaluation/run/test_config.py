from __future__ import annotations

from pathlib import Path

import pytest

from robustrag_integrations.evaluation.run.config import ConfigError, load_config, read_config

CONFIG = {
    "data": ["demo"],
    "methods": ["vanilla", {"name": "keyword", "alpha": [0.2, 0.3]}],
    "attacks": [{"name": "pia", "ranks": ["first", 3], "corruption_sizes": [1, 2]}],
    "certify": {"corruption_sizes": [2, 1], "attacks": ["modification"]},
}


def test_every_attack_is_run_at_every_rank_and_size_after_the_clean_run() -> None:
    config = read_config(CONFIG)
    assert config.attacks[0].name == "none"
    assert [(a.rank, a.corruption_size) for a in config.attacks[1:]] == [("first", 1), ("3", 1), ("first", 2), ("3", 2)]
    assert config.methods[1].settings == {"alpha": (0.2, 0.3), "group_by": ("origin",)}
    assert config.certify is not None
    assert config.certify.corruption_sizes == (1, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"defences": []}, "defences: unknown key; known are data,"),
        ({"methods": ["keywrd"]}, "methods: 'keywrd' must be one of vanilla, keyword"),
        ({"methods": ["vanilla", {"name": "keyword", "alpha": 2}]}, "methods: keyword: alpha=2 must lie in [0, 1]"),
        ({"methods": [{"name": "keyword", "stop_when_decided": True}]}, "needs what all sources say"),
        ({"methods": [{"name": "vanilla", "exemplars": 5}]}, "exemplars=5 must be true, false or a number"),
        ({"methods": []}, "methods: is an empty list"),
        ({"attacks": ["no_such_module:attack"]}, "attacks: attack 'no_such_module:attack'"),
        ({"attacks": [{"name": "pia", "rank": 1}]}, "attacks: rank: unknown key; known are name,"),
        ({"ranks": ["top"]}, "random, or a rank from 1, the top"),
        ({"corruption_sizes": [0]}, "corruption_sizes: 0 must be a whole number from 1 to 100"),
        ({"certify": {"sizes": 1}}, "certify: sizes: unknown key"),
        ({"top_k": "ten"}, "top_k: 'ten' must be a whole number"),
        ({"models": ["nowhere"]}, "models: unknown model 'nowhere'"),
        ({"models": [{"name": "bundled", "base_url": "http://x"}]}, "base_url goes with openai:NAME"),
        ({"data": [{"task": "short_answer"}]}, "data: must be a text or keys and values with 'source'"),
        ({"tasks": ["essay"]}, "tasks: 'essay' must be one of short_answer, multiple_choice"),
        ({"metric": "contain"}, "metric: 'contain' must be one of contains, exact, all, or module:function"),
        ({"metric": "nowhere:f"}, "cannot import 'nowhere:f'"),
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


@pytest.mark.parametrize("name", ["evaluation.yaml", "results/realtimeqa.yaml"])
def test_the_example_configs_are_configs(name) -> None:
    pytest.importorskip("yaml")
    examples = Path(__file__).resolve().parents[3] / "examples"
    assert read_config(load_config(str(examples / name))).methods
