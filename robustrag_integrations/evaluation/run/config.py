"""The configuration of an evaluation: data sets x models x defences x settings x attacks, checked before any is loaded.

A config is a mapping, from YAML or flags. `DEFAULTS` has its keys, docs/guide/evaluation.md their meaning. Every error
names the key, the value that is there, and what to write in its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.yaml_files import read_yaml, shown
from robustrag_integrations.certification.cases import AttackMode
from robustrag_integrations.certification.metrics import METRICS, metric_of
from robustrag_integrations.defenses.registry import BASELINES, METHODS, VANILLA, entry_of
from robustrag_integrations.evaluation.attacks.families import ATTACKS, attack_of
from robustrag_integrations.evaluation.attacks.planning import RANKS
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE
from robustrag_integrations.grouping.votes import RULES, VoteRules
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.text.prompts import TASKS, Task, check_exemplars

MODES: tuple[AttackMode, ...] = get_args(AttackMode)
_RULES = tuple(name for name in RULES if name not in ("below", "allow_sole_source"))

DEFAULTS: Mapping[str, Any] = {
    "data": ["demo"],
    "models": ["bundled"],
    "methods": ["vanilla", "consensus"],
    "attacks": ["pia", "poison"],
    "ranks": ["first"],
    "corruption_sizes": [1],
    "repeat": None,
    "top_k": [10],
    "tasks": [],
    "limit": None,
    "certify": None,
    "judge": None,
    "metric": None,
    "seed": 0,
}


class ConfigError(RobustRAGError, ValueError):
    """An invalid configuration; the message names the key, the value and the fix."""


def defense_names() -> tuple[str, ...]:
    """Return the names that `defenses` accepts: vanilla RAG and every registered method and baseline."""
    return tuple(dict.fromkeys((VANILLA.name, *METHODS, *BASELINES)))


def settings_known(defense: str) -> tuple[str, ...]:
    """The settings that a config can give values for."""
    own = (s.name for s in entry_of(defense).settings if s.is_number or s.values or s.is_function)
    rules = _RULES if defense in METHODS else ()
    return (*own, *rules, "exemplars")


@dataclass(frozen=True)
class DataSpec:
    """A data set: `demo` or a file, and its task (None for its own)."""

    source: str
    task: Task | None = None


@dataclass(frozen=True)
class DefenseSpec:
    """A defence with the values that each of its settings takes; several values of a setting make several setups."""

    name: str
    settings: Mapping[str, tuple[Any, ...]]
    tasks: tuple[Task, ...]
    label: str | None = None  # its name in tables


@dataclass(frozen=True)
class CertifySpec:
    """The attackers that clean rows are certified against; see `Defense.certify`."""

    corruption_sizes: tuple[int, ...] = (1,)
    attacks: tuple[AttackMode, ...] = ("injection",)
    max_model_calls: int = 1000  # per certificate


@dataclass(frozen=True)
class EvalConfig:
    """A checked configuration; the clean run is the first of `attacks`, and a `top_k` of None means all passages."""

    data: tuple[DataSpec, ...]
    models: tuple[NamedModel, ...]
    methods: tuple[DefenseSpec, ...]
    attacks: tuple[AttackSpec, ...]
    top_k: tuple[int | None, ...]
    tasks: tuple[Task, ...]
    limit: int | None
    certify: CertifySpec | None
    judge: NamedModel | None
    metric: str | None
    given: Mapping[str, Any] = field(repr=False, compare=False)


def load_config(path: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; JSON is YAML as well."""
    try:
        return read_yaml(path)
    except RobustRAGError as error:
        raise ConfigError(f"{printable(path, 200)}: {error}") from error


def read_config(given: Mapping[str, Any]) -> EvalConfig:
    """Check a mapping and make the configuration; keys that are not given have `DEFAULTS`."""
    _check_keys(given, DEFAULTS)
    filled = {**DEFAULTS, **given}
    read = {key: _read(key, filled) for key in filled if key not in ("attacks", *_OF_ATTACKS)}
    attacks = [AttackSpec()]
    for entry in _read("attacks", filled):
        attacks += _planned({**{key: filled[key] for key in _OF_ATTACKS}, **entry})
    return EvalConfig(attacks=tuple(dict.fromkeys(attacks)), **read, given=filled)


def _read(key: str, values: Mapping[str, Any]) -> Any:
    try:
        return _READERS[key](values[key])
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{key}: {error}") from error


def _planned(entry: Mapping[str, Any]) -> list[AttackSpec]:
    """An attack at every rank and corruption size; none for `none`."""
    if entry["name"] == "none":
        return []
    ranks, sizes, repeat, seed = (_read(key, entry) for key in _OF_ATTACKS)
    return [AttackSpec(entry["name"], rank, size, seed, repeat) for size, rank in itertools.product(sizes, ranks)]


_Reader = Callable[[Any], Any]


def _check_keys(given: Mapping[Any, Any], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"{printable(str(key), 60)}: unknown key; known are {', '.join(known)}")


