"""The choices on a page: methods and their settings, attacks, models, and the maximum of each thing."""

from __future__ import annotations

from typing import Any

from robustrag_integrations.defenses.registry import BASELINES, METHODS, Method, Setting
from robustrag_integrations.defenses.vanilla import VANILLA
from robustrag_integrations.playground import state
from robustrag_integrations.playground.certificates import MODES, MOST_CORRUPTED
from robustrag_integrations.playground.models import Models
from robustrag_integrations.playground.poisoning import attacks


def controls_of(models: Models, start: state.State) -> dict[str, Any]:
    """Return the choices in JSON's types, read from the registries, plugins included."""
    return {
        "start": start.as_dict(),
        "methods": [
            *(_method(method, certified=True) for method in METHODS.values()),
            *(_method(method, certified=False) for method in BASELINES.values() if method.name != VANILLA.name),
        ],
        "attacks": [{"name": a.name, "summary": a.summary} for a in attacks()],
        "models": [{"name": name, "local": named.local} for name, named in models.named.items()],
        "groupings": list(state.GROUPINGS),
        "modes": list(MODES),
        "bounds": {
            "passages": state.MOST_PASSAGES,
            "passage": state.LONGEST_PASSAGE,
            "question": state.LONGEST_QUESTION,
            "name": state.LONGEST_NAME,
            "choices": state.MOST_CHOICES,
            "number": state.LARGEST_NUMBER,
            "corrupted": MOST_CORRUPTED,
        },
    }


def _method(method: Method, *, certified: bool) -> dict[str, Any]:
    return {
        "name": method.name,
        "summary": method.summary,
        "tasks": [task for task in method.tasks if task != "multiple_choice"],
        "choices": method.takes_choices,
        "certified": certified,
        "settings": [_setting(setting) for setting in state.settable(method)],
    }


def _setting(setting: Setting) -> dict[str, Any]:
    return {
        "name": setting.name,
        "default": setting.default,
        "meaning": setting.help,
        "whole": setting.kind is int,
        "values": list(setting.values),
        "where": list(setting.where) if setting.where else None,
    }
