"""Two camps that share a part of what they say and differ in the rest.

"Windows 10" and "Windows 11" agree on "Windows", "before 1990" and "after 1990" on the year: a consensus answers with
that part, or with what the larger camp says. What is found makes a warning and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from robustrag_integrations.defenses.agreement.support import capitalised_words, has_digit
from robustrag_integrations.keywords.closed_classes import FUNCTION_WORDS, NAME_LINKS, listed
from robustrag_integrations.normalise import plain_words, signed_words

_MOST_WORDS = 4  # of a phrase; longer ones are sentences, which have many wordings, or codes
_MOST_PHRASES = 40
_COMPARING = frozenset(
    listed(
        "before after more less fewer over under above below least most since until not no vor nach mehr weniger über "
        "unter seit bis avant après plus moins depuis antes después más menos desde hasta depois mais até prima dopo "
        "più meno oltre sotto voor na meer minder sinds tot"
    )
)


@dataclass(frozen=True)
class Camps:
    """Two phrases with a common part, each said by enough groups, and by none of the other's.

    Attributes:
        phrases: the two; where the answer says one of them, that one comes first, else that of more groups.
        counts: how many groups say each.
        answered: whether the answer says the first one.
    """

    phrases: tuple[str, str]
    counts: tuple[int, int]
    answered: bool


def camps(
    text: str,
    agreed: Collection[str],
    phrases: Sequence[str],
    counts: Mapping[str, int],
    keyword_sets: Sequence[Collection[str] | None],
    replies: Sequence[str | None],
    least: int,
) -> Camps | None:
    """The two largest camps around the answer; None where all say the same, or nothing that tells it apart.

    Args:
        text: the answer.
        agreed: its keywords.
        phrases: those that do not run within another one.
        counts: c(w), how many votes each keyword has.
        keyword_sets: per vote its keywords; None for an abstention or a failure.
        replies: per vote the text of its response, which shows what is a name.
        least: how many votes a camp needs.
    """
    enough = [w for w, c in counts.items() if c >= least and w not in agreed and _is_name_or_code(w)]
    if not enough:
        return None
    enough = sorted(enough, key=lambda w: (-counts[w], -len(w), w))[:_MOST_PHRASES]
    known = frozenset(signed_words(text).split()) | {word for phrase in agreed for word in phrase.split()}
    own = {w: own for w in enough if (own := _own(w, agreed, known, keyword_sets, replies))}
    short = [phrase for phrase in phrases if _is_name_or_code(phrase)]
    sayers = {w: frozenset(i for i, said in enumerate(keyword_sets) if said and w in said) for w in (*own, *short)}
    for answered, pairs in ((True, product(short, own)), (False, combinations(own, 2))):
        for one, other in pairs:
            if _differ(one, other) and sayers[one].isdisjoint(sayers[other]):
                return Camps((one, other), (counts[one], counts[other]), answered)
    return None


def _is_name_or_code(phrase: str) -> bool:
    """Whether it is no sentence: a few words, or groups of digits as those of an account number."""
    words = phrase.split()
    return len(words) <= _MOST_WORDS or all(map(has_digit, words))


def _differ(one: str, other: str) -> bool:
    """Whether two phrases have a word in common, and each has one that the other lacks."""
    first, second = ({*phrase.split(), *plain_words(phrase).split()} for phrase in (one, other))
    return bool(first & second and first - second and second - first)


def _own(
    phrase: str,
    agreed: Collection[str],
    known: Collection[str],
    keyword_sets: Sequence[Collection[str] | None],
    replies: Sequence[str | None],
) -> frozenset[str]:
    """The words that a phrase adds to a part of the answer, where they tell it apart; else none.

    A number does, a unit or a word such as "after" next to a number, and a word that makes a longer name.
    """
    words = phrase.split()
    own = frozenset(words).difference(known)
    written = (f" {phrase} ", f" {plain_words(phrase)} ")
    shared = [part for part in agreed if any(f" {part} " in each for each in written)]
    if not own or not shared:
        return frozenset()
    if any(map(has_digit, own)):
        return own
    if any(map(has_digit, words)):
        is_unit = len(words) == 2 and has_digit(words[0])
        return own if is_unit or not _COMPARING.isdisjoint(own) else frozenset()
    reply = next((r or "" for said, r in zip(keyword_sets, replies, strict=True) if said and phrase in said), "")
    named = capitalised_words(reply)
    is_name = all(word.rstrip(".") in named or word in NAME_LINKS for word in words)
    telling = [word for word in own - FUNCTION_WORDS if not _is_initial(word, known)]
    return own if is_name and telling else frozenset()


def _is_initial(word: str, known: Collection[str]) -> bool:
    return len(word.strip(".")) == 1 and any(other.startswith(word[0]) for other in known)
