"""Builds a defence from options: its thresholds, its settings file, and how votes are counted."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations.cli.output import UsageError
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES, METHODS, Setting, default_method, entry_of
from robustrag_integrations.defenses.settings_file import SavedSettings, SettingsError, load_settings
from robustrag_integrations.grouping.votes import HASTE, VOTES, VoteRules
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.prompts import OPEN_TASKS, Task

_NOT_TYPED: Any = object()


def thresholds() -> dict[str, dict[str, Setting]]:
    """Return every threshold and choice by name, each with the setting of every method that has one of this name."""
    found: dict[str, dict[str, Setting]] = {}
    for method in (*METHODS.values(), *BASELINES.values()):
        for setting in method.flags:
            found.setdefault(setting.name, {})[method.name] = setting
    return found


def default_defense(args: argparse.Namespace) -> str:
    """Return the method that takes the given options: --alpha means keyword, --choices voting."""
    names = [name for name in thresholds() if getattr(args, name, None) is not None]
    return default_method(
        getattr(args, "task", None), [*names, *(["choices"] if getattr(args, "choices", None) else [])]
    )


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add --task."""
    parser.add_argument(
        "--task",
        choices=OPEN_TASKS,
        help="a short answer (default); instructions and other long answers (long_form); or all items that there are "
        "(list). The last two are counted claim by claim: --min-support says how many sources each one takes",
    )


def threshold_help(of_methods: dict[str, Setting]) -> str:
    """Return the `--help` text of a threshold."""
    settings = of_methods.values()
    if len({(s.help, s.default) for s in settings}) == 1:
        return f"{', '.join(of_methods)}: {next(iter(settings)).help} (default {next(iter(settings)).default})"
    return "; ".join(f"{name}: {s.help} (default {s.default})" for name, s in of_methods.items())


def value_of(of_methods: dict[str, Setting]) -> dict[str, Any]:
    """Return the type of a setting's option, as arguments of `add_argument`."""
    setting = next(iter(of_methods.values()))
    if setting.is_function:
        return {"type": str, "metavar": "MODULE:FUNCTION"}
    return {"choices": setting.values} if setting.is_choice else {"type": setting.kind}


def add_thresholds(parser: argparse.ArgumentParser) -> None:
    """Add an option for every threshold and choice: --alpha, --beta, --gamma, --eta, --cut-replies, ..."""
    group = parser.add_argument_group("thresholds and settings of the defences")
    for name, of_methods in thresholds().items():
        group.add_argument(f"--{name.replace('_', '-')}", **value_of(of_methods), help=threshold_help(of_methods))


def given_thresholds(args: argparse.Namespace, defense: str) -> dict[str, Any]:
    """Return the given thresholds of this defence, and those of a settings file."""
    settings = [s for s in entry_of(defense).settings if s.is_number or s.is_choice or s in entry_of(defense).flags]
    return {s.name: value for s in settings if (value := getattr(args, s.name, None)) is not None}


def check_thresholds(args: argparse.Namespace, defense: str) -> None:
    """Check that every given threshold belongs to this defence and is in range.

    Raises:
        UsageError: the message names the option and the fix.
    """
    for name, of_methods in thresholds().items():
        if getattr(args, name) is not None and defense not in of_methods:
            raise UsageError(f"--{name.replace('_', '-')} does nothing for --defense {defense}; leave it out")
    given = given_thresholds(args, defense)
    if getattr(args, "task", None) is not None:
        given["task"] = args.task
    if not given:
        return
    try:
        entry_of(defense).settings_of(given)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def check_probabilities(model: str, defense: str) -> None:
    """Raise if a method that needs token probabilities would run on a model that gives none, by its name.

    Raises:
        UsageError: it does.
    """
    if defense in METHODS and METHODS[defense].needs_probabilities and model.startswith("openai:"):
        raise UsageError(
            f"--defense {defense} needs token probabilities: give a local model, openai-completions:NAME for a server "
            "that gives them (vLLM, SGLang), or --defense keyword"
        )


