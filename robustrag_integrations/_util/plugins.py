"""Loads functions that a user names in a configuration or on the command line: attacks, metrics, models.

Naming one imports its module, which runs that module's code.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def load_object(name: str, what: str = "") -> Any:
    """Return the object named `module:function` or `path/to/file.py:function`; ValueError if there is none.

    The part after the colon may be dotted. Modules in the working folder are found. An error begins with `what`.
    """
    about = f"{what}: " if what else ""
    place, _, path = name.rpartition(":")
    try:
        if place.endswith(".py"):
            found: Any = _from_file(Path(place))
        else:
            see_working_folder()
            found = importlib.import_module(place)
    except Exception as error:  # the module is the user's: importing it may raise anything
        raise ValueError(
            f"{about}cannot import {place!r} ({error}); use module:function or file.py:function"
        ) from error
    try:
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise ValueError(f"{about}{error}") from error
    return found


def source_digest(thing: Any) -> str | None:
    """Return a hash of the source file of a function, or of a callable object's class; None if there is no file."""
    written = inspect.unwrap(thing)
    if not inspect.isroutine(written) and not inspect.isclass(written):
        written = type(written)
    try:
        file = inspect.getsourcefile(written)
    except TypeError:  # built into the interpreter
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None


def see_working_folder() -> None:
    """Make modules in the working folder importable, as with `python -m`; console scripts do not look there."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _from_file(path: Path) -> ModuleType:
    """Return the module of a file, executed once however often it is named."""
    name = f"robustrag_plugin_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
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
