"""Evaluation configs, and the tables of a run whose file may hold anything."""

from __future__ import annotations

import json
from typing import Any

from robustrag_integrations.evaluation.run.config import ConfigError, load_config, read_config
from tests.fuzz.checks import assert_short_and_harmless
from tests.fuzz.hostile import damaged, spoiled, text
from tests.fuzz.source import Source, Target, scratch

_CONFIG: dict[str, Any] = {
    "data": [{"source": "demo", "task": "short_answer", "limit": 3}, "questions.jsonl"],
    "models": ["bundled", {"name": "openai:m", "base_url": "http://127.0.0.1:9/v1"}],
    "methods": ["vanilla", {"name": "keyword", "alpha": 0.3, "beta": 3}, {"name": "voting"}],
    "attacks": ["injection", {"name": "poison", "ranks": ["first", 3], "repeat": 2}],
    "corruption_sizes": [1],
    "top_k": [10],
    "certify": {"corruption_sizes": [1]},
    "seed": 0,
}
_YAML = (
    "!!python/object/apply:os.system [id]", "!!python/name:os.system", "!!binary x", "!!timestamp x", "!!int x",
    "&a [*a]", "*a", "<<: *a", "2022-13-45", "0x_", "1:1:1", "0o9", ".inf", ".nan", "- - -", "? ", "---", "%YAML 9",
    "=", "~", "!x y", "{a: {a: {a: 1}}}", "[[[[", "|", ">", "@", "`", "1e999", "0" * 5000, "9" * 5000,
)  # fmt: skip


def _written(source: Source, ending: str) -> str:
    config = spoiled(source, _CONFIG, 20)
    if ending == ".json" or not isinstance(config, dict):
        return json.dumps(config)
    lines = [f"{k}: {json.dumps(v)}" for k, v in config.items()]
    lines += source.some(lambda: f"{source.pick(('seed', 'top_k', 'a'))}: {source.pick(_YAML)}", 2)
    return "\n".join([*lines, *source.some(lambda: source.pick((*_YAML, text(source, 2, 100))), 1)])


def configs(source: Source) -> None:
    """A config is read as a whole, or refused with a reason that can be shown; nothing in it is run."""
    ending = source.pick((".yaml", ".json"))
    path = scratch() / f"config{ending}"
    raw = _written(source, ending).encode("utf-8", "surrogatepass")
    path.write_bytes(damaged(source, raw) if source.chance(5) else bytes(source.keep(raw)))
    try:
        read_config(load_config(str(path)))
    except ConfigError as refused:
        assert_short_and_harmless(str(refused))


TARGETS = (Target("configs", configs, 5),)
