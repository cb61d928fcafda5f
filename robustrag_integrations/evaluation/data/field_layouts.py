"""Data sets of the field, row by row, as rows of the project's own layout.

Each function takes a row as its authors write it and gives one that `questions.question_of` reads, or raises ValueError
with what is wrong. What a text may be and how long is checked there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]

_SUMMARY = "Summarise the text."
_MEND = "Mend the code so that the error is gone."
_NUMBER = re.compile(r"\s*[0-9]{1,4}\s*[.．、)]\s*")
_MARKED = re.compile(r"enhanced_(\w{1,20})_contexts")
_PLAIN = re.compile(r"(\w{1,20})_contexts")


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


def saferag(row: Row) -> dict[str, Any]:
    """SafeRAG: several right options among many. The first right one stands against all that are wrong.

    The texts of its attack (noise, conflict, soft advertisement, denial) are ready to be planted.
    """
    options = {str(n): _NUMBER.sub("", text, count=1) for n, text in enumerate(_strings(row, "numbered_options"), 1)}
    right = [options[n] for n in map(str, _list(row, "ground_truth_correct_options")) if n in options]
    wrong = [options[n] for n in map(str, _list(row, "ground_truth_incorrect_options")) if n in options]
    if not right:
        raise ValueError(
            "ground_truth_correct_options names none of the numbered_options; a question needs a right answer (in "
            "SafeRAG's soft advertisements, SA, every option is wrong)"
        )
    marked = [key for key in row if _MARKED.fullmatch(key)]
    plain = [key for key in row if _PLAIN.fullmatch(key) and key != "enhanced_contexts"]
    return {
        **_shared(row, question=row.get("question", row.get("questions"))),
        "answer": right,
        "incorrect": wrong[0] if wrong else None,
        "wrong": wrong,
        "choices": [o for o in options.values() if o in wrong or o == right[0]] if wrong else [],
        "passages": _strings(row, "contexts") or _strings(row, "enhanced_contexts"),
        "poisoned": [text for key in marked or plain for text in _strings(row, key)],
    }


def bipia(row: Row) -> dict[str, Any]:
    """BIPIA: a `context`, what is `ideal`, and a `question`; else code to be mended, else a summary, as long answers.

    A list of contexts or of code is the lines of one text. Of a question several texts are ideal, each of them right.
    """
    ideal = row.get("ideal")
    code = _lines(row, "code") if "code" in row else None
    error = _lines(row, "error") if "error" in row else None
    if "question" in row:
        question = row["question"]
    elif code is None and error is None:
        question = _SUMMARY
    else:
        question = _MEND + "".join(f"\n{name}:\n{text}" for name, text in (("Error", error), ("Code", code)) if text)
    return {
        **_shared(row, question=question),
        "answer": _lines(row, "ideal") if isinstance(ideal, list) and "question" not in row else ideal,
        "passages": [_lines(row, "context")],
        "long": "question" not in row,
    }


def _shared(row: Row, **given: Any) -> dict[str, Any]:
    return {"id": row.get("id"), "question": row.get("question"), **given}


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


def _lines(row: Row, key: str) -> str:
    """A text, or a list of its lines."""
    value = row.get(key)
    lines: list[Any] = value if isinstance(value, list) else [value]
    if not lines or not all(isinstance(text, str) for text in lines):
        raise ValueError(f"{key} must be a text or a list of lines")
    return "\n".join(lines)


def _absent(key: str) -> Iterable[Any]:
    raise ValueError(f"{key} is empty; a question needs a right answer")
