"""Whether a reply means something else by what it mentions: "not Berlin", "Berlin is wrong", "Guinea-Bissau".

Only the plain forms, in the words next to the phrase. What is found lowers a group's standing and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from robustrag_integrations.keywords.closed_classes import FUNCTION_WORDS, listed
from robustrag_integrations.keywords.languages import NEGATIONS
from robustrag_integrations.mentions import mentions

_WINDOW = 80  # characters on each side
_LONGEST_REPLY = 20_000  # characters that are looked through
_WORDS_BEFORE = 4
_CLAUSE = re.compile(r"[.,;:!?()\n、。，；：！？]|\s(?:but|sondern|mais|sino|ma|mas|но)\s")
_BE = frozenset(
    listed("is was are were isn't wasn't ist war sind est était n'est n'était es era son fue è é foi jest był is het")
)
_POSTPOSED = frozenset(listed("değil नहीं"))
_WRONG = frozenset(
    listed("wrong false incorrect untrue mistaken falsch faux fausse falso falsa incorrecto errado sbagliato")
)
_DENYING = NEGATIONS | _WRONG
_NO_DENIAL = frozenset(
    listed("only just merely simply until least doubt question nur bis seulement que solo sólo soltanto")
)
_WORD_BEFORE = re.compile(r"([^\W\d_]+)([ -])\Z")
_WORD_AFTER = re.compile(r"([ -])([^\W\d_]+)")
_RUNS = re.compile("[a-z']+").findall
_POSSESSED = re.compile(r"['’]s\s+\w")
_BEFORE_UNSPACED = re.compile(r"(?:不是|并非|並非|不|非)\Z")
_AFTER_UNSPACED = re.compile(r"\s?(?:(?:では|じゃ|で)(?:な[いく]|ありませ)|[이가은는]?\s?(?:아니|아닙|아닌))")


def denies(reply: str, phrase: str) -> bool:
    """Whether every mention of the phrase in the reply is denied; not if there is none."""
    reply = reply[:_LONGEST_REPLY].replace("’", "'")
    if len(reply) <= _WINDOW and reply.isascii() and not _may_deny(reply.lower()):
        return False
    spans = mentions(phrase, reply)
    return bool(spans) and all(_denied(reply, start, end) for start, end in spans)


def _may_deny(lowered: str) -> bool:
    return "n't" in lowered or not _DENYING.isdisjoint(_RUNS(lowered))


def names_longer(reply: str, name: str, known: Collection[str]) -> bool:
    """Whether every mention of a name of one word is a part of another: Guinea-Bissau, Lucy Liu, C++, Lucy's brother.

    Args:
        reply: the text.
        name: the word.
        known: words (case-folded) that do not make it another name, those of the answer for example.
    """
    reply = reply[:_LONGEST_REPLY]
    spans = mentions(name, reply)
    return bool(spans) and all(_in_longer_name(reply, start, end, known) for start, end in spans)


def _in_longer_name(reply: str, start: int, end: int, known: Collection[str]) -> bool:
    if reply[end : end + 1] in ("+", "#") or _POSSESSED.match(reply, end):
        return True
    before, after = _WORD_BEFORE.search(reply[max(0, start - _WINDOW) : start]), _WORD_AFTER.match(reply, end)
    found = [(m[1], m[2]) for m in [before] if m] + [(m[2], m[1]) for m in [after] if m]
    return any(
        (link == "-" or (word[0].isupper() and reply[start].isupper()))
        and word.casefold() not in known
        and word.casefold() not in FUNCTION_WORDS
        for word, link in found
    )


def _denied(reply: str, start: int, end: int) -> bool:
    before = _CLAUSE.split(reply[max(0, start - _WINDOW) : start])[-1]
    after = _CLAUSE.split(reply[end : end + _WINDOW])[0]
    if _BEFORE_UNSPACED.search(before) or _AFTER_UNSPACED.match(after):
        return True
    led, follow = before.casefold().split()[-_WORDS_BEFORE:], after.casefold().split()[:3]
    if any(map(_negates, led)) and not _NO_DENIAL.intersection(led):
        return True
    if not follow:
        return False
    if follow[0] in _POSTPOSED:
        return True
    if follow[0] not in _BE:
        return False
    negated = _negates(follow[0]) or any(map(_negates, follow[1:2]))
    return bool(_WRONG.intersection(follow)) or (negated and not _NO_DENIAL.intersection(follow))


def _negates(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")