def add_settings(parser: Any) -> None:
    """Add --settings."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="a settings file, as robustrag tune writes it: the defence, its settings, what one vote is, and top-k; "
        "what is typed wins over it",
    )


def read_settings(path: str) -> SavedSettings:
    """Return the settings in a file.

    Raises:
        UsageError: it cannot be used.
    """
    try:
        return load_settings(path)
    except SettingsError as error:
        raise UsageError(f"--settings {error}") from error


def under_settings(
    parser: argparse.ArgumentParser, args: argparse.Namespace, argv: Sequence[str] | None
) -> argparse.Namespace:
    """Return the arguments, completed from the file of `--settings`, whose contents are `saved`.

    Args:
        parser: what read the arguments.
        args: as they were typed, with the command's defaults.
        argv: what was typed.

    Raises:
        UsageError: the file cannot be used, or is for another defence than the one that was typed.
    """
    saved = args.saved = read_settings(args.settings)
    named = ("defense", "top_k", *VOTES, *saved.options)
    args.parser.set_defaults(**dict.fromkeys(named, _NOT_TYPED))
    again = vars(parser.parse_args(argv))
    typed = {name: again[name] for name in named if again[name] is not _NOT_TYPED}
    defense = typed.pop("defense", None) or saved.aggregation
    if defense != saved.aggregation:
        raise UsageError(f"--settings {saved.path} is for --defense {saved.aggregation}, not {defense}; leave one out")
    found = {"top_k": saved.top_k, **saved.under(typed)}
    args.defense = found.pop("aggregation")
    for name, value in found.items():
        if value is not None:
            setattr(args, name, value)
    return args


def built_defense(args: argparse.Namespace, name: str, model: TextModel, task: Task) -> Defense:
    """Build the defence of this name with the given thresholds and rules.

    Raises:
        UsageError: the model does not give what it needs.
    """
    made: Defense
    if name in BASELINES:
        made = BASELINES[name].build(model, task=task, **given_thresholds(args, name))
        return made
    if METHODS[name].needs_probabilities and not isinstance(model, DecodingModel):
        raise UsageError(f"--defense {name} needs token probabilities, which {model.description} does not give")
    made = METHODS[name].build(model, task=task, **rules_of(args), **given_thresholds(args, name))
    return made


def check_rules(args: argparse.Namespace, name: str) -> None:
    """Raise UsageError if the defence cannot count votes in this way, before anything is read."""
    given = [setting for setting in (*HASTE, "weights", "tiers") if getattr(args, setting)]
    idle = [*given, *(setting for setting in ("min_groups", "min_radius") if getattr(args, setting))]
    idle += ["copies"] if args.copies == "one_vote" else []
    if idle and name in BASELINES:
        raise UsageError(f"--{idle[0].replace('_', '-')} does nothing for --defense {name}; leave it out")
    if given or isinstance(args.min_radius, Mapping):
        try:
            METHODS[name].load().check_rules(VoteRules(**rules_of(args)))
        except ValueError as error:
            raise UsageError(str(error)) from error


def rules_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the rules for counting votes, as arguments of a defence."""
    return {**given_votes(args), "weights": _by_name("weights", args.weights), "tiers": _by_name("tiers", args.tiers)}


def given_votes(args: argparse.Namespace) -> dict[str, Any]:
    """Return the typed options about votes that a settings file may hold, too."""
    return {name: value for name in VOTES if (value := getattr(args, name, None)) is not None}


def _by_name(option: str, given: Any) -> Any:
    """Return what was typed as pairs, or as one word, as `VoteRules` takes it; what a settings file holds as it is."""
    if not isinstance(given, list):
        return given
    if isinstance(given[0], str) and len(given) == 1:
        return given[0]
    found: dict[str, Any] = {}
    for pair in given:
        if isinstance(pair, str):
            raise UsageError(f"--{option} {printable(pair, 60)}: give it alone, or pairs such as ORIGIN=...")
        origin, value = pair
        if found.setdefault(origin, value) != value:
            raise UsageError(f"--{option} gives {printable(origin, 60)!r} {found[origin]}, and {value}; name it once")
    return found
