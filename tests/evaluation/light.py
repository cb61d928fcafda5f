"""A model that costs nothing, for runs that are killed and resumed: `python:tests.evaluation.light:answer`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

_CAPITALS = re.compile(r"is ([A-Z]\w+)\.")
_ORDER = re.compile(r"please output (.+?)\.")
_KEPT = re.compile(r"^(?:Keywords|Phrases): (.*)$", re.MULTILINE)
_OPTION = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)


def answer(prompt: str) -> str:
    """What the passages say most, or what a planted instruction tells; a letter where options are given."""
    time.sleep(float(os.environ.get("LIGHT_SECONDS", "0")))
    _, _, body = prompt.partition("Text:")
    ordered = _ORDER.findall(body)
    named = (
        ordered[:1] or _CAPITALS.findall(body) or [word for kept in _KEPT.findall(prompt) for word in kept.split(", ")]
    )
    said = max(sorted(set(named)), key=named.count, default="") or "I don't know"
    if prompt.endswith("Phrases:") and named:
        return f"capital city {said}"
    for letter, option in _OPTION.findall(prompt):
        if option.casefold() == said.casefold():
            return letter
    return said


def grader(prompt: str) -> str:
    """A judge: 80 for the right capital of land 0, no score for nonsense, else 10."""
    said = prompt.rpartition("\nAnswer:\n")[2].removesuffix("\n\nScore:")
    return "Score: 80" if "strelsau" in said.casefold() else "It depends." if said == "Nobody" else "10"


def broken(prompt: str) -> str:
    """Fails on every prompt."""
    raise RuntimeError("no such luck")


def fussy(response: str, references: Sequence[str]) -> float:
    """A metric that fails on every answer about Zenda."""
    if "Zenda" in response:
        raise LookupError("who is Zenda?")
    return 1.0


def deadly(prompt: str) -> str:
    """Ends its process on a question about land 1, once for each file that LIGHT_DEADLY names."""
    if "land 1" in prompt and Path(os.environ["LIGHT_DEADLY"]).exists():
        Path(os.environ["LIGHT_DEADLY"]).unlink()
        os._exit(9)
    return answer(prompt)
