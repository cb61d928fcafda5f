"""What an installation gives before anything is used."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import robustrag_integrations

ME = robustrag_integrations.__name__


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_loads_no_heavy_library_and_no_framework() -> None:
    heavy = "torch transformers spacy thinc numpy scipy langchain_core llama_index openai bm25s pypdf sklearn"
    code = f"import sys, robustrag_integrations\nprint([m for m in {heavy.split()!r} if m in sys.modules])"
    assert run(code) == "[]"


def test_importing_the_package_loads_no_other_module_of_it() -> None:
    code = "import sys, robustrag_integrations\nprint(*(m for m in sys.modules if m.startswith('robustrag_')))"
    assert run(code) == "robustrag_integrations"


def test_the_package_loads_nothing_of_the_standard_library_that_takes_long() -> None:
    heavy = "asyncio inspect dataclasses importlib.metadata json typing_extensions unicodedata zipfile email ssl socket"
    code = (
        f"import sys; before = {{*sys.modules}}; import {ME}; print(({{*sys.modules}} - before) & {{*{heavy.split()}}})"
    )
    assert run(code) == "set()"


def test_an_answer_needs_neither_spacy_nor_torch() -> None:
    code = (
        "import sys\nfrom robustrag_integrations import CallableModel, KeywordAggregation\n"
        "KeywordAggregation(CallableModel(lambda p: 'It is Paris.')).answer('What is the capital?', ['a', 'b', 'c'])\n"
        "print({'spacy', 'thinc', 'torch', 'transformers', 'pydantic', 'openai'} & set(sys.modules))"
    )
    assert run(code) == "set()"


def test_names_are_listed_and_explained_before_they_are_loaded() -> None:
    assert set(robustrag_integrations.__all__) <= set(dir(robustrag_integrations))
    assert run(f"import {ME} as r; print(set(r.__all__) <= set(dir(r)))") == "True"
    assert "class KeywordAggregation" in run(f"import {ME} as r; help(r.KeywordAggregation)")


def test_a_name_is_loaded_once_and_unknown_names_are_errors() -> None:
    assert robustrag_integrations.Passage is vars(robustrag_integrations)["Passage"]
    with pytest.raises(AttributeError, match="robustrag_integrations' has no attribute 'Passages'"):
        _ = robustrag_integrations.Passages
    with pytest.raises(ImportError, match="Passages"):
        from robustrag_integrations import Passages  # noqa: F401


def test_what_has_a_public_name_is_pickled() -> None:
    passage = robustrag_integrations.Passage("a")
    assert pickle.loads(pickle.dumps(passage)) == passage
    assert pickle.loads(pickle.dumps(robustrag_integrations.KeywordAggregation)) is (
        robustrag_integrations.KeywordAggregation
    )


def test_a_star_import_gives_every_public_name() -> None:
    pytest.importorskip("torch")
    assert run(f"from {ME} import *\nimport {ME} as r; print(set(r.__all__) - set(globals()))") == "set()"


def test_type_checkers_see_every_name_where_it_is_made() -> None:
    tree = ast.parse(Path(robustrag_integrations.__file__).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == robustrag_integrations._HOME_OF
    assert set(seen) | {"__version__"} >= set(robustrag_integrations.__all__)


def test_every_public_name_can_be_imported() -> None:
    pytest.importorskip("torch")
    for name in robustrag_integrations.__all__:
        assert getattr(robustrag_integrations, name) is not None
    assert sorted(robustrag_integrations.__all__) == robustrag_integrations.__all__


def test_import_and_default_settings_open_no_connection() -> None:
    code = (
        "import socket\n"
        "class Refused(socket.socket):\n"
        "    def connect(self, *a): raise SystemExit('a connection was opened')\n"
        "    connect_ex = connect\n"
        "socket.socket = Refused\n"
        "import robustrag_integrations as r\n"
        "r.KeywordAggregation(r.CallableModel(lambda p: 'a b')).answer('q', ['x', 'y', 'z'])\n"
        "print('ok')"
    )
    assert run(code) == "ok"
