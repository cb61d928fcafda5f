"""Rules that tell what a question asks for: something beyond its own words, code, or a yes or no."""

from __future__ import annotations

import re

from robustrag_integrations.languages import WORDS

_LONGEST = 2000  # characters


def _any(name: str) -> str:
    """Return a pattern of any of the words under a heading of `words.txt`."""
    return "|".join(dict.fromkeys(map(re.escape, WORDS[name])))


_QUESTION_WORD = re.compile(
    rf"(?<!\w)(?:{_any('question words')}|(?:{_any('question stems')})\w*)(?!\w)|{_any('question words unspaced')}",
    re.I,
)
_ALTERNATIVES = re.compile(rf"(?<!\w)(?:{_any('either')})(?!\w)|{_any('either unspaced')}|,[^?]*\s(?:o|u|ou)\s", re.I)


def asks_for_something_else(question: str) -> bool:
    """True if a question holds a question word and offers no alternatives.

    A yes-or-no question ("Is it effective?") and one that lists its answers ("Which is larger, Rome or Oslo?") hold
    words that an answer may be made of.
    """
    asked = question[:_LONGEST]
    return _QUESTION_WORD.search(asked) is not None and _ALTERNATIVES.search(asked) is None


_LITERAL = re.compile(r"\s*['\"`]*(?:null|nil|nan)['\"`.]*\s*\Z", re.I)
_ASKS_FOR_CODE = re.compile(
    r"\b(?:literal|keyword|operator|expression|function|method|returns?|variable|default|value|syntax|code|json|yaml|sql"
    r"|python|javascript|typescript|java|ruby|lua|golang|swift|kotlin|haskell|lisp|clojure)\b",
    re.I,
)


def is_literal(reply: str, question: str) -> bool:
    """True if a reply is a literal such as null, and the question asks for code."""
    return _LITERAL.match(reply) is not None and _ASKS_FOR_CODE.search(question[:_LONGEST]) is not None


_BEGINS = re.compile(
    rf"\W*(?:(?:{_any('verbs that ask for yes or no')})(?![\w'’-])|est-ce qu|y a-t-il|[\w-]+-t-(?:il|elle|on)\b"
    r"|[\w]+-(?:je|tu|il|elle|on|nous|vous|ils|elles)\b)",
    re.I,
)
_ENDS = re.compile(r"(?:吗|嗎|么|か|까|니까|나요|ไหม|หรือไม่|không|\s(?:mi|mı|mu|mü)\w{0,6})\s*[?？]|\sли\s", re.I)


def asks_yes_or_no(question: str) -> bool:
    """True if a question surely asks for yes or no: it begins, or ends, as such questions do in its language.

    One with a question word, with alternatives or without a question mark is none.
    """
    asked = question[:_LONGEST].strip()
    is_question = any(mark in asked for mark in "?？؟")
    if not is_question or _QUESTION_WORD.search(asked) is not None or _ALTERNATIVES.search(asked) is not None:
        return False
    return _BEGINS.match(asked) is not None or _ENDS.search(asked) is not None
