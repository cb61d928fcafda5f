"""Whether two answers surely contradict each other, or may say the same in other words.

Where it is not sure they are told without the word "disagree": sources that agree must not be said to disagree.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import combinations

from robustrag_integrations._util.normalise import signed_words
from robustrag_integrations.replies.keys import key_of, verdict_of
from robustrag_integrations.text.dates import date_of
from robustrag_integrations.text.languages import NEGATIONS, WORDS, language_of

_SHORT = 4  # words of an answer that is a name, a thing or an amount
_UNIT = 3  # letters of a unit
_STEM = 4  # letters that two forms of a word begin with
_LONGEST = 400  # characters that are compared
_LONG_NUMBER = 6  # digits of a telephone
_HALF_A_DAY = 12  # hours
_IN_ONE = frozenset(
    {1, 7, 10, 12, 24, 28, 29, 30, 31, 52, 60, 100, 365, 366, 1000, 3600}
)  # smaller units in a larger one
_NUMBER = re.compile(r"-?\W?\d[\d.,]*\W?")
_DATE = re.compile(r"(-|\d{4})-(\d\d-\d\d)")
_ZEROS = re.compile(r"[.]0*$|[^\d.-]")  # behind a point, and signs
_NOT = re.compile(r"\b(?:(\w+)n[’']t|cannot)\b", re.I)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_BOUND = re.compile(r"[<>≤≥](?=\S)")
_TIME = re.compile(r"(?<=\d):(?=\d\d)")
_SPELT, _LEAST, _MOST = (frozenset(WORDS[name]) for name in ("numbers", "at least", "at most"))
_KEPT = NEGATIONS | _SPELT | _LEAST | _MOST


def contradict(answers: list[str]) -> bool:
    """True if two of these answers surely contradict each other."""
    return any(differ(one, other) for one, other in combinations(answers[:20], 2))


def differ(one: str, other: str) -> bool:
    """True if two answers surely contradict each other.

    They begin with opposite verdicts, or are two dates; or one denies what the other says; or all that differs is a
    number of the same things, the side of a limit, a unit, or a name. An answer that holds another one, or words it in
    its own way, does not.
    """
    if (verdict := verdict_of(one)) and (opposite := verdict_of(other)) and verdict != opposite:
        return True
    first, second = (_DATE.fullmatch(key_of(text[:_LONGEST]) or "") for text in (one, other))
    if first and second:
        return first[2] != second[2] or (first[1] != second[1] and "-" not in (first[1], second[1]))
    here, there = _words(one), _words(other)
    mine, yours = [w for w in here if w not in there], [w for w in there if w not in here]
    denials = [NEGATIONS.isdisjoint(words) for words in (mine, yours)]
    if not all(denials):
        mine, yours = ([w for w in words if w not in NEGATIONS] for words in (mine, yours))
        return any(denials) and _same_forms(mine, yours) and _same_forms(yours, mine)
    limits = [(not _LEAST.isdisjoint(words), not _MOST.isdisjoint(words)) for words in (mine, yours)]
    numbers = [[w for w in words if _NUMBER.fullmatch(w)] for words in (mine, yours)]
    if (True, False) in limits or (False, True) in limits:  # "at least 2" and "at most 5" may both be so
        rest = [[w for w in words if w not in _KEPT] for words in (mine, yours)]
        return {*limits} == {(True, False), (False, True)} and not any(numbers) and not all(rest)
    if not mine or not yours:  # one holds the other
        return False
    is_short = max(len(here), len(there)) <= _SHORT
    if any(numbers):
        if _same_things(here, there, *numbers):
            return all(numbers) and not _same_numbers(here, there, *numbers)
        return is_short and _are_no_units(*numbers)
    spelt = [[w for w in words if w in _SPELT] for words in (mine, yours)]
    if all(spelt) and _same_things(here, there, *spelt):  # two days, three days
        return True
    if not is_short:
        return False
    if any(_NUMBER.fullmatch(w) for w in here):  # 5 mg, 5 g; May 2027, June 2027
        months = {date_of(f"1 {word}") for word in (*mine, *yours)}
        is_unit = all(w.isalpha() and len(w) <= _UNIT for w in (*mine, *yours))
        return len(mine) == len(yours) == 1 and (is_unit or (len(months) == 2 and None not in months))
    return _are_names(one, mine) and _are_names(other, yours) and not _related(mine, yours)


def _words(text: str) -> list[str]:
    """Return the words that are compared, without a verdict and the small ones; "isn't" as "is not"."""
    said = int(verdict_of(text) is not None)
    small = {"a", *WORDS.get(f"profile {language_of(text) or 'en'}", ())} - _KEPT
    text = _NOT.sub(lambda m: f"{m[1] or 'can'} not", _TIME.sub(".", _THOUSANDS.sub("", text[:_LONGEST])))
    words = [part for word in signed_words(text).split() for part in _BOUND.sub(r"\g<0> ", word).split()]
    pairs = zip(["", *words][said:], words[said:], strict=False)
    return [word for last, word in pairs if word not in small or _NUMBER.fullmatch(last)] or words[said:]


def _same_forms(mine: Collection[str], yours: Collection[str]) -> bool:
    """True if each word of one side is a form of one of the other."""
    return all(any(a[:_STEM] == b[:_STEM] for b in yours) for a in mine)


def _same_things(here: list[str], there: list[str], mine: list[str], yours: list[str]) -> bool:
    """True if two answers tell numbers of the same things: one says nothing else that the other does not.

    The word behind a number is the same, or one answer is a number alone: 30 and 45 days; not 14:00 and 2 pm.
    """
    kinds = [{(number.count(".") > 1, "%" in number) for number in own} for own in (mine, yours)]
    rest = [{*here} - {*there, *mine}, {*there} - {*here, *yours}]
    things = [
        {after for number, after in zip(words, [*words[1:], ""], strict=True) if number in own}
        for words, own in ((here, mine), (there, yours))
    ]
    is_bare = 1 in (len(here), len(there)) and not any("." in number for number in (*mine, *yours))
    return not all(rest) and kinds[0] == kinds[1] and (is_bare or not things[0].isdisjoint(things[1]))


def _are_no_units(mine: list[str], yours: list[str]) -> bool:
    """True if two whole numbers are no one amount in two units: 45 days, 24 hours; not 24 months, 2 years."""
    if not all(len(own) == 1 and own[0].isdecimal() and int(own[0]) for own in (mine, yours)):
        return False
    small, large = sorted(int(own[0]) for own in (mine, yours))
    return large - small != _HALF_A_DAY and (large % small > 0 or large // small not in _IN_ONE)


def _same_numbers(here: list[str], there: list[str], mine: list[str], yours: list[str]) -> bool:
    """True if two sides hold the same numbers, however written, or a telephone's with and without a country."""
    one, other = ([_ZEROS.sub("", word) for word in words] for words in (mine, yours))
    if sorted(one) == sorted(other):
        signs = [{word.strip("0123456789.,-") for word in words} for words in (mine, yours)]
        return not all(map(any, signs)) or signs[0] == signs[1]
    whole = ["".join(w for w in words if _NUMBER.fullmatch(w)) for words in (here, there)]
    short, long = sorted((number.lstrip("+0") for number in whole), key=len)
    is_telephone = len(short) >= _LONG_NUMBER and any(number[0] in "+0" for number in whole)
    return "".join(one) == "".join(other) or (is_telephone and long.endswith(short))


def _are_names(answer: str, words: list[str]) -> bool:
    """True if words stand in an answer with a capital letter."""
    written = " ".join(word for word in re.findall(r"[\w'’.-]+", answer) if word[:1].isupper())
    return {*words}.issubset(signed_words(written).split())


def _related(mine: list[str], yours: list[str]) -> bool:
    """True if a word of one side is a form of one of the other, or its initials ("UK")."""
    for one, other in ((mine, yours), (yours, mine)):
        if len(other) > 1 and one[0].startswith("".join(word[0] for word in other)):
            return True
    return any(a[:_STEM] == b[:_STEM] or a in b or b in a for a in mine for b in yours)
