"""Loads functions that a user names in a configuration or on the command line: attacks, metrics, models.

Naming one imports its module, which runs that module's code.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pkgutil
import sys
from pathlib import Path
from typing import Any


def load_object(name: str, what: str = "") -> Any:
    """Return the object named `module:function`; ValueError if there is none.

    The part after the colon may be dotted. Modules in the working folder are found. An error begins with `what`.
    """
    see_working_folder()
    try:
        return pkgutil.resolve_name(name)
    except Exception as error:  # the module is the user's: importing it may raise anything
        about = f"{what}: " if what else ""
        raise ValueError(f"{about}cannot import {name!r} ({error}); use module:function") from error


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
