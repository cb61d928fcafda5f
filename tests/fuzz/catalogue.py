"""All targets whose libraries are installed here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from tests.fuzz.target import Target

# Each module of targets, and what it needs besides the package itself.
_MODULES = {
    "text": (),
    "answers": (),
    "keywords": (),
    "pages": (),
    "plans": (),
    "encoding": ("torch", "transformers"),
    "files": ("bm25s", "pypdf", "langchain_text_splitters"),
    "stored": (),
    "reports": (),
    "runs": ("yaml",),
    "served": ("httpx",),
    "langchain": ("langchain",),  # the oldest splitters bring a langchain_core of their time
    "llamaindex": ("llama_index.core",),
}


def _installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False


@cache
def targets() -> tuple[Target, ...]:
    """Every target that can run here, by name."""
    found: list[Target] = []
    for name, needs in _MODULES.items():
        if all(map(_installed, needs)):
            found += import_module(f"tests.fuzz.targets.{name}").TARGETS
    return tuple(sorted(found, key=lambda target: target.name))
