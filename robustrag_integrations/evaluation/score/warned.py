"""Warnings of a run's answers, summed up: one line per kind of warning and not one per question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

_LONGEST = 400
_OWN = re.compile(r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|\d[\d.,]*")  # of a question: its names and numbers


def warnings_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Warnings of answers and certificates with the number of questions they are about, the commonest first.

    Args:
        rows: rows without an error. Warnings that differ in numbers and quoted names alone are one kind, and the first
            of them stands for all.
    """
    return together(map(_of_row, rows))


def together(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The warnings of several lines as those of one."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for warnings in found:
        for text, count in warnings.items():
            kind = _kind(text)
            first.setdefault(kind, text)
            counts[kind] += count
    return {first[kind]: count for kind, count in counts.most_common()}


def _of_row(row: Mapping[str, Any]) -> dict[str, int]:
    """One warning of each kind."""
    found = [*(row["answer"].get("warnings") or ())]
    for certificate in row.get("certificates") or ():
        found += certificate.get("warnings") or ()
    kinds = {_kind(text): text[:_LONGEST] for text in reversed(found)}
    return dict.fromkeys(kinds.values(), 1)


def _kind(text: str) -> str:
    return _OWN.sub("#", text[:_LONGEST])
