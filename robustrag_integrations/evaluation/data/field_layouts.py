"""Data sets of the field, row by row, as rows of the project's own layout.

Each function takes a row as its authors write it and gives one that `questions.question_of` reads, or raises ValueError
with what is wrong. What a text may be and how long is checked there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]


def ramdocs(row: Row) -> dict[str, Any]:
    """RAMDocs: `documents` with `text` and `type`, several `gold_answers`, `wrong_answers`.

    Misinformation and noise stand among the documents, and stay there: the clean run has them.
    """
    documents = _list(row, "documents")
    if not all(isinstance(d, Mapping) and isinstance(d.get("text"), str) for d in documents):
        raise ValueError("documents must be a list of objects with a text")
    wrong = _strings(row, "wrong_answers")
    return {
        **_shared(row),
        "answer": _strings(row, "gold_answers") or _absent("gold_answers"),
        "incorrect": wrong[0] if wrong else None,
        "wrong": wrong,
        "several": True,
        "passages": [{"text": d["text"], "source": d.get("source")} for d in documents],
    }


def poisonedrag(row: Row) -> dict[str, Any]:
    """PoisonedRAG: `correct answer`, `incorrect answer` and `adv_texts`; passages only where somebody added them."""
    given: Any = next((row[key] for key in ("contexts", "context", "passages") if key in row), [])
    return {
        **_shared(row),
        "answer": row.get("correct answer"),
        "incorrect": row.get("incorrect answer"),
        "poisoned": _strings(row, "adv_texts"),
        "passages": [_titled(item) for item in given] if isinstance(given, list) else given,
    }


def _shared(row: Row) -> dict[str, Any]:
    return {"id": row.get("id"), "question": row.get("question")}


def _titled(item: Any) -> Any:
    """A passage; title and text of a search result are one."""
    if isinstance(item, Mapping) and isinstance(item.get("title"), str) and isinstance(item.get("text"), str):
        return {"text": f"{item['title']}\n{item['text']}".strip(), "source": item.get("link")}
    return item


def _list(row: Row, key: str) -> list[Any]:
    value = row.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list")
    return value


def _strings(row: Row, key: str) -> list[str]:
    """Texts of a list, blank ones left out."""
    value = _list(row, key)
    if not all(isinstance(text, str) for text in value):
        raise ValueError(f"{key} must be a list of texts")
    return [text for text in value if text.strip()]


def _absent(key: str) -> Iterable[Any]:
    raise ValueError(f"{key} is empty; a question needs a right answer")
