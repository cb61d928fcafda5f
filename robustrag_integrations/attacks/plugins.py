"""Attacks of the user's own: a plain function from a `Scene` to the texts to plant."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from robustrag_integrations.attacks.canned import REPEAT
from robustrag_integrations.attacks.families import ATTACKS
from robustrag_integrations.attacks.scene import Attack, AttackedQuestion, Writer


def attack_of(name: str | Writer) -> Attack:
    """The attack of that name, or a user's own.

    Args:
        name: a name of `ATTACKS`, `module:function`, `path/to/file.py:function`, or a function. The function takes a
            `Scene` and returns one text, or several; it decides what is planted and never where, so that whatever it
            returns is an attack within the budget. Naming one runs its module's code.

    Raises:
        ValueError: there is no such attack.
        TypeError: what is named is no function.
    """
    if isinstance(name, str):
        if name in ATTACKS:
            return ATTACKS[name]
        if ":" not in name:
            raise ValueError(f"attack {name!r} is unknown; use one of {', '.join(ATTACKS)}, or module:function")
        return _attack(name, _imported(name))
    label = f"{getattr(name, '__module__', '')}:{getattr(name, '__qualname__', type(name).__name__)}"
    return _attack(label, name)


def _attack(label: str, function: Any) -> Attack:
    if not callable(function):
        raise TypeError(f"attack {label!r} must be a function that takes a Scene, got {type(function).__name__}")
    writer: Callable[..., Any] = function
    return Attack(label, "your own", writer, REPEAT, _incorrect)


def _incorrect(question: AttackedQuestion) -> str | None:
    return question.incorrect


def _imported(name: str) -> Any:
    place, _, function = name.rpartition(":")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        found: Any = module
        for part in function.split("."):
            found = getattr(found, part)
    except (ImportError, OSError, ValueError, TypeError) as error:
        raise ValueError(f"attack {name!r}: cannot import {place!r} ({error}); use module:function") from error
    except AttributeError as error:
        raise ValueError(f"attack {name!r}: {error}") from error
    return found


def _from_file(path: Path) -> ModuleType:
    """The module of a file, run once however often it is named."""
    name = f"robustrag_attack_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"there is no file {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
