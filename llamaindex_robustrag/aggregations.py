"""Chooses the core's method that a synthesizer runs, and its settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from llamaindex_robustrag.llm_calls import CallOptions
from robustrag_integrations.defenses.registry import Method, method_for
from robustrag_integrations.defenses.settings import MethodSettings

_OF_OBJECTS = {each.name: f"pass calls=CallOptions({each.name}=...)" for each in fields(CallOptions) if each.init}


def method_and_settings(
    aggregation: str | None,
    options: Mapping[str, Any],
    others: Collection[str] = (),
    arguments: Collection[str] = (),
) -> tuple[Method, MethodSettings]:
    """Return the core's method and its settings.

    Args:
        aggregation: a method's name; None for the one that takes all that is given.
        options: the given settings by name, `task` and `prompts` among them.
        others: the names of what else was given that not every method takes.
        arguments: the names of all that a synthesizer takes, which may have been meant.

    Raises:
        ValueError, TypeError: an unknown method or argument, or an invalid one.
    """
    method = method_for(aggregation, options, others)
    method.check_names(options, ("task", "prompts"), near=[*arguments, *_OF_OBJECTS], instead=_OF_OBJECTS)
    settings: MethodSettings = method.load().settings_of(**options)
    return method, settings
