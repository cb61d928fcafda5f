"""What an evaluation runs: data sets x models x defences x settings x attacks, checked before anything is loaded.

A config is a mapping (from YAML, TOML or flags). Every error names the key, the value that is there, and what to write
in its place.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from robustrag_integrations.attacks.planning import several_ranks
from robustrag_integrations.certification.cases import AttackMode
from robustrag_integrations.checks import is_whole_number
from robustrag_integrations.defenses.registry import BASELINES, METHODS, VANILLA, entry_of
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.data.questions import layout_names
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.grouping.votes import HASTE, VoteRules
from robustrag_integrations.models.determinism_probe import read_summary
from robustrag_integrations.models.named import DTYPES, NamedModel
from robustrag_integrations.prompts import Task, check_exemplars
from robustrag_integrations.sections import Section, shown
from robustrag_integrations.usage import Prices, prices_of

MODES = ("injection", "modification")
RANKS = ("first", "middle", "last", "random", "sweep")
TASKS = ("qa", "mc", "long")
LAYOUTS = (
    "paper-table1",
    "paper-table2",
    "modification",
    "group-size",
    "top-k",
    "corruption",
    "thresholds",
    "eta",
    "runtime",
)

NO_RAG = "no-rag"  # a baseline of evaluations alone: the model without passages
TASK_OF: Mapping[str, Task] = {"qa": "short_answer", "mc": "multiple_choice", "long": "long_form"}


RULES = ("group_size", "group_by", "copies", "min_groups", "min_radius", *HASTE)  # of `VoteRules`, for any method


def defense_names() -> tuple[str, ...]:
    """What `defenses` may name: the baselines and every registered method."""
    peers = (name for name in BASELINES if name != VANILLA.name)
    return (VANILLA.name, *METHODS, *peers, NO_RAG)


def settings_known(defense: str) -> tuple[str, ...]:
    """The settings that a config can give values for."""
    own = (s.name for s in entry_of(defense).settings if s.is_number or s.is_choice or s.is_function)
    if defense == NO_RAG:
        return tuple(own)
    return (*own, *RULES, "exemplars") if defense in METHODS else (*own, "exemplars")


def tasks_known(defense: str) -> tuple[str, ...]:
    """The tasks that a defence can be used for."""
    return tuple(task for task in TASKS if TASK_OF[task] in entry_of(defense).tasks)


class ConfigError(RobustRAGError, ValueError):
    """The configuration is invalid; the message names the key, the value and the fix."""


@dataclass(frozen=True)
class DataSpec:
    """A data set.

    Attributes:
        source: `demo` or a file.
        task: what it is asked as; None for what it is.
        limit: how many questions are read.
        layout: how its rows are laid out; None: they are recognised by their keys.
        contexts: files and folders in which passages are found for questions that bring none.
    """

    source: str
    task: str | None = None
    limit: int | None = None
    layout: str | None = None
    contexts: tuple[str, ...] = ()


@dataclass(frozen=True)
class DefenseSpec:
    """A defence with the values each of its settings takes; several values of a setting make several setups.

    Attributes:
        name: one of `defense_names()`.
        settings: values by the setting's name.
        tasks: the tasks it is used for.
        label: its name in tables; None to make one.
    """

    name: str
    settings: Mapping[str, tuple[Any, ...]]
    tasks: tuple[str, ...]
    label: str | None = None


@dataclass(frozen=True)
class PlannedAttack(AttackSpec):
    """An attack of a configuration; its rank may be `sweep`, every rank in turn.

    Attributes:
        tasks: the tasks it is run on.
    """

    tasks: tuple[str, ...] = TASKS


CLEAN = PlannedAttack()


@dataclass(frozen=True)
class CertifySpec:
    """What clean rows are certified against; see `Defense.certify`."""

    corruption_sizes: tuple[int, ...] = (1,)
    attacks: tuple[AttackMode, ...] = ("injection",)
    max_model_calls: int = 1000
    sample: int = 0
    seed: int = 0


@dataclass(frozen=True)
class EvalConfig:
    """What is evaluated. How it is run (engine, concurrency, cache) is not part of it and changes no row.

    Attributes:
        data: the data sets.
        models: the models under test.
        defenses: the defences, each with its settings.
        attacks: what each setup is attacked with; the clean run always comes first.
        top_k: how many passages are retrieved, None for all that a question has; several make several setups.
        tasks: with several, every data set is asked as each of these that it allows.
        certify: what clean rows are certified against; None for no certificates.
        judge: the model that grades long answers; None for no grades.
        metric: what scores short answers and choices, in answers and certificates: a name of `metrics.METRICS`, or
            `module:function` with scores from 0 to 1; None for the task's own (`contains` and `exact`).
        seed: of everything random.
        strict: whether a bad row of the data stops the run.
        layout: the table of the paper that the summary follows; None for the plain table.
        runs: how often each clean question is asked; the first run makes the row, the others stand in it.
        probes: what repeat probes found (`determinism_probe.summary_of`), each about the model of its name.
        prices: per million tokens, for the summary alone; None for no costs in it.
        leave_out: whether a defence that a model cannot run is left out and named, in place of an error; presets do so.
        given: the mapping it was read from, defaults filled in.
    """

    data: tuple[DataSpec, ...]
    models: tuple[NamedModel, ...]
    defenses: tuple[DefenseSpec, ...]
    attacks: tuple[PlannedAttack, ...]
    top_k: tuple[int | None, ...] = (10,)
    tasks: tuple[str, ...] = ()
    certify: CertifySpec | None = None
    judge: NamedModel | None = None
    metric: str | None = None
    seed: int = 0
    strict: bool = False
    layout: str | None = None
    runs: int = 1
    probes: tuple[Mapping[str, Any], ...] = ()
    prices: Prices | None = None
    leave_out: bool = False
    given: Mapping[str, Any] = field(default_factory=dict, compare=False)


DEFAULTS: Mapping[str, Any] = {
    "data": ["demo"],
    "models": ["bundled"],
    "defenses": ["vanilla", "consensus"],
    "attacks": ["pia", "poison"],
    "ranks": ["first"],
    "corruption_sizes": [1],
    "modes": ["injection"],
    "repeat": None,
    "top_k": [10],
    "tasks": [],
    "limit": None,
    "certify": None,
    "judge": None,
    "metric": None,
    "seed": 0,
    "strict": False,
    "layout": None,
    "data_layout": None,
    "contexts": [],
    "runs": 1,
    "probes": [],
    "prices": None,
    "leave_out": False,
}


def load_config(path: str) -> dict[str, Any]:
    """The mapping in a `.yaml`, `.yml`, `.toml` or `.json` file.

    Raises:
        ConfigError: it cannot be read, or holds no mapping.
        ImportError: YAML needs pyyaml, TOML before Python 3.11 tomli.
    """
    ending = Path(path).suffix.lower()
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot read the config {path!r}: {reason}") from error
    readers = {".yaml": _yaml, ".yml": _yaml, ".toml": _toml, ".json": _json}
    if ending not in readers:
        raise ConfigError(f"config {path!r}: write it as .yaml, .toml or .json; {ending or 'no ending'!r} is not known")
    found = readers[ending](text, path)
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ConfigError(f"config {path!r} must hold keys and values, such as 'defenses: [vanilla, keyword]'")
    return found


def read_config(given: Mapping[str, Any]) -> EvalConfig:
    """Check a mapping and make the configuration; keys that are not given have `DEFAULTS`.

    Raises:
        ConfigError: a key is unknown, a value has the wrong type or range, or values do not go together.
    """
    filled = {**DEFAULTS, **given}
    top = Section(filled, "", ConfigError)
    top.known(DEFAULTS)
    seed = top.number("seed", 0, 999_999_999)
    limit = top.optional("limit", lambda: top.number("limit", 1, 10_000_000))
    config = EvalConfig(
        data=tuple(_data(item, top, limit) for item in top.items("data", "source")),
        models=tuple(_model(item) for item in top.items("models", "name")),
        defenses=tuple(_defense(item) for item in top.items("defenses", "name")),
        attacks=_attacks(top, seed),
        top_k=_top_k(top),
        tasks=top.names("tasks", TASKS),
        certify=top.optional("certify", lambda: _certify(top, seed)),
        judge=top.optional("judge", lambda: _model(top.items("judge", "name")[0])),
        metric=top.optional("metric", lambda: _metric(top)),
        seed=seed,
        strict=top.flag("strict"),
        layout=top.optional("layout", lambda: top.name("layout", LAYOUTS)),
        runs=top.number("runs", 1, 1000),
        probes=tuple(_probe(top, path) for path in top.values("probes", least=0)),
        prices=top.optional("prices", lambda: _prices(top)),
        leave_out=top.flag("leave_out"),
        given=filled,
    )
    _check_together(config)
    return config


def _probe(top: Section, path: Any) -> dict[str, Any]:
    if not isinstance(path, str):
        raise top.wrong(f"must be files that robustrag probe --output wrote, got {shown(path)}", "probes")
    try:
        return read_summary(path)
    except ValueError as error:
        raise top.wrong(f"{path!r}: {error}", "probes") from error


def _data(item: Section, top: Section, limit: int | None) -> DataSpec:
    item.known(("source", "task", "limit", "layout", "contexts"))
    own = item.optional("limit", lambda: item.number("limit", 1, 10_000_000))
    layout = top.optional("data_layout", lambda: top.name("data_layout", layout_names()))
    contexts = (item if "contexts" in item else top).values("contexts", least=0)
    if not all(isinstance(path, str) and path.strip() for path in contexts):
        raise item.wrong("must be files and folders", "contexts")
    return DataSpec(
        item.text("source"),
        item.optional("task", lambda: item.name("task", TASKS)),
        own or limit,
        item.optional("layout", lambda: item.name("layout", layout_names())) or layout,
        tuple(contexts),
    )


def _model(item: Section) -> NamedModel:
    item.known(("name", "base_url", "max_context_tokens", "max_new_tokens", "dtype"))
    try:
        return NamedModel(
            item.text("name"),
            item.optional("base_url", lambda: item.text("base_url")),
            item.optional("max_context_tokens", lambda: item.number("max_context_tokens", 1, 10_000_000)),
            item.optional("max_new_tokens", lambda: item.number("max_new_tokens", 1, 1_000_000)),
            item.optional("dtype", lambda: item.name("dtype", DTYPES)),
        )
    except ConfigError:
        raise
    except ValueError as error:
        raise item.wrong(str(error)) from error


def _defense(item: Section) -> DefenseSpec:
    name = item.name("name", defense_names())
    own, possible = settings_known(name), tasks_known(name)
    item.known((*own, "name", "tasks", "label"), of=f" of the defence {name!r}")
    settings = {key: item.values(key) for key in own if key in item}
    for key, values in settings.items():
        for value in values:
            _check_setting(item, name, key, value)
    try:
        for values in itertools.product(*settings.values()) if name in METHODS else ():
            METHODS[name].in_force(dict(zip(settings, values, strict=True)))
    except ValueError as error:
        raise item.wrong(str(error)) from error
    if settings.get("wave_size", (None,)) != (None,) and not all(settings.get("stop_when_decided", (False,))):
        raise item.wrong("needs stop_when_decided: true; all waves are asked else", "wave_size")
    tasks = item.names("tasks", possible) if "tasks" in item else ()
    return DefenseSpec(name, settings, tasks or possible, item.optional("label", lambda: item.text("label")))


def _check_setting(item: Section, name: str, key: str, value: Any) -> None:
    """Let the method itself say what is wrong with a value; no model is loaded by that."""
    try:
        if key == "exemplars":
            check_exemplars(value)
        elif key in RULES:
            along = {"stop_when_decided": True} if key == "wave_size" else {}
            METHODS[name].load().check_rules(VoteRules(**{**along, key: value}))
        else:
            entry_of(name).settings_of({key: value})
    except (ValueError, TypeError) as error:
        raise item.wrong(str(error), key) from error


def _attacks(top: Section, seed: int) -> tuple[PlannedAttack, ...]:
    """The clean run, and every attack at every rank and corruption size; an attack that searches has no rank."""
    from robustrag_integrations.attacks.plugins import attack_of

    listed = [CLEAN]
    for item in top.items("attacks", "name"):
        item.known(("name", "ranks", "corruption_sizes", "modes", "repeat", "seed", "tasks"))
        name = item.text("name")
        where = {key: item if key in item else top for key in ("ranks", "corruption_sizes", "modes", "repeat")}
        if name == "none":
            continue
        _check_attack(item, name)
        repeat = where["repeat"].optional("repeat", partial(where["repeat"].number, "repeat", 1, 1000))
        chosen = item.number("seed", 0, 999_999_999) if "seed" in item else seed
        tasks = item.names("tasks", TASKS) if "tasks" in item else TASKS
        searches = attack_of(name).needs_defense  # it chooses its own ranks
        listed += [
            PlannedAttack(name, mode, rank, len(several_ranks(rank) or range(size)), chosen, repeat, tasks)
            for mode in where["modes"].names("modes", MODES, least=1)
            for size in where["corruption_sizes"].numbers("corruption_sizes", 1, 100)
            for rank in (("first",) if searches else _ranks(where["ranks"]))
        ]
    return tuple(dict.fromkeys(listed))


def _check_attack(item: Section, name: str) -> None:
    from robustrag_integrations.attacks.families import ATTACKS
    from robustrag_integrations.attacks.plugins import attack_of

    if name not in ATTACKS and ":" not in name:
        raise item.unknown("name", name, ATTACKS, "or payloads:FILE, or module:function for a custom one")
    try:
        attack_of(name)
    except (ValueError, TypeError) as error:
        raise item.wrong(str(error), "name") from error


def _top_k(top: Section) -> tuple[int | None, ...]:
    """Numbers of passages; None for `all`."""
    values = top.values("top_k")
    return tuple(dict.fromkeys(None if v == "all" else top.whole_number("top_k", v, 1, 1000) for v in values))


def _metric(top: Section) -> str:
    from robustrag_integrations.metrics import METRICS, metric_of

    name = top.text("metric")
    if name not in METRICS and ":" not in name:
        raise top.unknown("metric", name, METRICS, "or module:function for a custom one")
    try:
        metric_of(name)
    except (ValueError, TypeError) as error:
        raise top.wrong(str(error), "metric") from error
    return name


def _prices(top: Section) -> Prices:
    try:
        return prices_of(top["prices"])
    except ValueError as error:
        raise top.wrong(str(error), "prices") from error


def _ranks(section: Section) -> tuple[str | int, ...]:
    found: list[str | int] = []
    for value in section.values("ranks"):
        if is_whole_number(value, 1, 1000) or value in RANKS:
            found.append(value)
        elif several := several_ranks(value):
            found.append("+".join(map(str, several)))
        else:
            raise section.wrong(
                f"{shown(value)} must be one of {', '.join(RANKS)}, a rank from 1, the top, or several such as 1+10",
                "ranks",
            )
    return tuple(found)


def _certify(top: Section, seed: int) -> CertifySpec | None:
    value = top["certify"]
    if value is False:
        return None
    given = {} if value is True else value if isinstance(value, Mapping) else {"corruption_sizes": value}
    defaults = vars(CertifySpec(seed=seed))
    section = Section({**defaults, **given}, "certify", ConfigError)
    section.known(defaults)
    return CertifySpec(
        tuple(sorted(section.numbers("corruption_sizes", 0, 100))),
        cast("tuple[AttackMode, ...]", section.names("attacks", MODES, least=1)),
        section.number("max_model_calls", 1, 10_000_000),
        section.number("sample", 0, 1_000_000),
        section.number("seed", 0, 999_999_999),
    )


def can_run(defense: str, model: NamedModel) -> bool:
    """Whether a model gives what a defence needs of it; chat APIs give no token probabilities."""
    needs = defense in METHODS and METHODS[defense].needs_probabilities
    return model.gives_probabilities or not needs


def _check_together(config: EvalConfig) -> None:
    """What each value allows alone and the others do not."""
    for defense in config.defenses:
        for model in config.models:
            if not can_run(defense.name, model) and not config.leave_out:
                raise ConfigError(
                    f"defenses: {defense.name} needs token probabilities, and {model.name!r} is behind a server's chat "
                    "API; use keyword, a folder with the model, or openai-completions:NAME if the server gives them"
                )
    tasks: set[str | None] = {*config.tasks} or {spec.task for spec in config.data}
    if None not in tasks:
        for defense in config.defenses:
            if not tasks & set(defense.tasks):
                raise no_task(defense, sorted(map(str, tasks)))
    if None in config.top_k and any(attack.rank == "sweep" for attack in config.attacks):
        raise ConfigError("ranks: sweep needs a number of passages; give one as top_k in place of all")
    for defense in config.defenses if config.certify else ():
        _check_certifiable(defense)
    largest = most_passages(config)
    if largest is None:
        return
    if config.certify and max(config.certify.corruption_sizes) > largest:
        raise ConfigError(
            f"certify: corruption_sizes {max(config.certify.corruption_sizes)} is more than the {largest} passages "
            "that top_k retrieves; lower it, or raise top_k"
        )
    sizes = [a.corruption_size for a in config.attacks]
    if max(sizes) > largest:
        raise ConfigError(f"corruption_sizes: {max(sizes)} is more than the {largest} passages of top_k")
    for attack in config.attacks:
        if beyond_the_end(attack, largest):
            raise ConfigError(
                f"ranks: {attack.rank} is beyond the end: with top_k {largest} and {attack.corruption_size} planted, "
                f"the first stands at 1, the top, to {largest - attack.corruption_size + 1}; lower it, or raise top_k"
            )


def _check_certifiable(defense: DefenseSpec) -> None:
    """Refuse what no certificate is about before the first row is made."""
    limits = ("copies", "min_groups", "min_radius")
    try:
        for name in limits:
            for value in defense.settings.get(name, ()):
                VoteRules(**{name: value}).check_certifiable()
    except ValueError as error:
        raise ConfigError(f"defenses: {defense.name}: {error}, or ask for no certificates") from error


def beyond_the_end(attack: AttackSpec, top_k: int | None) -> bool:
    """Whether the planted passages would stand higher than asked for, however many passages a question has."""
    if top_k is None:
        return False
    if several := several_ranks(attack.rank):
        return several[-1] > top_k
    if not isinstance(attack.rank, int):
        return False
    return attack.rank > max(top_k - attack.corruption_size + 1, 1)


def most_passages(config: EvalConfig) -> int | None:
    """How many passages a question needs for every setup; None for all that there are."""
    return None if None in config.top_k else max(k for k in config.top_k if k is not None)


def no_task(defense: DefenseSpec, tasks: Sequence[str]) -> ConfigError:
    """The error that a defence is for none of the tasks that the data is asked as."""
    if "mc" in defense.tasks:
        fix = "it votes on choices: ask with task: mc"
    else:
        others = [m.name for m in METHODS.values() if m.takes_choices]
        fix = f"for multiple choice use {' or '.join(others)}, or ask with task: {defense.tasks[0]}"
    return ConfigError(
        f"defenses: {defense.name!r} is for the tasks {', '.join(defense.tasks)}, and the data is asked as "
        f"{', '.join(tasks)}; {fix}"
    )


def _yaml(text: str, path: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError("YAML configs need pyyaml: pip install 'robustrag-integrations[eval]'") from error
    try:
        return _unique_keys(yaml)(text).get_single_data()
    except ConfigError as error:
        raise ConfigError(f"config {path!r}: {error}") from None
    except Exception as error:  # of any kind: 2022-13-45, which is not a date, raises one that is not the parser's
        raise ConfigError(f"config {path!r} is not YAML: {' '.join(str(error).split())[:300]}") from error


def _unique_keys(yaml: Any) -> Any:
    """PyYAML's safe loader, which of a key that is given twice would keep the last, refusing that."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                    continue
                if (key.tag, key.value) in seen:
                    raise ConfigError(f"line {key.start_mark.line + 1}: the key {shown(key.value)} is there twice")
                seen.add((key.tag, key.value))
            return node

    return Loader


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {shown(key)} is there twice")
        found[key] = value
    return found


def _toml(text: str, path: str) -> Any:
    try:
        toml: Any = importlib.import_module("tomllib")
    except ImportError:  # Python 3.10
        toml = importlib.import_module("tomli")
    try:
        return toml.loads(text)
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError is one
        raise ConfigError(f"config {path!r} is not TOML: {error}") from error


def _json(text: str, path: str) -> Any:
    import json

    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"config {path!r} is not JSON: {error}") from error
