"""Whether a reply means something else by what it mentions: "not Berlin", "Berlin is wrong", "Guinea-Bissau".

Only the plain forms, in the words next to the phrase. What is found lowers a group's standing and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from robustrag_integrations.keywords.closed_classes import FUNCTION_WORDS, listed
from robustrag_integrations.keywords.languages import NEGATIONS, language_of
from robustrag_integrations.mentions import mentions
from robustrag_integrations.normalise import plain_words

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
_OF_SENTENCES = NEGATIONS | frozenset(
    listed("ei eivät není nejsou nincs nincsenek δεν tidak bukan belum ikke inga inget")
)
_OTHERWISE = {"pt": frozenset({"no"}), **dict.fromkeys(("fr", "de", "ro"), frozenset({"mai"}))}  # "in the", May
_AUXILIARIES = frozenset(listed("do does did don doesn didn"))
_DENYING = _OF_SENTENCES | _WRONG
_NEGATED_FORMS = re.compile(
    r"n't\b|\bn'(?=\w)|\bnu (?:este|e|a|au|sunt|s-a)\b|m[ıiuü]yor|(?:있|하|되)?(?:지|치) ?(?:않|못)\w*"
)
# Of ASCII: what holds none of them and no word of a denial denies nothing.
_PARTS = re.compile(
    "n'|nu |yor| but |except| than |apart from|instead of|statt|sauf|au lieu|excepto|salvo| vez de|eccetto|tranne"
    "|invece di|exceto|behalve|utom"
)
_UNSPACED_NEGATION = re.compile("ไม่(?:ได้)?")
_MOST_WORDS = 12  # of an answer that a clause may say in other words
_SHARE = 0.6  # of its words
_NO_DENIAL = frozenset(
    listed("only just merely simply until least doubt question nur bis seulement que solo sólo soltanto")
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
_BEFORE_UNSPACED = re.compile(r"(?:不是|并非|並非|不|非)\Z")
_AFTER_UNSPACED = re.compile(r"\s?(?:(?:では|じゃ|で)(?:な[いく]|ありませ)|[이가은는]?\s?(?:아니|아닙|아닌))")


def denies(reply: str, phrase: str) -> bool:
    """Whether every mention of the phrase in the reply is denied; not if there is none."""
    reply = reply[:_LONGEST_REPLY].replace("’", "'")
    if len(reply) <= _WINDOW and reply.isascii() and not _may_deny(reply):
        return False
    spans = mentions(phrase, reply)
    return bool(spans) and all(_denied(reply, start, end) for start, end in spans)


def contradicts(reply: str, answer: str) -> bool:
    """Whether a reply says a sentence with a negation where the answer has none, or without the answer's.

    "The bridge is not open" against "The bridge is open"; not if a clause of the reply says it as the answer does.
    Names and numbers alone are no sentence.
    """
    reply, answer = reply[:_LONGEST_REPLY].replace("’", "'"), answer[:_LONGEST_REPLY].replace("’", "'")
    if reply.isascii() and answer.isascii() and not (_may_deny(reply) or _may_deny(answer)):
        return False
    words = frozenset(plain_words(_NEGATED_FORMS.sub(" ", answer.casefold())).split()) - _OF_SENTENCES - _AUXILIARIES
    if not answer or len(words) > _MOST_WORDS:
        return False
    if _UNSPACED_NEGATION.search(reply + answer):
        bare, same = _UNSPACED_NEGATION.sub("", answer).strip(" ."), answer.strip(" .")
        return bare in _UNSPACED_NEGATION.sub("", reply) and same not in reply
    if len(words) < 2 or all(map(_is_name_or_number, answer.split())):
        return False
    negated, language = _has_negation(answer, language_of(answer)), language_of(reply)
    clauses = [c for c in _CLAUSE.split(reply) if len(words & frozenset(plain_words(c).split())) >= _SHARE * len(words)]
    return bool(clauses) and all(_has_negation(clause, language) != negated for clause in clauses)


def _is_name_or_number(word: str) -> bool:
    return word[:1].isupper() or not any(map(str.isalpha, word))


def opposed_warning(
    answer: str, replies: Iterable[str | None], keyword_sets: Iterable[Collection[str] | None]
) -> str | None:
    """What to say where several groups contradict the answer; None where fewer than two do.

    Args:
        answer: its text.
        replies: per group the text of its response.
        keyword_sets: per group its keywords; one without any does not count.
    """
    different = Counter(r for r, said in zip(replies, keyword_sets, strict=True) if said and r and r != answer)
    count = sum(groups for reply, groups in different.items() if contradicts(reply, answer))
    if count < 2:
        return None
    return f"the groups contradict each other: {count} say the answer with a negation, or without the one that it has"


def _has_negation(clause: str, language: str | None) -> bool:
    folded = clause.casefold()
    words = frozenset(plain_words(folded).split()).difference(_OTHERWISE.get(language or "", ()))
    if not words.isdisjoint(_NO_DENIAL):
        return False
    return not words.isdisjoint(_OF_SENTENCES) or bool(_NEGATED_FORMS.search(folded))


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
    led_by = reply[max(0, start - _WINDOW) : start]
    if _LEFT_OUT.search(led_by):
        return True
    before = _CLAUSE.split(led_by)[-1]
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
    is_or_does = follow[0] in _BE or reply[start].isupper()  # "Anna did not win", but "the fire could not be stopped"
    negated = is_or_does and any(map(_negates, follow[:2])) and not _NO_DENIAL.intersection(follow)
    return negated or (follow[0] in _BE and bool(_WRONG.intersection(follow)))


def _negates(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't") or word.startswith("n'")
