"""What importing the integration gives and loads."""

from __future__ import annotations

import subprocess
import sys

import llamaindex_robustrag


def test_every_public_name_can_be_imported_and_they_are_sorted() -> None:
    assert all(getattr(llamaindex_robustrag, name) is not None for name in llamaindex_robustrag.__all__)
    assert sorted(llamaindex_robustrag.__all__) == llamaindex_robustrag.__all__


def test_the_import_loads_neither_models_nor_the_other_framework() -> None:
    heavy = ["torch", "spacy", "thinc", "langchain_robustrag", "openai"]
    code = f"import sys, llamaindex_robustrag\nprint([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_llama_index_the_error_says_what_to_install() -> None:
    code = "import sys\nsys.modules['llama_index'] = None\nimport llamaindex_robustrag"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'robustrag-integrations[llamaindex]'" in done.stderr
