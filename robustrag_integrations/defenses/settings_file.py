"""Settings files: a method, its settings and its vote rules as YAML, which every entry point reads (`settings=`).

A file is data and nothing else: it names no function and
no prompt, its size is bounded, and what it does not say has its default.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.sections import Section, shown
from robustrag_integrations._util.yaml_files import read_yaml
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.grouping.passages import PASSAGE
from robustrag_integrations.grouping.votes import VOTES, VoteRules, rules_of

SCHEMA = "robustrag/settings/1"
_KEYS = ("schema", "aggregation", "task", "settings", "votes", "retrieval")
_MAPPINGS = ("weights", "tiers", "min_radius")  # votes that may be
_INSTEAD = {  # of settings that there are no more, what to write
    "threshold": "leave it out; keyword keeps what min(alpha * n, beta) of n groups share",
    "share": "keyword has alpha, the share of the groups that answer; 'agreement: majority' of consensus asks for more "
    "than half of them",
    "min_support": "write alpha and beta",
    "replies": "leave it out; replies are text",
    "ungrounded": "leave it out; 'unsure: abstain' of consensus leaves out what the model is unsure of",
    "extractor": "leave it out; consensus counts whole answers, and keyword finds keywords",
}
_NOW = {("extractor", "runs"): "words", ("final", "auto"): "always"}  # of values that there are no more
_log = logging.getLogger(__name__)


class SettingsError(RobustRAGError, ValueError):
    """An unusable settings file; the message names the file, the key, the value and the fix."""


@dataclass(frozen=True)
class SavedSettings:
    """The contents of a settings file.

    Attributes:
        path: the file, for messages.
        aggregation: the method's name.
        options: its task and settings, by their names.
        votes: fields of `VoteRules`, by their names.
        top_k: number of passages that were retrieved when these were chosen; None where it is not said. Commands that
            retrieve use it; nothing else can, since a retriever belongs to the program.
    """

    path: str
    aggregation: str
    options: Mapping[str, Any] = field(default_factory=dict)
    votes: Mapping[str, Any] = field(default_factory=dict)
    top_k: int | None = None

    @property
    def method(self) -> Method:
        """The method."""
        return METHODS[self.aggregation]

    def under(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments: those given (None: not given) win over the file's, `aggregation` among them.

        Raises:
            SettingsError: another method is given; its settings are not in the file.
        """
        explicit = {name: value for name, value in given.items() if value is not None}
        wanted = explicit.get("aggregation", self.aggregation)
        if wanted != self.aggregation:
            raise SettingsError(
                f"{self.path}: these settings are for {self.aggregation!r}, and aggregation={shown(wanted)} is given; "
                "leave one out"
            )
        votes = dict(self.votes)
        if explicit.keys() & {"group_by", "group_size"}:  # the two say one thing together
            votes = {name: value for name, value in votes.items() if name not in ("group_by", "group_size")}
        if "stop_when_decided" in explicit:
            votes.pop("wave_size", None)
        return {"aggregation": self.aggregation, **self.options, **votes, **explicit}

    def note_top_k(self) -> None:
        """Log a `top_k` of the file, which a defence cannot apply."""
        if self.top_k is not None:
            _log.warning(
                "%s was chosen with top_k=%d passages; a settings file does not reach your retriever: set it there",
                self.path,
                self.top_k,
            )


SettingsLike: TypeAlias = str | os.PathLike[str] | SavedSettings


def load_settings(settings: SettingsLike) -> SavedSettings:
    """Read and check a settings file; settings that were read already are returned as they are.

    Raises:
        SettingsError: it cannot be read, or holds something else than settings.
        ImportError: pyyaml is missing.
    """
    if isinstance(settings, SavedSettings):
        return settings
    if not isinstance(settings, (str, os.PathLike)):
        raise TypeError(
            f"settings must be the path of a settings file or what load_settings gives, got {type(settings).__name__}"
        )
    path = os.fspath(settings)
    name = printable(path, 200)
    try:
        return _checked(read_yaml(path, "settings file", SettingsError), name)
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from error


