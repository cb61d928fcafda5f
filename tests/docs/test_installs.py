"""Pages and examples say what to install; `make test-installs` runs them with that and nothing else."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from pathlib import Path

import pytest

from robustrag_integrations.cli import command_parser
from tests.docs.pages import ROOT
from tests.installs.pages import PAGES, examples, extras, snippets
from tests.installs.stand_ins import stand_ins, write_files

GUIDES = sorted(p.relative_to(ROOT).as_posix() for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
EXTRAS = set(
    re.findall(
        r"^([a-z-]+) = \[",
        (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1].split("\n[")[0],
        re.MULTILINE,
    )
)
# Commands that are not about this package: its repository's own, and those that start a server.
OTHERS = {"make", "git", "VLLM_BATCH_INVARIANT=1", "python"}


def test_every_snippet_stands_under_an_install_line() -> None:
    for snippet in [snippet for page in GUIDES for snippet in snippets(page)]:
        if snippet.language != "python" and all(w[0] in OTHERS for w in snippet.commands):
            continue
        assert any(n.startswith("robustrag-integrations") for n in snippet.needs), (snippet.page, snippet.line)


def test_every_extra_that_a_page_names_exists() -> None:
    for page in GUIDES:
        named = re.findall(r"(?:robustrag-integrations|'\.)\[([a-z,-]+)\]", (ROOT / page).read_text(encoding="utf-8"))
        assert {extra for several in named for extra in several.split(",")} <= EXTRAS, page


def test_every_example_names_its_extra() -> None:
    for path, needs in examples().items():
        assert any(n.startswith("robustrag-integrations") for n in needs), path
        assert extras(needs) <= EXTRAS, path


@pytest.mark.parametrize("page", PAGES)
def test_snippets_use_names_that_they_or_the_stand_ins_define(page: str) -> None:
    known: defaultdict[tuple[str, ...], set[str]] = defaultdict(lambda: set(dir(builtins)))
    for snippet in snippets(page):
        if snippet.language == "python" and snippet.is_run:
            defined = known[snippet.needs]
            defined |= set(stand_ins(extras(snippet.needs)))
            used = set()
            for node in ast.walk(ast.parse(snippet.text)):
                match node:
                    case ast.Name(name, ast.Load()):
                        used.add(name)
                    case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                        defined.add(name)
                    case ast.ClassDef(name) | ast.ExceptHandler(_, str(name)):
                        defined.add(name)
                    case ast.alias(name, other):
                        defined.add(other or name.partition(".")[0])
            assert used <= defined, (snippet.line, used - defined)


def test_every_command_on_a_page_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "eval.jsonl").write_text("{}")  # by the commands before
    monkeypatch.chdir(tmp_path)
    parser = command_parser()
    for snippet in [snippet for page in PAGES for snippet in snippets(page)]:
        for words in snippet.commands:
            if words[0] == "robustrag" and words[1:] != ["--version"]:
                parser.parse_args(words[1 : words.index(">") if ">" in words else None])
