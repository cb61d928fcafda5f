"""Naming an extractor, so that a certificate says how its keywords were found."""

from __future__ import annotations

from collections.abc import Callable


def extractor_fingerprint(extractor: Callable[[str], object]) -> str:
    """Return a line that identifies an extractor.

    If the extractor has a `fingerprint` string, that is it; `SpacyKeywordExtractor` has one, with name, version and,
    where there are files to hash, a SHA-256. Anything else is named `module.qualname (unhashed)`, which does not
    distinguish two functions with the same name.
    """
    own = getattr(extractor, "fingerprint", None)
    if isinstance(own, str):
        return own
    named = extractor if hasattr(extractor, "__qualname__") else type(extractor)
    module = getattr(named, "__module__", None) or "builtins"  # a method such as `str.split` has none
    return f"{module}.{named.__qualname__} (unhashed)"
