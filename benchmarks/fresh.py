"""Figures from Python processes of their own, where nothing has run before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


def figures(*arguments: str) -> Any:
    """What a new Python process prints as JSON; what it says on standard error is seen here as well.

    Args:
        arguments: of the interpreter, such as "-m" and a module, or "-c" and a program. It runs in the folder that
            holds `benchmarks`.

    Raises:
        subprocess.CalledProcessError: the process failed. Whatever ends this call ends the process first.
    """
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - our own code
    return json.loads(done.stdout)
