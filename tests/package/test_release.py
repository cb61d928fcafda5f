"""What is released: a wheel and a source distribution with what belongs into them, and versions that agree.

Builds both; `make release` names the folder of those that it built in RELEASE.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations import __version__

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"robustrag_integrations", "langchain_robustrag", "llamaindex_robustrag"}
BESIDES = {
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "NOTICE", "PKG-INFO", "README.md", "SECURITY.md"),
    *("pyproject.toml", ".gitignore"),  # what it is built with
}
MODELS = {
    "robustrag_integrations/reader/model/model.safetensors",
    "robustrag_integrations/reader/model/tokenizer.json",
    "robustrag_integrations/reader/model/README.md",
    "robustrag_integrations/text/pipeline/README.md",
    "robustrag_integrations/text/pipeline/NOTICE.md",
    "robustrag_integrations/text/pipeline/tok2vec/model",
    "robustrag_integrations/evaluation/world/world.jsonl",
    "robustrag_integrations/evaluation/world/README.md",
}
MOST = 12 << 20  # bytes; the reader's weights and the pipeline's are most of it


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if built := os.environ.get("RELEASE"):
        return Path(built).resolve()
    pytest.importorskip("hatchling")
    made = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(made)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def wheel(folder: Path) -> zipfile.ZipFile:
    [made] = folder.glob("*.whl")
    return zipfile.ZipFile(made)


@pytest.fixture(scope="module")
def source(folder: Path) -> set[str]:
    [made] = folder.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Any:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def tracked() -> set[str]:
    """The files of the packages that are under version control."""
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.fail("no list of files: the tests run in a clone")
    return set(filter(None, listed.stdout.decode().split("\0")))


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: zipfile.ZipFile) -> None:
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert inside == {name for name in tracked() if (ROOT / name).is_file()}
    assert inside >= MODELS


def test_the_source_distribution_holds_the_packages_and_what_belongs_beside_them(source: set[str]) -> None:
    assert {name.split("/")[0] for name in source} == PACKAGES | BESIDES
    assert source >= MODELS
    assert source >= {name for name in tracked() if (ROOT / name).is_file()}


EXPRESSION = "Apache-2.0 AND CC-BY-SA-4.0 AND MIT"
NOTICES = {
    "LICENSE": b"Apache License",
    "NOTICE": b"UD English-EWT",
    "robustrag_integrations/text/pipeline/NOTICE.md": b"CC BY-SA 4.0",
    "robustrag_integrations/text/stop_words/NOTICE.md": b"Permission is hereby granted",
}


def test_the_wheel_names_every_licence_and_holds_their_texts(wheel: zipfile.ZipFile, metadata: Any) -> None:
    assert metadata["License-Expression"] == EXPRESSION
    assert metadata.get_all("License-File") == list(NOTICES)
    [folder] = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    for name, words in NOTICES.items():
        assert words in wheel.read(f"{folder}/licenses/{name}")


def test_all_places_say_the_same_version(metadata: Any, folder: Path) -> None:
    assert metadata["Version"] == __version__
    assert {__version__ in path.name for path in folder.iterdir() if path.suffix in (".whl", ".gz")} == {True}
    citation = citation_file()
    assert citation["version"] == __version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (\S+) \((\S+)\)$", changelog, re.MULTILINE)
    assert heads[0] == (__version__, str(citation["date-released"]))
    assert changelog.count("## Unreleased") <= 1


def citation_file() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return found
