"""From `--model` to a model."""

from __future__ import annotations

import os
from typing import Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import TextModel

_SERVED = "openai:"


def check_model(name: str) -> str | None:
    """What is wrong with a model's name; None if nothing is."""
    if name.startswith(_SERVED):
        return None if name[len(_SERVED) :].strip() else "openai: needs a model's name, as in openai:gpt-4o-mini"
    if name == "bundled" or os.path.isdir(name):
        return None
    return f"unknown model {name!r}: give bundled, a folder with a transformers model, or openai:NAME"


def load_model(name: str, base_url: str | None = None, *, max_context_tokens: int = 512) -> TextModel:
    """The model of a name that `check_model` has passed.

    Args:
        name: `bundled`, a folder, or `openai:NAME`.
        base_url: the server of `openai:NAME`.
        max_context_tokens: how many tokens of passages a group may have; local models only.

    Raises:
        UsageError: `base_url` with a model that has no server, or one that is no address.
        ModelError: the model cannot be loaded, or has no key.
        ImportError: an extra is missing.
    """
    if name.startswith(_SERVED):
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            raise UsageError(f"--base-url {base_url!r} must start with http:// or https://")
        from robustrag_integrations.models.openai_compatible import OpenAIModel

        return OpenAIModel(name[len(_SERVED) :], base_url)
    if base_url is not None:
        raise UsageError(f"--base-url goes with --model openai:NAME, not with {name!r}")
    return _load_local(name, max_context_tokens)


def _load_local(name: str, max_context_tokens: int) -> TextModel:
    from robustrag_integrations.models.local import LocalModel

    _silence_transformers()
    if name == "bundled":
        try:
            return LocalModel.bundled(max_context_tokens=max_context_tokens)
        except FileNotFoundError as error:
            raise ModelError(str(error)) from error
    if not os.path.isfile(os.path.join(name, "config.json")):
        raise ModelError(f"the folder {name!r} holds no transformers model: there is no config.json in it")
    try:
        return LocalModel.from_pretrained(name, max_context_tokens=max_context_tokens)
    except (ModelError, ImportError):
        raise
    except Exception as error:  # a broken folder may raise nearly anything inside the libraries
        raise ModelError(f"cannot load the model {name!r}: {type(error).__name__}: {error}") from error


def _silence_transformers() -> None:
    """No progress bars and no advice from the library; what matters is in the answer's own warnings."""
    from transformers.utils import logging

    library: Any = logging  # its functions have no types
    library.set_verbosity_error()
    library.disable_progress_bar()
