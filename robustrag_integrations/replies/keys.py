"""A reply's whole answer, and the key under which it is counted.

A vote is a whole answer. Nothing is cut out of a reply, so that no "not", no unit and no surname is lost. A key folds
what surely means nothing. **Two meanings never share a key**; two wordings of one meaning may have two keys, which
costs that answer votes. So signs, units, digits and short words stay as they are, and code stays as it is altogether.

Every function is one of a single reply, linear in its length.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from robustrag_integrations._util.normalise import few_marks, plain_words, signed_words
from robustrag_integrations.answers.wording import says_only
from robustrag_integrations.text.answer_text import LEAD, answer_text, unboxed
from robustrag_integrations.text.languages import NO, VERDICTS, WORDS, YES, asks_for_something_else

_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n(.*?)\n?```\Z", re.S)
_PAIRS = [(mark, mark) for mark in ("**", '"', "'")] + [
    (pair[0], pair[1]) for pair in ("“”", "‘’", "„“", "«»", "「」", "『』")
]
_ARTICLES = frozenset({"a", "an", "the", "An", "The"})  # "A" is a letter, a grade, a blood group
_LAST = re.compile(r"(?<=[^\W_])[.,;。，、]+\Z")
_YES, _NO = YES.union(WORDS["yes elsewhere"]), NO.union(WORDS["no elsewhere"])
_VERDICT = re.compile(
    r"(?P<word>{})(?![\w'’])"
    r"(?:\s*(?:\Z|[,;!。，、！；،؛。।(—–]|\.(?!\s*\d)|(?<!예)(?<!ano):\s+(?!\d)|-\s)|\s+(?:{})(?![\w-]))".format(
        *(
            "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
            for words in (_YES | _NO, WORDS["verdict goes on"])
        )
    ),
    re.I,
)
_CODE = re.compile(r"(?:\A|\s)-{1,2}\w|[_/\\=|<>{}\[\]$#@~^`*]|\w\(")  # case means something there
_SHORTEST_FOLDED = 4  # letters; of shorter words case may be all: mW and MW, US and us
_LONGEST_SCORED = 200  # characters
_DEEPEST = 20  # levels of an object
_FENCED = re.compile(r"\s*```\w*\s*(.*?)\s*```\s*", re.S)
_NUMBER = re.compile(r"[-+]?\d[\d,.]*")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})


def whole_answer(reply: str) -> str:
    """Return a reply without its wrapping; code keeps its backticks."""
    text = unboxed(answer_text(_visible(reply))).strip()
    text = LEAD.sub("", text, count=1)
    before = None
    while text != before:
        before = text
        for opening, closing in _PAIRS:
            quoted = text.removesuffix(".")  # 'The answer is "Oslo FC".'
            inner = quoted[len(opening) : len(quoted) - len(closing)]
            if quoted.startswith(opening) and quoted.endswith(closing) and inner and closing not in inner:
                text = inner.strip()
    return text


def key_of(answer: str) -> str | None:
    """Return the key of a whole answer: what it is compared by; None if nothing is left of it.

    NFC, single spaces; off the start nothing but an article, at the end only punctuation after a letter or digit. Case
    is folded in words of four letters or more that hold no inner capital, in the first letter of a first word, and in
    yes and no, in other languages but for words in capitals (OUI is an identifier).
    """
    fenced = _FENCE.match(answer) or re.fullmatch(r"`([^`]+)`", answer)
    if fenced:
        return " ".join(unicodedata.normalize("NFC", few_marks(fenced[1])).split()) or None
    text = " ".join(unicodedata.normalize("NFC", few_marks(answer)).split())
    words = _LAST.sub("", text).split(" ")
    if len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    if not _CODE.search(text):
        words = [_folded(word, first=place == 0 < len(words) - 1) for place, word in enumerate(words)]
    return unicodedata.normalize("NFC", " ".join(words)) or None


def verdict_of(answer: str) -> Literal["yes", "no"] | None:
    """Return the verdict with which a whole answer, or its key, begins: "Yes, on Fridays", "Nein.", "不是".

    The word stands alone, before punctuation, or before a word that goes on with it ("No they may not"). "No one",
    "No. 5", "No-fly zone", "Yes and no" and "네 가지" (four kinds) begin with none.
    """
    found = _VERDICT.match(answer)
    return None if found is None else "yes" if found["word"].casefold() in _YES else "no"


def _folded(word: str, *, first: bool) -> str:
    letters = word.rstrip(".,;:!?")
    if letters.casefold() in ("yes", "no"):
        return word.casefold()
    if not letters.isalpha() or letters[1:] != letters[1:].lower() or "ß" in letters:
        return word
    if len(letters) >= _SHORTEST_FOLDED or letters.casefold() in VERDICTS:
        return word.casefold()
    return word[0].lower() + word[1:] if first and len(letters) > 1 else word


def is_echo(answer: str, question: str) -> bool:
    """True if an answer consists of the question's own words, and the question offers none of them to choose from.

    An answer with a digit is none: "5" may be said of "the 5 sites".
    """
    said = plain_words(answer).split()
    if not said or any(character.isdecimal() for character in answer) or not asks_for_something_else(question):
        return False
    return set(said) <= set(plain_words(question).split())


def scored_text(key: str) -> str | None:
    """Return the text by which a key is scored, a function of the key alone; None for one that is too long.

    No group's wording enters, so that no group decides how likely the others find an answer.
    """
    return key[:1].upper() + key[1:] if len(key) <= _LONGEST_SCORED else None


def object_holds(text: str, agreed: str, question: str) -> bool:
    """True if one of the values of a JSON object says an agreed answer, which the object was made from.

    The model that fills it in may write another answer, or turn it ("not Anna Lind"). So a text has to be the answer,
    by its key, or to say it and nothing else. A number has to be the only one of the answer, whose other words are the
    question's or the field's ("30 days" in `days`). A text that is no JSON is one value.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        values = list(_values(json.loads(fenced[1] if fenced else text)))
    except (ValueError, RecursionError):
        values = [("", text)]
    for field, value in values:
        if isinstance(value, str):
            if key_of(value) == key_of(agreed) or says_only(value, agreed, question):
                return True
        elif isinstance(value, bool):  # CHOICE_REQUEST asks for these words
            if plain_words(agreed) == ("yes" if value else "no"):
                return True
        elif isinstance(value, (int, float)) and _is_number(value, field, agreed, question):
            return True
    return False


def _values(found: Any, field: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield every value that is neither a list nor an object, with the name of its field; lists of texts as one."""
    if depth > _DEEPEST:
        return
    if isinstance(found, dict):
        for name, value in found.items():
            yield from _values(value, name, depth + 1)
    elif isinstance(found, list):
        if all(isinstance(value, str) for value in found):
            yield field, ", ".join(found)
        for value in found:
            yield from _values(value, field, depth + 1)
    else:
        yield field, found


def _is_number(value: float, field: str, agreed: str, question: str) -> bool:
    numbers = _NUMBER.findall(agreed)
    if len(numbers) != 1:
        return False
    written = numbers[0].rstrip(".,")
    try:
        same = Decimal(written.replace(",", "") if _GROUPED.fullmatch(written) else written) == Decimal(str(value))
    except InvalidOperation:  # "1.2.3", "0,5"
        return False
    others = signed_words(agreed.replace(numbers[0], " ", 1)).split()
    return same and {*signed_words(question).split(), *plain_words(field.replace("_", " ")).split()}.issuperset(others)


def _visible(text: str) -> str:
    """Return a text without control characters and marks of direction; joiners of letters stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([c for c in text if c in "\n\t\u200c\u200d" or unicodedata.category(c) not in _UNSEEN])
