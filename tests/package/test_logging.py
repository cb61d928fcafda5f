"""Logging is silent until a program sets it up."""

from __future__ import annotations

import subprocess
import sys

import pytest

PACKAGES = {
    "robustrag_integrations": "json",
    "langchain_robustrag": "langchain_core",
    "llamaindex_robustrag": "llama_index",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_is_printed_before_logging_is_set_up(package: str) -> None:
    pytest.importorskip(PACKAGES[package])
    program = f"import logging, {package}; logging.getLogger('{package}.any').warning('shown')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "shown" not in ran.stdout + ran.stderr
    shown = program.replace("; logging.getLogger", "; logging.basicConfig(); logging.getLogger")
    ran = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert "shown" in ran.stderr
