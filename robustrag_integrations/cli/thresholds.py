"""The thresholds of the defences as options, and what is wrong with them before a model is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from robustrag_integrations.cli.exits import UsageError

_OF_DEFENSES: Mapping[str, tuple[str, ...]] = {"keyword": ("alpha", "beta"), "decoding": ("gamma", "eta")}


def add_thresholds(parser: argparse.ArgumentParser) -> None:
    """Add --alpha, --beta, --gamma and --eta."""
    group = parser.add_argument_group("thresholds of the defences")
    group.add_argument("--alpha", type=float, help="keyword: share of answering groups that must agree (default 0.3)")
    group.add_argument("--beta", type=int, help="keyword: number of groups that is enough in any case (default 3)")
    group.add_argument("--gamma", type=float, help="decoding: probability of abstaining that counts (default 0.99)")
    group.add_argument("--eta", type=float, help="decoding: smallest lead of a token, in probability (default 0)")


def given_thresholds(args: argparse.Namespace, defense: str) -> dict[str, Any]:
    """Those of this defence that were typed."""
    return {name: value for name in _OF_DEFENSES.get(defense, ()) if (value := getattr(args, name)) is not None}


def check_thresholds(args: argparse.Namespace, defense: str) -> None:
    """Raise unless all that was typed is this defence's, and in range.

    Raises:
        UsageError: the message names the option and the fix.
    """
    used = _OF_DEFENSES.get(defense, ())
    for name in (name for names in _OF_DEFENSES.values() for name in names):
        if getattr(args, name) is not None and name not in used:
            raise UsageError(f"--{name} does nothing for --defense {defense}; leave it out")
    given = given_thresholds(args, defense)
    try:
        if defense == "keyword":
            from robustrag_integrations.defenses.keyword.counting import KeywordThreshold

            KeywordThreshold.of(**{"alpha": 0.3, "beta": 3, **given})
        elif defense == "decoding":
            from robustrag_integrations.defenses.decoding.settings import DecodingSettings

            DecodingSettings.of(**given)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def check_probabilities(model: str, defense: str) -> None:
    """Raise when decoding aggregation is to run on a model whose name says that it gives no token probabilities.

    Raises:
        UsageError: it does.
    """
    if defense == "decoding" and model.startswith("openai:"):
        raise UsageError(
            "--defense decoding needs token probabilities: give a local model, openai-completions:NAME for a server "
            "that tells them (vLLM, SGLang), or --defense keyword"
        )
