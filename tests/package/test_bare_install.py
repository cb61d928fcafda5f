"""Without the extras: imports work, and what is missing is named with the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKER = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
EXTRAS = {
    *("torch", "transformers", "safetensors", "openai", "httpx", "jinja2", "bm25s"),
    *("pypdf", "langchain_core", "langchain", "langchain_classic", "langgraph", "langchain_text_splitters"),
    *("llama_index", "scipy", "yaml", "tqdm", "spacy"),
}


def run(code: str, missing: set[str]) -> subprocess.CompletedProcess[str]:
    whole = f"BLOCKED = {missing!r}\n{BLOCKER}\n{code}"
    return subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, cwd=ROOT, timeout=120)


def test_a_star_import_works_without_any_extra() -> None:
    done = run(
        "from robustrag_integrations import *\n"
        "import robustrag_integrations as package\n"
        "assert KeywordAggregation and DecodingAggregation and MajorityVoting and Certification and isolate\n"
        "print(sorted(set(package._HOME_OF) - set(package.__all__)))",
        EXTRAS,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "['LocalModel', 'OpenAIModel']"), done.stderr


@pytest.mark.parametrize(
    ("code", "missing", "extra"),
    [
        ("import langchain_robustrag", {"langchain_core"}, "langchain"),
        ("from langchain_robustrag.tool import create_robust_retriever_tool", {"langchain_core"}, "langchain"),
        ("import langchain_robustrag.middleware", {"langchain"}, "langchain-agents"),
        ("import llamaindex_robustrag", {"llama_index"}, "llamaindex"),
        ("from robustrag_integrations import LocalModel", {"torch"}, "local"),
        ("from robustrag_integrations import LocalModel", {"transformers"}, "local"),
        ("from robustrag_integrations import OpenAIModel", {"httpx"}, "openai"),
        ("import robustrag_integrations as r; r.SpacyKeywordExtractor()", {"spacy"}, "keyword"),
    ],
)
def test_an_import_without_its_extra_names_the_extra(code: str, missing: set[str], extra: str) -> None:
    if not missing & {"langchain_core", "llama_index"}:
        for needed in ("langchain_core", "torch", "transformers", "httpx"):
            pytest.importorskip(needed)
    done = run(code, missing)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert f"pip install 'robustrag-integrations[{extra}]" in last
