"""The thresholds of the methods as options, and what is wrong with them before a model is loaded."""

from __future__ import annotations

import argparse
from typing import Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.defenses.registry import METHODS, Setting


def thresholds() -> dict[str, dict[str, Setting]]:
    """Every threshold by its name, and under it the setting of each method that has one of this name."""
    found: dict[str, dict[str, Setting]] = {}
    for method in METHODS.values():
        for setting in method.thresholds:
            found.setdefault(setting.name, {})[method.name] = setting
    return found


def threshold_help(of_methods: dict[str, Setting]) -> str:
    """What a threshold means, for `--help`."""
    return "; ".join(f"{name}: {s.meaning} (default {s.default:g})" for name, s in of_methods.items())


def add_thresholds(parser: argparse.ArgumentParser) -> None:
    """Add an option for every threshold: --alpha, --beta, --gamma, --eta, ..."""
    group = parser.add_argument_group("thresholds of the defences")
    for name, of_methods in thresholds().items():
        kind = next(iter(of_methods.values())).kind
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, help=threshold_help(of_methods))


def given_thresholds(args: argparse.Namespace, defense: str) -> dict[str, Any]:
    """The given thresholds of this defence."""
    own = METHODS[defense].thresholds if defense in METHODS else ()
    return {s.name: value for s in own if (value := getattr(args, s.name)) is not None}


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
        METHODS[defense].settings_of(given)
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
