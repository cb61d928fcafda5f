"""Settings files, and how they go together with what is given: a method, its settings and its vote rules.

A file is YAML, which every entry point reads (`settings=`). It is data and nothing else: it names no function and no
prompt, its size is bounded, and what it does not say has its default.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from robustrag_integrations._util.checks import is_whole_number, nearest_of
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.yaml_files import read_yaml, shown
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.grouping.passages import PASSAGE
from robustrag_integrations.grouping.votes import RULES, VoteRules

SCHEMA = "robustrag/settings/3"


class SettingsError(RobustRAGError, ValueError):
    """An unusable settings file; the message names the file, the key, the value and the fix."""


@dataclass(frozen=True)
class SavedSettings:
    """The contents of a settings file.

    Task and settings (`options`), fields of `VoteRules`, and for the commands `top_k`.
    """

    path: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    votes: Mapping[str, Any] = field(default_factory=dict)
    top_k: int | None = None

    def under(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings and vote rules: those given win over the file's."""
        votes = dict(self.votes)
        if given.keys() & {"group_by", "passages_per_source"}:  # the two say one thing together
            votes = {name: value for name, value in votes.items() if name not in ("group_by", "passages_per_source")}
        if "stop_when_decided" in given:
            votes.pop("wave_size", None)
        return {**self.options, **votes, **given}


SettingsLike: TypeAlias = str | os.PathLike[str] | SavedSettings


@dataclass(frozen=True)
class Arguments:
    """What a user chose, of the arguments of a defence and of its settings file."""

    method: str | None
    rules: VoteRules
    options: dict[str, Any]

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any],
        *,
        method: str | None = None,
        votes: VoteRules | None = None,
        settings: SettingsLike | None = None,
    ) -> Arguments:
        """Put together what is given (None: not given); the file fills in the rest."""
        given = {name: value for name, value in given.items() if value is not None}
        if votes is not None and not isinstance(votes, VoteRules):
            raise TypeError(f"votes must be VoteRules(...), got {type(votes).__name__}")
        for name, rule in {} if votes is None else votes.given.items():
            if given.setdefault(name, rule) != rule:
                raise ValueError(f"{name}={given[name]!r:.60} and votes.{name}={rule!r:.60}: give one of them")
        if settings is not None:
            saved = load_settings(settings)
            if method not in (None, saved.method):
                raise SettingsError(
                    f"{saved.path}: these settings are for {saved.method!r}, and not for {method!r}; use "
                    f"{METHODS[saved.method].class_name}(model, settings=...) or from_settings(model, ...), or "
                    "leave one out"
                )
            method, given = saved.method, saved.under(given)
        rules = VoteRules(**{name: given.pop(name) for name in RULES if name in given})
        return cls(method, rules, given)


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
    name = printable(os.fspath(settings), 200)
    try:
        return _checked(read_yaml(settings, "settings file", SettingsError), name)
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from error


def _checked(given: Mapping[str, Any], name: str) -> SavedSettings:
    _check_keys(given, ("schema", "method", "task", "settings", "votes", "retrieval"))
    _check_name("schema", given.get("schema", SCHEMA), (SCHEMA,))
    _check_name("method", given.get("method"), METHODS)
    method = METHODS[given["method"]]
    options, votes, retrieval = (_part(given, key) for key in ("settings", "votes", "retrieval"))
    _check_keys(retrieval, ("top_k",), "retrieval.")
    if not is_whole_number(top_k := retrieval.get("top_k", 1), 1, 1000):
        raise SettingsError(f"retrieval.top_k: {shown(top_k)} must be a whole number from 1 to 1,000")
    if "task" in given:
        _check_name("task", given["task"], method.tasks)
        options = {"task": given["task"], **options}
    _check_settings(options, method)
    _check_votes(votes, method)
    votes = {"group_by": PASSAGE, **votes} if votes.get("passages_per_source", 1) != 1 else votes
    return SavedSettings(name, method.name, options, votes, retrieval.get("top_k"))


def _part(top: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the keys and values under a key. An empty value would mean one thing here and another in Python."""
    part = top.get(key) or {}
    if not isinstance(part, dict) or not all(isinstance(name, str) for name in part):
        raise SettingsError(f"{key}: must hold keys and values, got {shown(part)}")
    for name, value in part.items():
        if value is None:
            raise SettingsError(f"{key}.{printable(name, 60)}: is empty; give it a value, or leave it out")
    return part


def _check_keys(given: Collection[str], known: Collection[str], place: str = "") -> None:
    for key in given:
        if key not in known:
            near = nearest_of(key, known)
            hint = f"did you mean {near!r}? " if near else ""
            raise SettingsError(f"{place}{printable(key, 60)}: unknown key; {hint}known are {', '.join(sorted(known))}")


def _check_name(key: str, value: Any, allowed: Collection[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        near = nearest_of(value, allowed) if isinstance(value, str) else None
        hint = f"; did you mean {near!r}?" if near else ""
        raise SettingsError(f"{key}: {shown(value)} must be one of {', '.join(allowed)}{hint}")


def _check_settings(options: Mapping[str, Any], method: Method) -> None:
    for setting in method.settings:
        if setting.name in options and not setting.is_plain:
            raise SettingsError(f"settings.{setting.name}: cannot stand in a file; pass it in Python")
        if setting.name in options and setting.values:  # never a function's name
            _check_name(f"settings.{setting.name}", options[setting.name], setting.values)
    _check_keys(options, ["task", *(s.name for s in method.settings if s.is_plain)], "settings.")
    try:
        method.settings_of(options)
    except (ValueError, TypeError, ImportError) as error:
        raise SettingsError(f"settings: {error}") from error


def _check_votes(votes: Mapping[str, Any], method: Method) -> None:
    _check_keys(votes, RULES, "votes.")
    for key, value in votes.items():
        if isinstance(value, list) or (isinstance(value, dict) and not RULES[key].is_mapping):
            raise SettingsError(f"votes.{key}: must be one value, got {shown(value)}")
    try:
        method.load().check_rules(VoteRules(**votes))
    except (ValueError, TypeError, ImportError) as error:
        raise SettingsError(f"votes: {error}") from error
