"""The configuration of an evaluation: data sets x models x defences x settings x attacks, checked before any is loaded.

A config is a mapping (from YAML or flags), checked by the pydantic models below; their fields are the keys, and
what a field says about itself is its documentation, its default and its flag (`cli.flags`). Every error names the key,
the value that is there, and what to write in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from robustrag_integrations._util.checks import is_whole_number, nearest_of
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.yaml_files import read_yaml, shown
from robustrag_integrations.attacks.families import ATTACKS, attack_of
from robustrag_integrations.attacks.planning import RANKS
from robustrag_integrations.certification.cases import AttackMode
from robustrag_integrations.defenses.registry import BASELINES, METHODS, VANILLA, entry_of
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.grouping.votes import HASTE, VOTES, VoteRules
from robustrag_integrations.metrics import METRICS, metric_of
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.prompts import Task, check_exemplars

TaskName = Literal["qa", "mc", "long"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
MODES: tuple[AttackMode, ...] = get_args(AttackMode)

NO_RAG = "no-rag"  # a baseline of evaluations alone: the model without passages
TASK_OF: Mapping[str, Task] = {"qa": "short_answer", "mc": "multiple_choice", "long": "long_form"}
RULES = tuple(name for name in VOTES if name not in ("weights", "below", "allow_sole_source"))  # what a config can hold


def defense_names() -> tuple[str, ...]:
    """Return the names that `defenses` accepts: the baselines and every registered method."""
    peers = (name for name in BASELINES if name != VANILLA.name)
    return (VANILLA.name, *METHODS, *peers, NO_RAG)


def settings_known(defense: str) -> tuple[str, ...]:
    """The settings that a config can give values for."""
    own = (s.name for s in entry_of(defense).settings if s.is_number or s.values or s.is_function)
    if defense == NO_RAG:
        return tuple(own)
    return (*own, *RULES, "exemplars") if defense in METHODS else (*own, "exemplars")


def tasks_known(defense: str) -> tuple[str, ...]:
    """The tasks that a defence can be used for."""
    return tuple(task for task in TASKS if TASK_OF[task] in entry_of(defense).tasks)


class ConfigError(RobustRAGError, ValueError):
    """An invalid configuration; the message names the key, the value and the fix."""


@dataclass(frozen=True)
class PlannedAttack(AttackSpec):
    """An attack of a configuration.

    Attributes:
        tasks: the tasks it is run on.
    """

    tasks: tuple[str, ...] = TASKS


class _Wrong(ValueError):
    """An error in a part of a configuration, under one of its keys."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def _unknown(value: Any, names: Iterable[str], more: str = "") -> _Wrong:
    """Return the error that a name is none of these, with the nearest one that is."""
    listed = list(names)
    near = nearest_of(value, listed) if isinstance(value, str) else None
    hint = f"; did you mean {near!r}?" if near else ""
    return _Wrong(f"{shown(value)} must be one of {', '.join(listed)}{' ' + more if more else ''}{hint}")


