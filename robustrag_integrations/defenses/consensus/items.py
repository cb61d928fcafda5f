"""The items of a list, as a reply gives them."""

from __future__ import annotations

import re

from robustrag_integrations.replies.keys import key_of, whole_answer
from robustrag_integrations.text.answer_text import answer_text

MOST_ITEMS = 200  # of one reply
LONGEST_ITEM = 500  # characters
_MARK = re.compile(r"\s*(?:[-*•+–‣▪]|\(?(\d{1,3})[.)])\s+(?=\S)")
_WITHIN = re.compile(r"(?:(?<=\s)|^)\(?(\d{1,3})[.)]\s+(?=\S)")

Items = tuple[tuple[str, str], ...]  # the items of one reply: each key with the wording of it


def items_of(reply: str) -> Items:
    """Return the items of a reply: its lines without list marks, each once. A line that ends in a colon is none.

    Numbers are marks where they count from 1: "2. Bundesliga" alone is an item.
    """
    lines = [part for line in answer_text(reply).splitlines() for part in _numbered(line) if part.strip()]
    found: dict[str, str] = {}
    number = 0
    for line in lines:
        mark = _MARK.match(line)
        if mark and mark[1]:
            if int(mark[1]) in (1, number + 1):
                number = int(mark[1])
            else:
                mark = None
        item = whole_answer(line[mark.end() :] if mark else line).strip()
        key = key_of(item) if len(item) <= LONGEST_ITEM else None
        leads = len(lines) > 1 and item.endswith((":", "："))
        if key is not None and any(map(str.isalnum, key)) and not leads and len(found) < MOST_ITEMS:
            found.setdefault(key, item)
    return tuple(found.items())


def _numbered(line: str) -> list[str]:
    """Return the parts of a line that is numbered 1, 2, 3 within, each with its number; else the line."""
    starts: list[int] = []
    for mark in _WITHIN.finditer(line[: MOST_ITEMS * LONGEST_ITEM]):
        if int(mark[1]) == len(starts) + 1:
            starts.append(mark.start())
    if len(starts) < 2:
        return [line]
    return [line[: starts[0]], *(line[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True))]
