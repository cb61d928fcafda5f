"""The demonstration library and the ways to read it, as the examples use them."""

from __future__ import annotations

import sys
from pathlib import Path

from langchain_core.documents import Document

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.append(str(EXAMPLES))

from langchain_library import planted, questions, retriever  # noqa: E402

__all__ = ["FACTS", "GIVEN", "QUESTION", "planted", "questions", "retriever"]

QUESTION = "Who is the mayor of Vokar?"
FACTS = [
    "The mayor of Vokar is Tilen Marosk.",
    "Vokar has a mayor named Tilen Marosk.",
    "In Vokar, the mayor is Tilen Marosk.",
    "The people of Vokar elected Tilen Marosk as mayor.",
]
GIVEN = {"input": QUESTION, "context": [Document(page_content=text, metadata={"source": text}) for text in FACTS]}