_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_settings(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function with a method's keyword arguments, `group_by` and `votes` take `settings=` and single vote rules.

    The file fills in what is not given, and the vote rules that are left at their defaults.

    Raises:
        ValueError: a rule is given by itself and in `votes`.
    """

    @wraps(function)
    def filled(*args: _P.args, **given: _P.kwargs) -> _R:
        settings: Any = given.pop("settings", None)
        votes: Any = given.pop("votes", VoteRules())
        if not isinstance(votes, VoteRules):
            votes = rules_of(votes, None)
        rules = {n: v for n in VOTES if (v := getattr(votes, n)) != getattr(VoteRules, n)}
        for name in VOTES:
            if name != "group_by" and (value := given.pop(name, None)) is not None:
                if name in rules:
                    raise ValueError(f"{name}={value!r:.60} and votes.{name}={rules[name]!r:.60}: give one of them")
                rules[name] = value
        if settings is None:
            arguments: Any = {**given, "votes": VoteRules(**rules)}
            return function(*args, **arguments)
        saved = load_settings(settings)
        arguments = saved.under({**given, **rules})
        rules = {name: arguments.pop(name) for name in VOTES if name != "group_by" and name in arguments}
        if rules:
            arguments["votes"] = VoteRules(**rules)
        saved.note_top_k()
        return function(*args, **arguments)

    return filled


def saved_under(given: Mapping[str, Any], settings: SettingsLike, method: Method) -> dict[str, Any]:
    """Return the arguments of a method's class, with what the file fills in.

    Raises:
        SettingsError: the file cannot be used, or is for another method.
    """
    saved = load_settings(settings)
    if saved.aggregation != method.name:
        raise SettingsError(
            f"{saved.path}: these settings are for {saved.aggregation!r}, not for {method.class_name}; use "
            f"{saved.method.class_name}(model, settings=...) or from_settings(model, ...)"
        )
    arguments = saved.under(given)
    del arguments["aggregation"]
    saved.note_top_k()
    return arguments


def _checked(given: Mapping[str, Any], name: str) -> SavedSettings:
    top = Section(given, "", SettingsError)
    top.known(_KEYS)
    if given.get("schema", SCHEMA) != SCHEMA:
        raise top.wrong(f"{shown(given['schema'])} is not {SCHEMA!r}; give a settings file", "schema")
    if "aggregation" not in top:
        raise top.wrong(f"is missing; name the method: {', '.join(METHODS)}", "aggregation")
    method = METHODS[top.name("aggregation", METHODS)]
    options = _options(top, method)
    votes = _votes(_part(top, "votes"), method)
    retrieval = _part(top, "retrieval")
    retrieval.known(("top_k",))
    top_k = None if retrieval.get("top_k") is None else retrieval.number("top_k", 1, 1000)
    return SavedSettings(name, method.name, options, votes, top_k)


def _part(top: Section, key: str) -> Section:
    """Return the keys and values under a key; none where it is missing."""
    value = top.get(key)
    if value is not None and not (isinstance(value, dict) and all(isinstance(k, str) for k in value)):
        raise top.wrong(f"must hold keys and values, got {shown(value)}", key)
    return Section(value or {}, key, SettingsError)


def _options(top: Section, method: Method) -> dict[str, Any]:
    """Return task and settings, each checked alone, so that an error names its key, and then together."""
    found: dict[str, Any] = {}
    if "task" in top:
        found["task"] = top.name("task", method.tasks)
    part = _part(top, "settings")
    plain = [s.name for s in method.settings if s.is_number or s.is_choice or s.kind is bool]
    for setting in method.settings:
        if setting.name in part and setting.name not in plain:
            raise part.wrong("cannot stand in a file; pass it in Python", setting.name)
    for key, instead in _INSTEAD.items():
        if key in part and key not in plain:
            raise part.wrong(f"is no setting of {method.name} any more: {instead}", key)
    for (key, value), now in _NOW.items():
        if key in part and part[key] == value:
            raise part.wrong(f"{value!r} is there no more; write {now!r}", key)
    part.known(plain, of=f" of {method.name}")
    for key in plain:
        if key in part:
            _check_kind(part, key, method)
            _try(part, key, lambda key=key: method.settings_of({key: part[key]}))  # type: ignore[misc]
            found[key] = part[key]
    _try(part, None, lambda: method.settings_of(found))
    return found


def _check_kind(part: Section, key: str, method: Method) -> None:
    """Raise unless a number is a number: as a text it might be one of a billion digits."""
    setting = next(s for s in method.settings if s.name == key)
    value = part[key]
    if setting.is_number and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise part.wrong(f"must be a number, got {shown(value)}", key)


def _votes(part: Section, method: Method) -> dict[str, Any]:
    part.known(VOTES)
    found = {key: part[key] for key in VOTES if key in part}
    for key, value in found.items():
        if isinstance(value, (list, tuple)) or (isinstance(value, Mapping) and key not in _MAPPINGS):
            raise part.wrong(f"must be one value, got {shown(value)}", key)
        along: dict[str, Any] = {"stop_when_decided": True} if key == "wave_size" else {}
        along |= {"tiers": found["tiers"]} if key == "min_radius" and "tiers" in found else {}
        _try(part, key, lambda: method.load().check_rules(VoteRules(**{**along, key: value})))  # noqa: B023 - called at once
    _try(part, None, lambda: method.load().check_rules(VoteRules(**found)))
    return {"group_by": PASSAGE, **found} if found.get("group_size", 1) != 1 else found


def _try(part: Section, key: str | None, check: Callable[[], object]) -> None:
    """Let the method itself say what is wrong."""
    try:
        check()
    except (ValueError, TypeError, ImportError) as error:
        raise part.wrong(str(error), key) from error
