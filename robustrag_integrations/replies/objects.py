"""The check of an object that an agreed answer was put into: one of its values says that answer.

The model that fills in an object may write another answer, or turn it ("not Anna Lind"). So a text has to be the
answer, by the key that votes are counted by, or to say it and nothing else (`says_only`). A number has to be the only
one of the answer, whose other words are the question's or the field's ("30 days" in `days`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from robustrag_integrations._util.normalise import plain_words, signed_words
from robustrag_integrations.answers.wording import says_only
from robustrag_integrations.replies.keys import key_of

_DEEPEST = 20  # levels of an object
_FENCED = re.compile(r"\s*```\w*\s*(.*?)\s*```\s*", re.S)
_NUMBER = re.compile(r"[-+]?\d[\d,.]*")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def object_holds(text: str, agreed: str, question: str) -> bool:
    """True if one of the values of an object holds an agreed answer.

    Args:
        text: the object, as JSON; a text that is none is one value.
        agreed: the answer, as a source writes it.
        question: the question, whose words may be repeated.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        found = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return _says(text, agreed, question)
    return any(_holds(value, field, agreed, question) for field, value in _values(found))


def _values(found: Any, field: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield every value that is neither a list nor an object, with the name of its field; lists of texts as one."""
    if depth > _DEEPEST:
        return
    if isinstance(found, Mapping):
        for name, value in found.items():
            yield from _values(value, str(name), depth + 1)
    elif isinstance(found, list):
        if all(isinstance(value, str) for value in found):
            yield field, ", ".join(found)
        for value in found:
            yield from _values(value, field, depth + 1)
    else:
        yield field, found


def _holds(value: Any, field: str, agreed: str, question: str) -> bool:
    if isinstance(value, str):
        return _says(value, agreed, question)
    if isinstance(value, bool):  # CHOICE_REQUEST asks for these words
        return plain_words(agreed) == ("yes" if value else "no")
    if isinstance(value, (int, float)):
        return _is_number(value, field, agreed, question)
    return False


def _says(value: str, agreed: str, question: str) -> bool:
    return key_of(value) == key_of(agreed) or says_only(value, agreed, question)


def _is_number(value: float, field: str, agreed: str, question: str) -> bool:
    """True if a number is the only one of an answer, and what else the answer says the question or the field says."""
    numbers = _NUMBER.findall(agreed)
    if len(numbers) != 1:
        return False
    written = numbers[0].rstrip(".,")
    written = written.replace(",", "") if _GROUPED.fullmatch(written) else written
    try:
        same = Decimal(written) == Decimal(str(value))
    except InvalidOperation:  # "1.2.3", "0,5"
        return False
    others = signed_words(agreed.replace(numbers[0], " ", 1)).split()
    known = {*signed_words(question).split(), *plain_words(field.replace("_", " ")).split()}
    return same and known.issuperset(others)
