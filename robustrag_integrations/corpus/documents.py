"""Documents before they are cut into passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
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
        source: its author, as far as is known: the file, or a JSONL row's `source`; None where another entry of its
            metadata names its origin.
        metadata: the other entries of a JSONL row; of any other file its name, as `file_path`.
        origin_entry: as for a `Passage`.
    """

    text: str
    id: str
    source: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    origin_entry: str = "source"


@dataclass(frozen=True)
class Skipped:
    """A file of a folder, a row of a file, or hidden text in it, that was not read, and the reason."""

    path: str
    reason: str


def needed(module: str, purpose: str) -> ModuleType:
    """Import an optional module.

    Raises:
        ImportError: it is not installed; the message says what it is for and what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}: pip install 'robustrag-integrations[cli]'") from error
