"""An injection detector without a model: phrases that speak to whoever reads, and not about anything.

It is short, public and in English, and it knows the instructions that this project's own attacks are written with: that
it finds those says nothing about others. A detector that was trained is a function of the user's.
"""

from __future__ import annotations

import re

_LONGEST = 20_000  # characters of a passage that are searched
_PHRASES = re.compile(
    r"\b(?:ignore|disregard|forget)\b[^.\n]{0,40}\b(?:instructions?|prompts?|context|above|previous)\b"
    r"|\bsystem prompt\b|\byou are now\b|\byou must (?:answer|output|reply|say)\b"
    r"|\bplease (?:output|answer|reply|say|respond)\b|\bwhen(?:ever)? you are asked\b"
    r"|\b(?:output|reply|respond|answer) (?:only |just )?(?:with|exactly)\b",
    re.IGNORECASE,
)


def speaks_to_the_reader(text: str) -> bool:
    """Whether a passage holds one of the phrases."""
    return _PHRASES.search(" ".join(text[:_LONGEST].split())) is not None
