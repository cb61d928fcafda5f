"""Settings files, and how they go together with what is given: a method, its settings and its vote rules.

A file is YAML, which every entry point reads (`settings=`). It is data and nothing else: it names no function and no
prompt, its size is bounded, and what it does not say has its default.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.sections import Section, shown
from robustrag_integrations._util.yaml_files import read_yaml
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.grouping.passages import PASSAGE
from robustrag_integrations.grouping.votes import RULES, VoteRules

SCHEMA = "robustrag/settings/1"
_KEYS = ("schema", "aggregation", "task", "settings", "votes", "retrieval")
_INSTEAD = {  # of settings that there are no more, what to write
    "threshold": "leave it out; keyword keeps what min(alpha * n, beta) of n groups share",
    "share": "keyword has alpha, the share of the groups that answer; 'agreement: majority' of consensus asks for more "
    "than half of them",
    "min_support": "write alpha and beta",
    "replies": "leave it out; replies are text",
    "ungrounded": "leave it out; 'unsure: abstain' of consensus leaves out what the model is unsure of",
    "extractor": "leave it out; consensus counts whole answers, and keyword finds keywords",
    "final": "leave it out; consensus words its answer by 'wording: model', and keyword has 'final: always'",
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

    def under(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings and vote rules: those given win over the file's."""
        votes = dict(self.votes)
        if given.keys() & {"group_by", "group_size"}:  # the two say one thing together
            votes = {name: value for name, value in votes.items() if name not in ("group_by", "group_size")}
        if "stop_when_decided" in given:
            votes.pop("wave_size", None)
        return {**self.options, **votes, **given}


SettingsLike: TypeAlias = str | os.PathLike[str] | SavedSettings


@dataclass(frozen=True)
class Arguments:
    """What a user chose, of the arguments of a defence and of its settings file.

    Attributes:
        aggregation: the method's name; None where neither names one.
        rules: the vote rules.
        options: task, prompts and settings, by their names.
    """

    aggregation: str | None
    rules: VoteRules
    options: dict[str, Any]

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any],
        *,
        aggregation: str | None = None,
        votes: VoteRules | None = None,
        settings: SettingsLike | None = None,
    ) -> Arguments:
        """Put together what is given; the file fills in the rest.

        Args:
            given: settings and vote rules by name; None: not given.
            aggregation: the method's name, if it is given.
            votes: more vote rules; those at their defaults are not given.
            settings: the file.

        Raises:
            ValueError: a rule is given by itself and in `votes`, the file cannot be used, or is for another method.
            TypeError: `votes` is no `VoteRules`.
        """
        given = {name: value for name, value in given.items() if value is not None}
        if votes is not None and not isinstance(votes, VoteRules):
            raise TypeError(f"votes must be VoteRules(...), got {type(votes).__name__}")
        for name, rule in {} if votes is None else votes.given.items():
            if given.setdefault(name, rule) != rule:
                raise ValueError(f"{name}={given[name]!r:.60} and votes.{name}={rule!r:.60}: give one of them")
        if settings is not None:
            saved = load_settings(settings)
            if aggregation not in (None, saved.aggregation):
                raise SettingsError(
                    f"{saved.path}: these settings are for {saved.aggregation!r}, and not for {aggregation!r}; use "
                    f"{METHODS[saved.aggregation].class_name}(model, settings=...) or from_settings(model, ...), or "
                    "leave one out"
                )
            if saved.top_k is not None:
                _log.warning(
                    "%s was chosen with top_k=%d passages; a settings file does not reach your retriever: set it there",
                    saved.path,
                    saved.top_k,
                )
            aggregation, given = saved.aggregation, saved.under(given)
        rules = VoteRules(**{name: given.pop(name) for name in RULES if name in given})
        return cls(aggregation, rules, given)


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


def _checked(given: Mapping[str, Any], name: str) -> SavedSettings:
    top = Section(given, "", SettingsError)
    top.known(_KEYS)
    if given.get("schema", SCHEMA) != SCHEMA:
        raise top.wrong(f"{shown(given['schema'])} is not {SCHEMA!r}; give a settings file", "schema")
    if "aggregation" not in top:
        raise top.wrong(f"is missing; name the method: {', '.join(METHODS)}", "aggregation")
    method = METHODS[top.name("aggregation", METHODS)]
    task = {"task": top.name("task", method.tasks)} if "task" in top else {}
    options = {**task, **_settings(_part(top, "settings"), method, task)}
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


def _refuse_empty(part: Section) -> None:
    """Raise for a key without a value, which would mean one thing here and another in Python."""
    if empty := [key for key, value in part.given.items() if value is None]:
        raise part.wrong("is empty; give it a value, or leave it out for the default", empty[0])


def _settings(part: Section, method: Method, task: Mapping[str, Any]) -> Mapping[str, Any]:
    _refuse_empty(part)
    names = [setting.name for setting in method.settings]
    plain = [setting.name for setting in method.settings if setting.is_plain]
    for key, value in part.given.items():
        if key in _INSTEAD and key not in names:
            raise part.wrong(f"is no setting of {method.name} any more: {_INSTEAD[key]}", key)
        if key in plain and (now := _NOW.get((key, str(value)))) is not None:
            raise part.wrong(f"{value!r} is there no more; write {now!r}", key)
    for setting in method.settings:
        if setting.name in part and not setting.is_plain:
            raise part.wrong("cannot stand in a file; pass it in Python", setting.name)
        if setting.name in part and setting.values:
            part.name(setting.name, setting.values)
    part.known(plain, of=f" of {method.name}")
    try:
        method.settings_of({**task, **part.given})
    except (ValueError, TypeError, ImportError) as error:
        raise part.wrong(str(error)) from error
    return part.given


def _votes(part: Section, method: Method) -> dict[str, Any]:
    part.known(RULES)
    _refuse_empty(part)
    found = dict(part.given)
    for key, value in found.items():
        if isinstance(value, (list, tuple)) or (isinstance(value, Mapping) and not RULES[key].is_mapping):
            raise part.wrong(f"must be one value, got {shown(value)}", key)
    try:
        method.load().check_rules(VoteRules(**found))
    except (ValueError, TypeError, ImportError) as error:
        raise part.wrong(str(error)) from error
    return {"group_by": PASSAGE, **found} if found.get("group_size", 1) != 1 else found
