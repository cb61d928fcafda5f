"""The keywords of a reply in a language that the shipped tagger does not read.

Words are what is left without the language's small words; phrases are words in a row. Beside a word stands the same
without its ending (`inflection`). Negated words count with their negation alone, which may
stand in front of them or, at the end of a clause, behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.dates import find_dates
from robustrag_integrations.keywords.inflection import base_forms
from robustrag_integrations.keywords.languages import NEGATIONS, stop_words
from robustrag_integrations.keywords.segments import chinese_pieces, japanese_pieces, korean_words, thai_pieces

MAX_PHRASE_WORDS = 6
MAX_WHOLE_WORDS = 10
_FAR_BEFORE = 4  # words between a verb and a negation behind it

_VOWEL_SIGNS = re.compile("[\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]")
_TOKEN = re.compile(
    r"(?:[^\W_]|[\u0900-\u0963\u0300-\u036f])+(?:['’־.-](?:[^\W_]|[\u0900-\u0963])+)*|[^\w\s]", re.UNICODE
)
_ELIDED = re.compile(r"\A(?:l|d|qu|n|s|j|m|t|c|jusqu|lorsqu|un|all|dell|nell|dall|sull|quest|com)'(?=\w)", re.I)
_ELIDED_NAME = re.compile(r"\A(?:[dlDLO]|[Dd]ell|[Dd]all)'(?=[A-ZÀ-ÖØ-Þ])")
_TITLE_LINKS = frozenset(listed("de du da do dos das del della di la le el al von van zu y e"))
_STOPS = frozenset(".;!?،؛।")
_UNSPACED = {"zh": chinese_pieces, "ja": japanese_pieces, "th": thai_pieces}


def keywords_of_line(line: str, language: str) -> Iterator[str]:
    """Yield the keywords of one plain line, not yet in the form that is counted."""
    line = _VOWEL_SIGNS.sub("", line)
    numbers, rest = find_dates(line, language)
    yield from numbers
    if language in _UNSPACED:
        yield from _UNSPACED[language](rest)
        yield from (word for word in re.findall(r"[A-Za-z][\w.'-]*", rest) if len(word) > 1)
    elif language == "ko":
        yield from _phrases(korean_words(rest))
    else:
        yield from _spaced(rest, language)


def _spaced(line: str, language: str) -> Iterator[str]:
    small = stop_words(language)
    tokens = [_ELIDED.sub("", token) for token in _TOKEN.findall(line)]
    words: list[str] = []
    negation, before = "", 0
    for token in tokens:
        folded = token.casefold()
        if folded in NEGATIONS:
            negation, before = folded, len(words) - 1
            words.append("")
        elif not token[0].isalnum():
            if token in _STOPS and negation:
                yield from _negated_before(words, before, negation)
                negation = ""
            words.append("")
        elif folded in small or (len(token) < 2 and not token.isdigit()):
            words.append("")
        elif negation and not token[0].isupper():
            yield f"{negation} {token}"
            words.append("")
            negation = ""
        else:
            words.append(token)
    if negation:
        yield from _negated_before(words, before, negation)
    yield from (token for token in _TOKEN.findall(line) if _ELIDED_NAME.match(token))
    for word in words:
        if word:
            yield from base_forms(word.casefold(), language)
            if "-" in word or "־" in word:
                yield from (part for part in re.split("[-־]", word) if len(part) > 2)
    yield from _phrases(words)
    yield from _names(tokens)


def _negated_before(words: list[str], before: int, negation: str) -> Iterator[str]:
    """Take out the word that a negation stands behind, and yield it with that: "Der Laden öffnet heute nicht"."""
    for place in range(before, max(before - _FAR_BEFORE, -1), -1):
        word = words[place]
        if word and not word[0].isupper():
            words[place] = ""
            yield f"{negation} {word}"
            return


def _phrases(words: Sequence[str]) -> Iterator[str]:
    """Yield every word, and words in a row as a phrase; an empty word ends a phrase."""
    for filled, group in groupby(words, key=bool):
        if filled:
            run = list(group)
            yield from run
            for first in range(0, len(run), MAX_PHRASE_WORDS):
                if len(run) > 1:
                    yield " ".join(run[first : first + MAX_PHRASE_WORDS])


def _names(tokens: Sequence[str]) -> Iterator[str]:
    """Yield capitalised words in a row, with the small words that hold names together ("Vila do Açude")."""
    run: list[str] = []
    for token in [*tokens, "."]:
        if token[0].isupper() or (run and token.casefold() in _TITLE_LINKS):
            run.append(token)
            continue
        while run and not run[-1][0].isupper():
            run.pop()
        if 1 < len(run) <= MAX_PHRASE_WORDS:
            yield " ".join(run)
        run = []


def whole_reply(lines: Sequence[str], language: str) -> str | None:
    """Return a short reply as one keyword, so that equal ones always meet."""
    text = " ".join(lines)
    short = len(text) <= 16 if language in _UNSPACED else len(text.split()) <= MAX_WHOLE_WORDS
    return _VOWEL_SIGNS.sub("", text).strip(" .!?。！？।؟") if short else None
