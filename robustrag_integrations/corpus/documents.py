"""Documents before they are cut into passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robustrag_integrations.errors import RobustRAGError


class CorpusError(RobustRAGError):
    """A file or folder cannot be read as documents; the message names it and the fix."""


@dataclass(frozen=True)
class Document:
    """One text with an author.

    Attributes:
        text: all of it, in valid Unicode.
        id: a label, for reports.
        source: who wrote it, as far as is known: the file, or a JSONL row's `source`; None where another entry of its
            metadata names its origin.
        metadata: the other entries of a JSONL row.
    """

    text: str
    id: str
    source: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Skipped:
    """A file of a folder, or a row of a file, that was not read, and the reason."""

    path: str
    reason: str
