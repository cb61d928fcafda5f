"""The documentation site: its pages are staged, its navigation is whole, and its checker finds what is wrong."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs.site import install, pictures
from docs.site.check import problems
from docs.site.stage import ROOT, stage
from robustrag_integrations.cli import command_parser

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

[_COMMANDS] = [a for a in command_parser()._actions if isinstance(a, argparse._SubParsersAction)]
COMMANDS = tuple(_COMMANDS.choices)
CONFIG = tomllib.loads((ROOT / "docs" / "site" / "zensical.toml").read_text(encoding="utf-8"))


def _named(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in _named(part)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    stage(folder)
    return folder


def test_every_page_stands_in_the_navigation_once(pages: Path) -> None:
    staged = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    named = _named(CONFIG["project"]["nav"])
    assert len(named) == len(set(named))
    assert set(named) == staged


def test_every_public_name_has_its_place_in_the_reference(pages: Path) -> None:
    import langchain_robustrag
    import llamaindex_robustrag
    import robustrag_integrations

    packages = {"core": robustrag_integrations, "langchain": langchain_robustrag, "llamaindex": llamaindex_robustrag}
    for page, module in packages.items():
        text = (pages / "reference" / f"{page}.md").read_text(encoding="utf-8")
        for name in module.__all__:
            assert name.startswith("__") or f"::: {module.__name__}.{name}\n" in text


def test_the_checker_names_dead_links_and_what_would_be_fetched(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text("<p id='here'>")
    (tmp_path / "a.html").write_text(
        "<a href='b.html#here'></a><a href='b.html#gone'></a><a href='c.html'></a><a href='https://x.example'></a>"
        "<script src='https://fonts.example/x.js'></script><link rel='canonical' href='https://x.example'>"
    )
    assert problems(tmp_path) == [
        "a.html: fetches https://fonts.example/x.js",
        "a.html: b.html#gone has no such place",
        "a.html: c.html leads nowhere",
    ]


def test_the_site_builds_without_a_warning() -> None:
    done = subprocess.run([sys.executable, "-m", "docs.site"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    html = ROOT / "build" / "site" / "html"
    assert "KeywordAggregation" in (html / "reference" / "core.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["planted.svg", "methods.svg"])
def test_a_picture_is_what_a_run_gives(name: str) -> None:
    pytest.importorskip("transformers")
    drawing = pictures.pictures()[name]
    assert drawing == (pictures.FOLDER / name).read_text(encoding="utf-8"), "run python -m docs.site.pictures"


@pytest.mark.parametrize("path", install.PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_says_to_install_what_works(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == install.told(text), "run python -m docs.site.install"
