"""Naming an extractor, so that a certificate says how its keywords were found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path


def extractor_fingerprint(extractor: Callable[[str], object]) -> str:
    """Return a line that identifies an extractor.

    If the extractor has a `fingerprint` string, that is it; `SpacyKeywordExtractor` has one. Anything else is named
    `module.qualname (unhashed)`, which does not distinguish two functions with the same name.
    """
    own = getattr(extractor, "fingerprint", None)
    if isinstance(own, str):
        return own
    named = extractor if hasattr(extractor, "__qualname__") else type(extractor)
    module = getattr(named, "__module__", None) or "builtins"  # a method such as `str.split` has none
    return f"{module}.{named.__qualname__} (unhashed)"


def hash_of_files(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files; what is about the model and not of it is left out."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix != ".md" and file.name != "scores.json":
            content = file.read_bytes()
            digest.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return f"sha256:{digest.hexdigest()}"