def _entry(value: Any, main: str, known: Collection[str]) -> dict[str, Any]:
    """A part as a mapping of known keys; a text is its main key."""
    if isinstance(value, str):
        return {main: value}
    if not isinstance(value, Mapping) or not isinstance(value.get(main), str):
        raise ValueError(f"must be a text or keys and values with {main!r}, got {shown(value)}")
    _check_keys(value, known)
    return dict(value)


def _whole(least: int, most: int) -> _Reader:
    def read(value: Any) -> int:
        if not is_whole_number(value, least, most):
            raise ValueError(f"{shown(value)} must be a whole number from {least} to {most:,}")
        return value

    return read


def _one_of(known: Collection[str], more: str = "") -> _Reader:
    def read(value: Any) -> str:
        if not isinstance(value, str) or (value not in known and not (more and ":" in value)):
            raise ValueError(f"{shown(value)} must be one of {', '.join(known)}{more}")
        return value

    return read


def _each(read: _Reader, least: int = 1) -> _Reader:

    def read_all(value: Any) -> tuple[Any, ...]:
        found = [read(each) for each in listed(value)]
        if len(found) < least:
            raise ValueError("is an empty list; give at least one value")
        return tuple(each for i, each in enumerate(found) if each not in found[:i])

    return read_all


def _optional(read: _Reader) -> _Reader:
    return lambda value: None if value is None else read(value)


def listed(value: Any) -> list[Any]:
    """A list, or one value alone as one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _data(value: Any) -> DataSpec:
    given = _entry(value, "source", ("source", "task"))
    return DataSpec(given["source"], _optional(_task)(given.get("task")))


def _model(value: Any) -> NamedModel:
    known = ("name", "base_url", "max_context_tokens", "max_new_tokens", "dtype", "max_concurrency")
    return NamedModel(**_entry(value, "name", known))


def with_group_by(entry: Any) -> Any:
    """A method's entry that says what has a vote: an origin, as in answers; with `passages_per_source` neighbours."""
    given = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(given, Mapping) or str(given.get("name")) not in METHODS or "group_by" in given:
        return entry
    return {**given, "group_by": ORIGIN if listed(given.get("passages_per_source", 1)) == [1] else PASSAGE}


def _defense(value: Any) -> DefenseSpec:
    """A defence, with its settings beside the other keys. The method itself says what is wrong with one."""
    value = with_group_by(value)
    name = _one_of(defense_names())(value.get("name") if isinstance(value, Mapping) else value)
    known = settings_known(name)
    given = _entry(value, "name", ("name", "tasks", "label", *known))
    settings = {key: tuple(listed(given[key])) for key in known if key in given}
    try:
        for values in itertools.product(*settings.values()):
            chosen = dict(zip(settings, values, strict=True))
            check_exemplars(chosen.pop("exemplars", 0))
            rules = {key: chosen.pop(key) for key in _RULES if key in chosen}
            if name in METHODS:
                METHODS[name].load().check_rules(VoteRules(**rules))
            entry_of(name).settings_of(chosen)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from error
    fitting = entry_of(name).tasks
    tasks = _each(_one_of(fitting))(given.get("tasks") or fitting)
    return DefenseSpec(name, settings, tasks, given.get("label"))


def _attack(value: Any) -> dict[str, Any]:
    given = _entry(value, "name", ("name", *_OF_ATTACKS))
    attack_of(_one_of(ATTACKS, " or module:function")(given["name"]))
    return {key: each for key, each in given.items() if each is not None}


def _rank(value: Any) -> str:
    if str(value) not in RANKS and not is_whole_number(value, 1, 1000):
        raise ValueError(f"{shown(value)} must be one of {', '.join(RANKS)}, or a rank from 1, the top")
    return str(value)


def _passages(value: Any) -> int | None:
    return None if value in ("all", None) else _whole(1, 1000)(value)


def _certify(value: Any) -> CertifySpec | None:
    """`true` for the defaults, `false` for none, and sizes alone."""
    if value is None or value is False:
        return None
    given = {} if value is True else value if isinstance(value, Mapping) else {"corruption_sizes": value}
    _check_keys(given, CertifySpec.__dataclass_fields__)
    readers = {"corruption_sizes": _each(_whole(0, 100)), "attacks": _each(_one_of(MODES))}
    spec = {key: readers.get(key, _whole(1, 10_000_000))(each) for key, each in given.items()}
    return CertifySpec(**{**spec, "corruption_sizes": tuple(sorted(spec.get("corruption_sizes", (1,))))})


def _metric(value: Any) -> str:
    name: str = _one_of(METRICS, ", or module:function for a custom one")(value)
    metric_of(name)
    return name


_task = _one_of(TASKS)
_READERS: Mapping[str, _Reader] = {
    "data": _each(_data),
    "models": _each(_model),
    "methods": _each(_defense),
    "attacks": _each(_attack, 0),
    "ranks": _each(_rank),
    "corruption_sizes": _each(_whole(1, 100)),
    "repeat": _optional(_whole(1, 1000)),
    "seed": _whole(0, 999_999_999),
    "top_k": _each(_passages),
    "tasks": _each(_task, 0),
    "limit": _optional(_whole(1, 10_000_000)),
    "certify": _certify,
    "judge": _optional(_model),
    "metric": _optional(_metric),
}
_OF_ATTACKS = ("ranks", "corruption_sizes", "repeat", "seed")
