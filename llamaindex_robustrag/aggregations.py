"""Chooses the core's method that a synthesizer runs, and its settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from llamaindex_robustrag.llm_calls import CallOptions
from robustrag_integrations._util.checks import refuse_unknown
from robustrag_integrations.defenses.base import MethodSettings
from robustrag_integrations.defenses.method_options import MethodOptions
from robustrag_integrations.defenses.registry import METHODS, Method, default_method, method_of
from robustrag_integrations.prompts import PromptSet

_OF_OBJECTS = {
    **{each.name: f"pass calls=CallOptions({each.name}=...)" for each in fields(CallOptions) if each.init},
}


class SynthesizerOptions(MethodOptions, total=False):
    """The settings of the methods that ship; `aggregation` decides which of them apply."""

    prompts: PromptSet | None


def method_and_settings(
    aggregation: str | None,
    given: Mapping[str, Any],
    others: Collection[str] = (),
    arguments: Collection[str] = (),
) -> tuple[Method, MethodSettings]:
    """Return the core's method and its settings.

    Args:
        aggregation: a method's name; None for the one that takes all that is given.
        given: the settings by name, `task` and `prompts` among them; None for the default.
        others: the names of what else was given that not every method takes.
        arguments: the names of all that a synthesizer takes.

    Raises:
        ValueError, TypeError: an unknown method or argument, or an invalid one.
    """
    method = method_of(default_method(given.get("task"), [*given, *others]) if aggregation is None else aggregation)
    known = [*(setting.name for setting in method.settings), "task", "prompts"]
    of_others = [setting.name for other in METHODS.values() for setting in other.settings]
    taker = f"{method.name} aggregation"
    refuse_unknown(given, known, taker, others=[*of_others, *arguments, *_OF_OBJECTS], instead=_OF_OBJECTS)
    settings: MethodSettings = method.settings_of(given)
    return method, settings
