"""Turns `--model` into a model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations.cli.output import UsageError
from robustrag_integrations.models.providers import NamedModel, forms_that_take, takes

_SETTINGS = ("dtype", "max_new_tokens", "max_context_tokens")


def with_settings(models: Sequence[Any], args: argparse.Namespace) -> list[Any]:
    """Return the models of a configuration, each with those of these options that it takes.

    Raises:
        UsageError: none of them takes it.
    """
    given = {name: value for name in _SETTINGS if (value := getattr(args, name)) is not None}
    entries = [{"name": model} if isinstance(model, str) else model for model in models]
    for name in given:
        if not any(isinstance(e, Mapping) and takes(str(e.get("name")), name) for e in entries):
            raise UsageError(f"--{name.replace('_', '-')} goes with --model {forms_that_take(name)}")
    return [
        {**e, **{name: value for name, value in given.items() if takes(str(e.get("name")), name)}}
        if given and isinstance(e, Mapping)
        else model
        for e, model in zip(entries, models, strict=True)
    ]


def named_model(
    name: str, base_url: str | None = None, *, max_context_tokens: int = 512, max_concurrency: int | None = None
) -> NamedModel:
    """Return what `load()` makes a model of.

    Args:
        name: a model's name that `check_name` has passed, as `PROVIDERS` has them.
        base_url: the server of a served model.
        max_context_tokens: number of tokens of passages that a group may have; local models only.
        max_concurrency: number of calls that may be under way; None for the model's default. Local models run batches.

    Raises:
        UsageError: `base_url` with a model that has no server, or one that is not an address.
    """
    settings: dict[str, Any] = {"max_context_tokens": max_context_tokens, "max_concurrency": max_concurrency}
    try:
        return NamedModel(name, base_url, **{what: value for what, value in settings.items() if takes(name, what)})
    except ValueError as error:
        message = str(error).replace("base_url goes with ", "--base-url goes with --model ")
        raise UsageError(message.replace("base_url=", "--base-url ")) from error
