"""Whether a reply means something else by what it mentions: "not Berlin", "Berlin is wrong", "Guinea-Bissau".

Only the plain forms, in the words next to the phrase. What is found lowers a group's standing and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from robustrag_integrations.defenses.agreement.negations import LONGEST_REPLY, NO_DENIAL, WORDS, deny
from robustrag_integrations.keywords.closed_classes import FUNCTION_WORDS, listed
from robustrag_integrations.keywords.languages import ABOUT_THE_TEXT
from robustrag_integrations.mentions import mentions
from robustrag_integrations.normalise import compatible

_WINDOW = 80  # characters on each side
_WORDS_BEFORE = 4
_CLAUSE = re.compile(r"[.,;:!?()\n、。，；：！？।۔]|\s[-–—]+\s|\s(?:but|sondern|mais|sino|ma|mas|но)\s")
_BE = frozenset(
    listed(
        "is was are were isn't wasn't ist war sind est était n'est n'était es era son fue è é foi jest był is het on "
        "oli er var je είναι"
    )
)
_POSTPOSED = frozenset(listed(compatible("değil नहीं नाही નથી નહીં নয় নহে নেই அல்ல இல்லை కాదు లేదు نہیں نیست")))
_WRONG = frozenset(
    listed("wrong false incorrect untrue mistaken falsch faux fausse falso falsa incorrecto errado sbagliato")
)
_DENYING = WORDS | _WRONG
# Of ASCII: what holds none of them and no word of a denial denies nothing.
_PARTS = re.compile(
    "n'|nu | but |except| than |apart from|instead of|statt|sauf|au lieu|excepto|salvo| vez de|eccetto|tranne"
    "|invece di|exceto|behalve|utom"
)
_WORD_BEFORE = re.compile(r"([^\W\d_]+)([ -])\Z")
_WORD_AFTER = re.compile(r"([ -])([^\W\d_]+)")
_RUNS = re.compile("[a-z']+").findall
_POSSESSED = re.compile(r"['’]s\s+\w")
_LEFT_OUT = re.compile(
    r"(?<!nothing )(?<!no one )(?<!nobody )(?<!none )(?<!nowhere )\b"
    r"(?:(?:any(?:thing|one|body|where)?|every(?:thing|one)|all) but|except(?: for)?|other than|apart from|rather than"
    r"|instead of|außer|statt|anstatt|sauf|au lieu de|excepto|salvo|en vez de|eccetto|tranne|invece di|exceto|em vez de"
    r"|behalve|utom|кроме|вместо) (?:the |de |la |le )?\Z",
    re.I,
)
_BEFORE_UNSPACED = re.compile(r"(?:不是|并非|並非|不|非|ไม่ใช่|ไม่ได้อยู่ที่)\Z")
_AFTER_UNSPACED = re.compile(r"\s?(?:(?:では|じゃ|で)(?:な[いく]|ありませ)|[이가은는]?\s?(?:아니|아닙|아닌))")


def denies(reply: str, phrase: str) -> bool:
    """Whether every mention of the phrase in the reply is denied; not if there is none."""
    reply = reply[:LONGEST_REPLY].replace("’", "'")
    if len(reply) <= _WINDOW and reply.isascii() and not _may_deny(reply):
        return False
    spans = mentions(phrase, reply)
    return bool(spans) and all(_denied(reply, start, end) for start, end in spans)


def _may_deny(text: str) -> bool:
    return _short_may_deny(text) if len(text) <= _WINDOW else _some_denies(text)


def _some_denies(text: str) -> bool:
    lowered = text.lower()
    return _PARTS.search(lowered) is not None or not _DENYING.isdisjoint(_RUNS(lowered))


_short_may_deny = lru_cache(maxsize=1 << 10)(_some_denies)


def names_longer(reply: str, name: str, known: Collection[str]) -> bool:
    """Whether every mention of a name of one word is a part of another: Guinea-Bissau, Lucy Liu, C++, Lucy's brother.

    Args:
        reply: the text.
        name: the word.
        known: words (case-folded) that do not make it another name, those of the answer for example.
    """
    reply = reply[:LONGEST_REPLY]
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
        and word.casefold() not in ABOUT_THE_TEXT
        for word, link in found
    )


def _denied(reply: str, start: int, end: int) -> bool:
    led_by = reply[max(0, start - _WINDOW) : start]
    if _LEFT_OUT.search(led_by):
        return True
    before = _CLAUSE.split(led_by)[-1]
    after = _CLAUSE.split(reply[end : end + _WINDOW])[0]
    if _BEFORE_UNSPACED.search(before) or _AFTER_UNSPACED.match(after):
        return True
    led = compatible(before).casefold().split()[-_WORDS_BEFORE:]
    follow = compatible(after).casefold().split()[:3]
    if _negate(led, reply) and not NO_DENIAL.intersection(led):
        return True
    if not follow:
        return False
    if follow[0] in _POSTPOSED:
        return True
    is_or_does = follow[0] in _BE or reply[start].isupper()  # "Anna did not win", but "the fire could not be stopped"
    negated = is_or_does and _negate(follow[:2], reply) and not NO_DENIAL.intersection(follow)
    return negated or (follow[0] in _BE and bool(_WRONG.intersection(follow)))


def _negate(words: Sequence[str], reply: str) -> bool:
    if any(word.endswith("n't") or word.startswith("n'") for word in words):
        return True
    found = WORDS.intersection(words)
    return bool(found) and any(deny(word, reply.casefold().split(), reply) for word in found)
