"""The demonstration library and the ways to read it, as the examples use them."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.append(str(EXAMPLES))

from langchain_library import library, planted, questions, retriever  # noqa: E402

__all__ = ["EXAMPLES", "library", "planted", "questions", "retriever"]
