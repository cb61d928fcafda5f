"""From options to a defence."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.cli.thresholds import given_thresholds
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES, METHODS
from robustrag_integrations.defenses.settings_file import VOTES
from robustrag_integrations.display import printable
from robustrag_integrations.grouping.votes import HASTE, VoteRules
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.prompts import Task


def built_defense(args: argparse.Namespace, name: str, model: TextModel, task: Task) -> Defense:
    """The defence of this name with the thresholds and rules that were given.

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
    """Raise UsageError if the defence cannot count votes like this, before anything is read."""
    given = [setting for setting in (*HASTE, "weights") if getattr(args, setting)]
    idle = [*given, *(setting for setting in ("min_groups", "min_radius") if getattr(args, setting))]
    idle += ["copies"] if args.copies == "one_vote" else []
    if idle and name in BASELINES:
        raise UsageError(f"--{idle[0].replace('_', '-')} does nothing for --defense {name}; leave it out")
    if given:
        try:
            METHODS[name].load().check_rules(VoteRules(**rules_of(args)))
        except ValueError as error:
            raise UsageError(str(error)) from error


def rules_of(args: argparse.Namespace) -> dict[str, Any]:
    """How votes are counted, as arguments of a defence."""
    return {**given_votes(args), "weights": _weights(args.weights) if args.weights else None}


def given_votes(args: argparse.Namespace) -> dict[str, Any]:
    """What was given of what a settings file may say about votes."""
    return {name: value for name in VOTES if (value := getattr(args, name, None)) is not None}


def _weights(given: Sequence[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for origin, votes in given:
        if found.setdefault(origin, votes) != votes:
            raise UsageError(
                f"--weights gives {printable(origin, 60)!r} {found[origin]} votes, and {votes}; name it once"
            )
    return found
