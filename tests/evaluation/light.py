"""A model that costs nothing, for runs that are killed and resumed: `python:tests.evaluation.light:answer`."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

_CAPITALS = re.compile(r"is ([A-Z]\w+)\.")
_ORDER = re.compile(r"please output (.+?)\.")
_OPTION = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)


def answer(prompt: str) -> str:
    """What the passages say most, or what a planted instruction tells; a letter where options are given."""
    time.sleep(float(os.environ.get("LIGHT_SECONDS", "0")))
    _, _, body = prompt.partition("Text:")
    ordered = _ORDER.findall(body)
    named = ordered[:1] or _CAPITALS.findall(body) or prompt.rpartition("Keywords: ")[2].split("\n")[0].split(", ")
    said = max(sorted(set(named)), key=named.count) if named[0] else "I don't know"
    for letter, option in _OPTION.findall(prompt):
        if option.casefold() == said.casefold():
            return letter
    return said


def broken(prompt: str) -> str:
    """Fails on every prompt."""
    raise RuntimeError("no such luck")


def noting(prompt: str) -> str:
    """`answer`; leaves a file named by its process in the folder LIGHT_NOTES."""
    Path(os.environ["LIGHT_NOTES"], str(os.getpid())).touch()
    time.sleep(0.02)
    return answer(prompt)


def dying(prompt: str) -> str:
    """`answer`; the first process that is asked about land 2 dies of it."""
    grave = Path(os.environ["LIGHT_NOTES"], "died")
    if "land 2" in prompt and not grave.exists():
        grave.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(prompt)
