"""Imports the packages of the extra `cli`, with an error that says how to install it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def needed(module: str, purpose: str) -> ModuleType:
    """Import an optional module.

    Raises:
        ImportError: it is not installed; the message says what it is for and what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}: pip install 'robustrag-integrations[cli]'") from error