@dataclass(frozen=True)
class Whole:
    """The mark of a whole number of this range."""

    least: int
    most: int

    def check(self, value: Any) -> int:
        """The number; raise where it is none of this range."""
        if not is_whole_number(value, self.least, self.most):
            raise _Wrong(f"{shown(value)} must be a whole number from {self.least} to {self.most:,}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return PlainValidator(self.check).__get_pydantic_core_schema__(source, handler)


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong(f"must be a text, got {shown(value)}")
    return value


def _named_model(value: Any) -> NamedModel:
    """A model by its name, or by its name and what it is run with."""
    given = _keys_and_values(value, "name")
    try:
        return NamedModel(**given)
    except TypeError:
        _check_keys(given, ("name", "base_url", "max_context_tokens", "max_new_tokens", "dtype"))
        raise


def _rank(value: Any) -> str | int:
    if is_whole_number(value, 1, 1000):
        return value
    if value in RANKS:
        return str(value)
    raise _Wrong(f"{shown(value)} must be one of {', '.join(RANKS)}, or a rank from 1, the top")


def _metric(value: Any) -> str:
    return _loaded(_text(value), METRICS, metric_of, "or module:function for a custom one")


def _attack(value: Any) -> str:
    name = _text(value)
    return _loaded(name, ATTACKS, attack_of, "or payloads:FILE, or module:function for a custom one")


def _loaded(name: str, names: Iterable[str], load: Callable[[str], object], more: str) -> str:
    if name not in names and ":" not in name:
        raise _unknown(name, names, more)
    try:
        load(name)
    except TypeError as error:
        raise _Wrong(str(error)) from error
    return name


def _certified(value: Any) -> Any:
    """`true` for the defaults, `false` for none, and sizes alone."""
    if value is None or value is False:
        return None
    return {} if value is True else value if isinstance(value, Mapping) else {"corruption_sizes": value}


def _keys_and_values(value: Any, main: str) -> dict[str, Any]:
    """A part as a mapping; a text is its main key."""
    if isinstance(value, str):
        return {main: value}
    if not isinstance(value, Mapping):
        raise _Wrong(f"must be a text or keys and values with {main!r}, got {shown(value)}")
    if main not in value:
        raise _Wrong(f"{main!r} is missing")
    return dict(value)


def _check_keys(given: Mapping[Any, Any], known: Iterable[str], of: str = "") -> None:
    names = sorted(known)
    for key in given:
        if key not in names:
            near = nearest_of(str(key), names)
            hint = f"did you mean {near!r}? " if near else ""
            raise _Wrong(f"unknown key{of}; {hint}known are {', '.join(names)}", printable(str(key), 60))


def _raw(*texts: str) -> Any:
    """A default as a config writes it; it is checked like any other value."""
    return texts


_LIST = BeforeValidator(_listed)
_ONCE = AfterValidator(lambda values: tuple(dict.fromkeys(values)))
_SOME = Field(min_length=1)

Text = Annotated[str, PlainValidator(_text)]
Seed = Annotated[int, Whole(0, 999_999_999)]
Limit = Annotated[int, Whole(1, 10_000_000)]
Tasks = Annotated[tuple[TaskName, ...], _LIST, _ONCE]
Model = Annotated[InstanceOf[NamedModel], BeforeValidator(_named_model)]
Ranks = Annotated[tuple[Annotated[Any, PlainValidator(_rank)], ...], _LIST, _ONCE, _SOME]
Modes = Annotated[tuple[AttackMode, ...], _LIST, _ONCE, _SOME]
Planted = Annotated[tuple[Annotated[int, Whole(1, 100)], ...], _LIST, _ONCE, _SOME]
Repeat = Annotated[int, Whole(1, 1000)]


class _Part(BaseModel):
    """A part of a configuration. `main` is the key whose value a text alone stands for."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, protected_namespaces=())
    main: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _as_mapping(cls, value: Any) -> Any:
        given = _keys_and_values(value, cls.main) if cls.main else value
        _check_keys(given, cls.model_fields)
        return given


class DataSpec(_Part):
    """A data set."""

    main = "source"

    source: Text = Field(description="`demo` or a file")
    task: TaskName | None = Field(None, description="the task; None for its own")
    limit: Limit | None = Field(None, description="number of questions that are read")


class DefenseSpec(_Part):
    """A defence with the values each of its settings takes; several values of a setting make several setups."""

    main = "name"

    name: str = Field(description="one of `defense_names()`")
    settings: Mapping[str, tuple[Any, ...]] = Field(description="values by the setting's name")
    tasks: Annotated[tuple[str, ...], _ONCE] = Field(description="the tasks it is used for")
    label: Text | None = Field(None, description="its name in tables; None to make one")

    @model_validator(mode="before")
    @classmethod
    def _as_mapping(cls, value: Any) -> Any:
        """Accept settings beside the other keys. The method itself says what is wrong with one; no model is loaded."""
        given = _keys_and_values(value, "name")
        name = given["name"]
        if name not in defense_names():
            raise _Wrong(str(_unknown(name, defense_names())), "name")
        known, possible = settings_known(name), tasks_known(name)
        _check_keys(given, (*known, "name", "tasks", "label"), of=f" of the defence {name!r}")
        settings = {key: tuple(_listed(given[key])) for key in known if key in given}
        for key, values in settings.items():
            for chosen in values:
                _check_setting(name, key, chosen)
        if settings.get("wave_size", (None,)) != (None,) and not all(settings.get("stop_when_decided", (False,))):
            raise _Wrong("requires stop_when_decided: true", "wave_size")
        tasks = _listed(given.get("tasks", ())) or possible
        for task in tasks:
            if task not in possible:
                raise _Wrong(str(_unknown(task, possible)), "tasks")
        return {"name": name, "settings": settings, "tasks": tasks, "label": given.get("label")}


def _check_setting(defense: str, key: str, value: Any) -> None:
    try:
        if key == "exemplars":
            check_exemplars(value)
        elif key in RULES:
            along = {"stop_when_decided": True} if key == "wave_size" else {}
            METHODS[defense].load().check_rules(VoteRules(**{**along, key: value}))
        else:
            entry_of(defense).settings_of({key: value})
    except (ValueError, TypeError) as error:
        raise _Wrong(str(error), key) from error


class AttackEntry(_Part):
    """An attack with the ranks, sizes and modes at which it is run; values it lacks are those given for all attacks."""

    main = "name"

    name: Annotated[str, PlainValidator(_attack)]
    ranks: Ranks
    corruption_sizes: Planted
    modes: Modes
    repeat: Repeat | None
    seed: Seed
    tasks: Tasks = TASKS

    def planned(self) -> list[PlannedAttack]:
        """Return the attack at every rank and corruption size; a searching one has no rank. None for `none`."""
        if self.name == "none":
            return []
        ranks = ("first",) if attack_of(self.name).needs_defense else self.ranks
        return [
            PlannedAttack(self.name, mode, rank, size, self.seed, self.repeat, self.tasks)
            for mode in self.modes
            for size in self.corruption_sizes
            for rank in ranks
        ]


class CertifySpec(_Part):
    """The attackers that clean rows are certified against; see `Defense.certify`."""

    corruption_sizes: Annotated[
        tuple[Annotated[int, Whole(0, 100)], ...], _LIST, AfterValidator(lambda v: tuple(sorted(set(v)))), _SOME
    ] = Field((1,), description="number of passages that the attacker controls")
    attacks: Modes = Field(("injection",), description="the kinds of attacker: injection (default), modification")
    max_model_calls: Annotated[int, Whole(1, 10_000_000)] = Field(1000, description="per certificate (default 1000)")
    sample: Annotated[int, Whole(0, 1_000_000)] = Field(0, description="samples for estimates (default 0)")
    seed: Seed = Field(0, description="of the samples (default 0)")


_OF_ATTACKS = ("ranks", "corruption_sizes", "modes", "repeat", "seed")


class EvalConfig(_Part):
    """The configuration of an evaluation. Engine, concurrency and cache are not part of it and change no row.

    The descriptions are those of the flags; docs/guide/evaluation.md has more.
    """

    data: Annotated[tuple[DataSpec, ...], _LIST, _SOME] = Field(_raw("demo"), description="demo (default) or files")
    models: Annotated[tuple[Model, ...], _LIST, _SOME] = Field(_raw("bundled"), description="the models under test")
    defenses: Annotated[tuple[DefenseSpec, ...], _LIST, _SOME] = Field(
        _raw("vanilla", "consensus"), description="the defences, each with its settings"
    )
    attacks: Annotated[tuple[AttackEntry, ...], _LIST] = Field(
        _raw("pia", "poison"), description="one or more of those listed below; default: pia poison"
    )
    ranks: Ranks = Field(
        ("first",),
        description="where planted texts go: first (default), middle, last, random, or 1 (the top), 2, ...",
    )
    corruption_sizes: Planted = Field((1,), description="number of planted passages (default 1)")
    modes: Modes = Field(
        ("injection",),
        description="injection (default): the last passages drop out; modification: passages are replaced",
    )
    repeat: Repeat | None = Field(None, description="how often a planted text is repeated")
    top_k: Annotated[
        tuple[Annotated[int, Whole(1, 1000)] | None, ...],
        BeforeValidator(lambda value: [None if v == "all" else v for v in _listed(value)]),
        _ONCE,
        _SOME,
    ] = Field((10,), description="passages per question (default 10), or all")
    tasks: Tasks = Field(
        (), description="qa (short answers), mc (multiple choice), long (long answers); default: as the data says"
    )
    limit: Limit | None = Field(None, description="only the first N questions")
    certify: Annotated[CertifySpec | None, BeforeValidator(_certified)] = Field(
        None, description="certify clean answers against K corrupted passages (1 when no number is given)"
    )
    judge: Model | None = Field(None, description="the model that grades long answers")
    metric: Annotated[str, PlainValidator(_metric)] | None = Field(
        None,
        description="scores answers and certificates: contains (the answer holds a right one), exact (it is one), "
        "or module:function for a custom one, from (response, references) to a score from 0 to 1; default: contains "
        "for short answers, exact for choices",
    )
    seed: Seed = Field(0, description="of random choices (default 0)")
    strict: Annotated[bool, Field(strict=True)] = Field(False, description="stop at a bad row of the data")
    leave_out: Annotated[bool, Field(strict=True)] = Field(
        False, description="leave out and name a defence that a model cannot run, in place of an error"
    )

    @model_validator(mode="before")
    @classmethod
    def _as_mapping(cls, value: Any) -> Any:
        """Give each data set, attack and certificate the shared values that it does not set itself."""
        _check_keys(value, cls.model_fields)
        given = {**DEFAULTS, **value}
        of_attacks = {key: given[key] for key in _OF_ATTACKS}
        given["data"] = [_under(item, "source", {"limit": given["limit"]}) for item in _listed(given["data"])]
        given["attacks"] = [_under(item, "name", of_attacks) for item in _listed(given["attacks"])]
        certify = _certified(given["certify"])
        return {**given, "certify": {"seed": given["seed"], **certify} if isinstance(certify, Mapping) else certify}

    _given: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def given(self) -> Mapping[str, Any]:
        """The mapping it was read from, defaults filled in."""
        return self._given

    @property
    def planned_attacks(self) -> tuple[PlannedAttack, ...]:
        """The attacks on each setup; the clean run comes first."""
        return tuple(dict.fromkeys([PlannedAttack(), *(a for entry in self.attacks for a in entry.planned())]))


def _under(item: Any, main: str, shared: Mapping[str, Any]) -> Any:
    """Return an item with the values given for all of its kind; anything but a mapping or text is left as it is."""
    if isinstance(item, str):
        item = {main: item}
    return {**shared, **{k: v for k, v in item.items() if v is not None}} if isinstance(item, Mapping) else item


DEFAULTS: Mapping[str, Any] = {
    name: list(field.default) if isinstance(field.default, tuple) else field.default
    for name, field in EvalConfig.model_fields.items()
}


def read_config(given: Mapping[str, Any]) -> EvalConfig:
    """Check a mapping and make the configuration; keys that are not given have `DEFAULTS`.

    Raises:
        ConfigError: a key is unknown, a value has the wrong type or range, or values do not go together.
    """
    try:
        config = EvalConfig.model_validate(dict(given))
    except ValidationError as error:
        raise ConfigError(_in_words(error, {**DEFAULTS, **given})) from error
    config._given = {**DEFAULTS, **given}
    _check_together(config)
    return config


_WORDS = {"bool_type": "must be true or false", "string_type": "must be a text", "tuple_type": "must be a list"}


def _in_words(error: ValidationError, given: Any) -> str:
    """Describe the first error, those of the whole before those of a part: the key, the value, the fix."""
    first = min(error.errors(include_url=False), key=lambda e: len(e["loc"]))
    cause = first.get("ctx", {}).get("error")
    steps = [*first["loc"], *([cause.key] if isinstance(cause, _Wrong) and cause.key else [])]
    parts = (
        len(steps) > 1 and steps[0] in ("data", "models", "defenses", "attacks") and len(_listed(given[steps[0]])) > 1
    )
    place = ".".join(str(step) for step in steps if not isinstance(step, int))
    if parts:
        place = place.replace(str(steps[0]), f"{steps[0]}[{steps[1]}]", 1)
    value = shown(first["input"])
    if cause is not None:
        said = str(cause)
    elif first["type"] == "literal_error":
        said = str(_unknown(first["input"], re.findall(r"'([^']*)'", first["ctx"]["expected"])))
    elif first["type"] == "too_short":
        said = "is an empty list; give at least one value"
    else:
        said = f"{_WORDS.get(first['type'], first['msg'])}, got {value}"
    return f"{place}: {said}" if place else said


def load_config(path: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; JSON is YAML as well.

    Raises:
        ConfigError: it cannot be read, holds no mapping, or what `read_yaml` refuses.
        ImportError: pyyaml is missing.
    """
    try:
        return read_yaml(path, "config", ConfigError)
    except ConfigError as error:
        raise ConfigError(f"{printable(path, 200)}: {error}") from error


def can_run(defense: str, model: NamedModel) -> bool:
    """True if a model gives what a defence needs of it; chat APIs give no token probabilities."""
    needs = defense in METHODS and METHODS[defense].needs_probabilities
    return model.gives_probabilities or not needs


def _check_together(config: EvalConfig) -> None:
    """Refuse values that are valid alone but not together."""
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
    sizes = [a.corruption_size for a in config.planned_attacks]
    if max(sizes) > largest:
        raise ConfigError(f"corruption_sizes: {max(sizes)} is more than the {largest} passages of top_k")
    for attack in config.planned_attacks:
        if beyond_the_end(attack, largest):
            raise ConfigError(
                f"ranks: {attack.rank} is beyond the end: with top_k {largest} and {attack.corruption_size} planted, "
                f"the first stands at 1, the top, to {largest - attack.corruption_size + 1}; lower it, or raise top_k"
            )


def _check_certifiable(defense: DefenseSpec) -> None:
    """Refuse, before the first row is made, settings that no certificate covers."""
    limits = [name for name in RULES if name not in ("group_by", "group_size", *HASTE)]
    try:
        for name in limits:
            for value in defense.settings.get(name, ()):
                VoteRules(**{name: value}).check_certifiable()
    except ValueError as error:
        raise ConfigError(f"defenses: {defense.name}: {error}, or ask for no certificates") from error


def beyond_the_end(attack: AttackSpec, top_k: int | None) -> bool:
    """True if the planted passages would stand higher than asked for, however many passages a question has."""
    if top_k is None or not isinstance(attack.rank, int):
        return False
    return attack.rank > max(top_k - attack.corruption_size + 1, 1)


def most_passages(config: EvalConfig) -> int | None:
    """Return the number of passages that a question needs for every setup; None for all that there are."""
    return None if None in config.top_k else max(k for k in config.top_k if k is not None)


def no_task(defense: DefenseSpec, tasks: Sequence[str]) -> ConfigError:
    """Return the error that a defence does none of the tasks of the data."""
    if "mc" in defense.tasks:
        fix = "it votes on choices: ask with task: mc"
    else:
        others = [m.name for m in METHODS.values() if m.takes_choices]
        fix = f"for multiple choice use {' or '.join(others)}, or ask with task: {defense.tasks[0]}"
    return ConfigError(
        f"defenses: {defense.name!r} is for the tasks {', '.join(defense.tasks)}, and the data is asked as "
        f"{', '.join(tasks)}; {fix}"
    )
