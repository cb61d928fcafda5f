"""Whether two answers surely contradict each other, or may say the same in other words.

Where it is not sure they are told without the word "disagree": sources that agree must not be said to disagree.
"""

from __future__ import annotations

import re
from itertools import combinations

from robustrag_integrations._util.normalise import signed_words
from robustrag_integrations.replies.keys import verdict_of
from robustrag_integrations.text.languages import NEGATIONS

_SHORT = 4  # words of an answer that is a name, a thing or an amount
_UNIT = 3  # letters of a unit
_DENIAL = 2  # words: "not", "does not"
_STEM = 4  # letters that two forms of a word begin with
_LONGEST = 400  # characters that are compared
_NUMBER = re.compile(r"-?\W?\d[\d.,]*[\W]?")
_ZEROS = re.compile(r"[.]0*$|[^\d.%-]")  # behind a point, and signs of money
_LONG_NUMBER = 6  # digits
_NOT = re.compile(r"\b(?:(\w+)n[’']t|cannot)\b", re.I)


def contradict(answers: list[str]) -> bool:
    """True if two of these answers surely contradict each other."""
    return any(differ(one, other) for one, other in combinations(answers[:20], 2))


def differ(one: str, other: str) -> bool:
    """True if two answers surely contradict each other.

    They begin with opposite verdicts; or one has a negation and else nothing more than the other; or all that differs
    is a number, a unit, or a name. An answer that holds another one, or words it in its own way, does not.
    """
    if (verdict := verdict_of(one)) and (opposite := verdict_of(other)) and verdict != opposite:
        return True
    here, there = _words(one), _words(other)
    mine, yours = [w for w in here if w not in there], [w for w in there if w not in here]
    if not mine or not yours:  # one holds the other
        return 0 < len(mine or yours) <= _DENIAL and not NEGATIONS.isdisjoint(mine or yours)
    numbers = [[w for w in words if _NUMBER.fullmatch(w)] for words in (mine, yours)]
    is_short = max(len(here), len(there)) <= _SHORT and not NEGATIONS.intersection((*mine, *yours))
    if any(numbers):
        only = numbers == [mine, yours]
        return all(numbers) and (only or is_short) and not _same_digits(*numbers)
    if not is_short:
        return False
    if any(_NUMBER.fullmatch(w) for w in here):  # 5 mg, 5 g
        return len(mine) == len(yours) == 1 and all(w.isalpha() and len(w) <= _UNIT for w in (*mine, *yours))
    return _are_names(one, mine) and _are_names(other, yours) and not _related(mine, yours)


def _words(text: str) -> list[str]:
    """Return the words that are compared; "isn't" as "is not"."""
    text = _NOT.sub(lambda m: f"{m[1] or 'can'} not", text[:_LONGEST])
    return signed_words(text).split()


def _same_digits(mine: list[str], yours: list[str]) -> bool:
    """True if two sides hold the same numbers, however they are written, or one number ends as the other does."""
    one, other = ([_ZEROS.sub("", word.replace(",", "")) for word in words] for words in (mine, yours))
    ends = ["".join(re.findall(r"\d", "".join(words)))[-_LONG_NUMBER:] for words in (mine, yours)]
    is_long = min(map(len, ends)) == _LONG_NUMBER  # of a telephone, with or without its country
    return sorted(one) == sorted(other) or "".join(one) == "".join(other) or (is_long and ends[0] == ends[1])


def _are_names(answer: str, words: list[str]) -> bool:
    """True if words stand in an answer with a capital letter."""
    written = [word for word in re.findall(r"[\w'’.-]+", answer) if word[:1].isupper()]
    return {*words}.issubset(signed_words(word) for word in written)


def _related(mine: list[str], yours: list[str]) -> bool:
    """True if a word of one side is a form of one of the other."""
    return any(a[:_STEM] == b[:_STEM] or a in b or b in a for a in mine for b in yours)
