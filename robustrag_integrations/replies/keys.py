"""A reply's whole answer, and the key under which it is counted.

A vote is a whole answer. Nothing is cut out of a reply, so that no "not", no unit and no surname is lost. A key folds
what surely means nothing. **Two meanings never share a key**; two wordings of one meaning may have two keys, which
costs that answer votes. So signs, units, digits and short words stay as they are, and code stays as it is altogether.

Every function is one of a single reply, linear in its length.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from robustrag_integrations._util.normalise import few_marks
from robustrag_integrations.text.answer_text import LEAD, answer_text, unboxed
from robustrag_integrations.text.languages import NO, VERDICTS, WORDS, YES

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


def _visible(text: str) -> str:
    """Return a text without control characters and marks of direction; joiners of letters stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([c for c in text if c in "\n\t\u200c\u200d" or unicodedata.category(c) not in _UNSEEN])
