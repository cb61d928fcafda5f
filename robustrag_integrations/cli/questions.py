"""Questions with passages and reference answers, read from a file or from the fictional world."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.passages import Passage


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question to certify: its clean retrieval, its right answers, and the options where there are any."""

    question: str
    answers: tuple[str, ...]
    passages: tuple[Passage, ...]
    choices: tuple[str, ...] = ()


def read_answered(data: str, top_k: int | None, limit: int | None) -> list[AnsweredQuestion]:
    """The questions of a file, or of the fictional world for `demo`.

    Args:
        data: `demo`, or a file with one JSON object per line (it may be gzipped).
        top_k: how many passages each question gets; None for all that a file gives, 10 for `demo`.
        limit: how many questions are read; None for all.

    Raises:
        UsageError: the file cannot be read, or a line is no question; the message says which.
    """
    rows = _demo(top_k or 10) if data == "demo" else _file(data, top_k)
    found = []
    for row in rows:
        found.append(row)
        if limit is not None and len(found) == limit:
            break
    if not found:
        raise UsageError(f"{data}: there is no question in it")
    return found


def _demo(top_k: int) -> Iterator[AnsweredQuestion]:
    from robustrag_integrations.cli.world import read_questions, read_world, world_folder
    from robustrag_integrations.corpus import BM25Index, split

    folder = world_folder()
    index = BM25Index(split(read_world(folder)))
    for q in read_questions(folder):
        if q.answer:
            yield AnsweredQuestion(q.question, (q.answer,), tuple(index.search(q.question, top_k)), q.choices)


def _file(path: str, top_k: int | None) -> Iterator[AnsweredQuestion]:
    try:
        raw = Path(path).read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path!r}: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield _question(json.loads(line), top_k)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                said = f"there is no {error}" if isinstance(error, KeyError) else str(error)
                raise UsageError(f"{path}, line {number}: {said}") from error


def _question(row: Any, top_k: int | None) -> AnsweredQuestion:
    if not isinstance(row, dict):
        raise ValueError('expected an object such as {"question": ..., "answer": ..., "passages": [...]}')
    answers = [row["answer"]] if isinstance(row["answer"], str) else list(row["answer"])
    choices = tuple(row.get("choices") or ())
    if not isinstance(row["question"], str) or not row["question"].strip():
        raise ValueError("the question must be text")
    if not answers or not all(isinstance(a, str) and a.strip() for a in (*answers, *choices)):
        raise ValueError("answer must be a text or a list of texts, choices a list of texts")
    if not isinstance(row["passages"], list):
        raise ValueError("passages must be a list of texts or of objects with a text")
    passages = tuple(_passage(p) for p in row["passages"][:top_k])
    return AnsweredQuestion(row["question"], tuple(answers), passages, choices)


def _passage(item: Any) -> Passage:
    if isinstance(item, str):
        return Passage(item)
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise ValueError("a passage must be a text or an object with a text")
    source = item.get("source")
    return Passage(item["text"], source=None if source is None else str(source))
