"""The thresholds and choices of the methods as options, and what is wrong with them before a model is loaded."""

from __future__ import annotations

import argparse
from typing import Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.defenses.registry import BASELINES, METHODS, Setting, default_method, entry_of


def thresholds() -> dict[str, dict[str, Setting]]:
    """Every threshold and choice by its name, and under it the setting of each method that has one of this name."""
    found: dict[str, dict[str, Setting]] = {}
    for method in (*METHODS.values(), *BASELINES.values()):
        for setting in method.flags:
            found.setdefault(setting.name, {})[method.name] = setting
    return found


def default_defense(args: argparse.Namespace) -> str:
    """The method that takes the options that are given: --alpha means keyword, --choices voting."""
    names = [name for name in thresholds() if getattr(args, name, None) is not None]
    return default_method(None, [*names, *(["choices"] if getattr(args, "choices", None) else [])])


def threshold_help(of_methods: dict[str, Setting]) -> str:
    """What a threshold means, for `--help`."""
    settings = of_methods.values()
    if len({(s.meaning, s.default) for s in settings}) == 1:
        return f"{', '.join(of_methods)}: {next(iter(settings)).meaning} (default {next(iter(settings)).default})"
    return "; ".join(f"{name}: {s.meaning} (default {s.default})" for name, s in of_methods.items())


def value_of(of_methods: dict[str, Setting]) -> dict[str, Any]:
    """What an option for a setting takes, as arguments of `add_argument`."""
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
    """The given thresholds of this defence, and what a settings file says besides."""
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
    if not given:
        return
    try:
        entry_of(defense).settings_of(given)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def check_probabilities(model: str, defense: str) -> None:
    """Raise when a method that needs token probabilities is to run on a model whose name says that it gives none.

    Raises:
        UsageError: it does.
    """
    if defense in METHODS and METHODS[defense].needs_probabilities and model.startswith("openai:"):
        raise UsageError(
            f"--defense {defense} needs token probabilities: give a local model, openai-completions:NAME for a server "
            "that gives them (vLLM, SGLang), or --defense keyword"
        )
