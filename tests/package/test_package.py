"""What an installation gives before anything is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import robustrag_integrations


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_loads_no_heavy_library_and_no_framework() -> None:
    heavy = "torch transformers spacy thinc numpy matplotlib langchain_core llama_index openai bm25s pypdf sklearn"
    code = f"import sys, robustrag_integrations\nprint([m for m in {heavy.split()!r} if m in sys.modules])"
    assert run(code) == "[]"


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
