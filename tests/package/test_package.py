"""What an installation gives before anything is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import robustrag_integrations

ME = robustrag_integrations.__name__
FRAMEWORKS = {"langchain_robustrag": "langchain_core", "llamaindex_robustrag": "llama_index.core"}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_package_loads_no_other_module_of_it_and_nothing_that_takes_long() -> None:
    slow = "asyncio inspect dataclasses importlib.metadata json typing_extensions unicodedata zipfile email ssl socket"
    found = run(f"import sys; before = {{*sys.modules}}; import {ME}; print(*({{*sys.modules}} - before))").split()
    assert {name for name in found if name.startswith("robustrag")} == {ME}
    assert set(found) & set(slow.split()) == set()


def test_an_answer_needs_no_heavy_library_and_no_connection() -> None:
    code = (
        "import socket, sys\n"
        "class Refused(socket.socket):\n"
        "    def connect(self, *a): raise SystemExit('a connection was opened')\n"
        "    connect_ex = connect\n"
        "socket.socket = Refused\n"
        "from robustrag_integrations import CallableModel, KeywordAggregation\n"
        "KeywordAggregation(CallableModel(lambda p: 'It is Paris.')).answer('What is the capital?', ['a', 'b', 'c'])\n"
        "print({'spacy', 'thinc', 'torch', 'transformers', 'pydantic', 'openai'} & set(sys.modules))"
    )
    assert run(code) == "set()"


@pytest.mark.parametrize("package", FRAMEWORKS)
def test_an_integration_loads_its_framework_and_no_model_and_logs_nothing_unless_told(package: str) -> None:
    pytest.importorskip(FRAMEWORKS[package])
    heavy = {"bm25s", "scipy", "openai", "pypdf", "spacy", "thinc", "torch", "transformers", *FRAMEWORKS} - {package}
    code = (
        f"import logging, sys, {FRAMEWORKS[package]}\n"
        f"before = set(sys.modules); import {package}; print(*(set(sys.modules) - before))\n"
        f"log = logging.getLogger('{package}.any'); log.warning('hidden'); logging.basicConfig(); log.warning('shown')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & {name.partition(".")[0] for name in done.stdout.split()}
    assert ("shown" in done.stderr, "hidden" in done.stderr) == (True, False)


def test_type_checkers_see_every_name_where_it_is_made() -> None:
    tree = ast.parse(Path(robustrag_integrations.__file__).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == robustrag_integrations._HOME_OF
    assert set(seen) | {"__version__"} >= set(robustrag_integrations.__all__)
