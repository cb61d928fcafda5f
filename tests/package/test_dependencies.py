"""Lower bounds are versions without a known hole, and the ones that `make test-lowest` installs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

# The first version without the holes that are known, and one of those. What loads a model, a file or a template is here
# in any case, with what it loads where no hole is known.
SAFE = {
    "beautifulsoup4": ("4.13.3", "pages of others; the parser is lxml"),
    "bm25s": ("0.3", "an index, in memory alone"),
    "h11": ("0.16.0", "CVE-2025-43859: a malformed chunk smuggles a request"),
    "idna": ("3.15", "CVE-2026-45409: encode takes long"),
    "jinja2": ("3.1.6", "CVE-2025-27516: templates leave the sandbox"),
    "langchain": ("1.3.1", "CVE-2026-45134: prompts of strangers"),
    "langchain-classic": ("1.0.7", "CVE-2026-45134: prompts of strangers"),
    "langchain-core": ("1.3.3", "CVE-2026-44843: objects of others' choice"),
    "langchain-text-splitters": ("1.1.2", "CVE-2026-41481: redirects to addresses inside"),
    "langgraph": ("1.0.10", "CVE-2026-28277: checkpoints that run code"),
    "llama-index-core": ("0.13.0", "CVE-2025-7647: a folder that others can write to"),
    "lxml": ("6.1.0", "CVE-2026-41066: entities that are local files"),
    "markdownify": ("0.14.1", "CVE-2025-46656: headings that take memory"),
    "mcp": ("1.28.1", "CVE-2026-59950"),
    "openpyxl": ("2.4.1", "CVE-2017-5992: entities that are local files"),
    "pydantic": ("2.4.0", "CVE-2024-3772: addresses that take long"),
    "pypdf": ("6.16.1", "CVE-2026-84311: text that takes long"),
    "python-docx": ("0.8.6", "CVE-2016-5851: entities that are local files"),
    "pyyaml": ("5.4", "CVE-2020-14343: objects"),
    "safetensors": ("0.4.0", "weights of others; the format holds no code"),
    "sentence-transformers": ("6.0", "code of a model's modules.json, whatever trust_remote_code says"),
    "spacy": ("3.8.16", "the pipeline that this package brings"),
    "starlette": ("1.3.1", "CVE-2026-54282: a path that is not checked"),
    "tldextract": ("5.1", "the list that it brings; nothing is downloaded"),
    "torch": ("2.12.1", "CVE-2025-3000: memory of a script"),
    "tqdm": ("4.66.3", "CVE-2024-34062: arguments that are run"),
    "transformers": ("5.10.0", "CVE-2026-9856: files outside the folder; CVE-2026-4372: code of a config.json"),
}


# These load neither models nor files nor templates, and no hole is known in any version of the last years.
PLAIN = {"anyio", "async-timeout", "httpx", "numpy", "packaging", "scipy", "tenacity", "uvicorn"}


def bounds() -> list[tuple[str, Requirement]]:
    """Every requirement, with its extra; "" for the base install."""
    listed = [("", need) for need in PROJECT["dependencies"]]
    listed += [(extra, need) for extra, needs in EXTRAS.items() for need in needs]
    found = [(extra, Requirement(need)) for extra, need in listed]
    return [(extra, need) for extra, need in found if need.name != PROJECT["name"]]


def floor(need: Requirement) -> Version:
    [lowest] = [Version(spec.version) for spec in need.specifier if spec.operator == ">="]
    return lowest


@pytest.mark.parametrize(("extra", "need"), bounds(), ids=lambda part: str(part))
def test_a_lower_bound_is_a_version_without_a_known_hole(extra: str, need: Requirement) -> None:
    assert floor(need) >= Version(SAFE.get(need.name.lower(), ("0", ""))[0])


def test_every_dependency_has_a_reason_for_its_lower_bound_or_none_to_need_one() -> None:
    names = {need.name.lower() for _, need in bounds()}
    assert names == SAFE.keys() | PLAIN
    assert not SAFE.keys() & PLAIN
    # An extra names what it loads others' files with itself, too: the bounds of its dependencies are not its own.
    assert {"torch", "transformers"} <= {need.name for extra, need in bounds() if extra == "embedding"}


def pins() -> dict[str, set[Version]]:
    """What `make test-lowest` installs, by name; test libraries and what is installed again later left out."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("LOWEST :=")[2].partition("\ntest-installs:")[0]
    found: dict[str, set[Version]] = {}
    for name, version in re.findall(r"([a-z0-9-]+)==([\d.]+)", recipe):
        found.setdefault(name, set()).add(Version(version))
    return found


def test_the_lowest_versions_are_the_ones_that_are_tested() -> None:
    installed = pins()
    for _, need in bounds():
        if need.name in installed:
            assert floor(need) in installed[need.name], need
    left_out = {need.name for _, need in bounds()} - installed.keys()
    assert left_out <= {"torch", "transformers", "safetensors", "tenacity", "async-timeout",
                        "mcp", "tldextract", "sentence-transformers"}  # fmt: skip
