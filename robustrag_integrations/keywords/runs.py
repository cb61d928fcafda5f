"""The keys of a reply: every run of its words, the whole answer among them.

A reply is an answer first and words second. Its *whole answer* is what is left of a short reply without its wrapping:
reasoning, code fences, quotation marks, JSON with one answer, "The answer is". The whole answer is a key, and so is
every run of up to `LONGEST` adjacent tokens (`tokens.py`) that begins and ends with no small word and holds a token
that is not in the question. An echo of the question so has no key. Keys decide; the form in which a reply writes a key
is for eyes.

Keys are closed: whoever says a key says each of its runs that is one. Radii rely on it (`comes_with`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from robustrag_integrations.keywords.languages import NEGATIONS, VERDICTS
from robustrag_integrations.keywords.normalise import ANSWER_LEAD
from robustrag_integrations.keywords.questions import asks_for_something_else, is_yes_or_no
from robustrag_integrations.keywords.tokens import UNIT, Language, Token, tokens_of, without_punctuation
from robustrag_integrations.reply_text import answer_text, unboxed, without_citations

LONGEST = 12  # tokens of a run; a whole answer may be longer
MOST_CHARACTERS = 20_000  # of a reply that are read
MOST_TOKENS = 2_000
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_SHORTEST_JUDGED = 40  # characters of a text in which a reply's words have to stand

_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n(.*?)\n?```\Z", re.S)
_LEAD = re.compile(rf"\A[*_]{{0,2}}{ANSWER_LEAD}[*_]{{0,2}}[: ]*", re.I)
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
_ENDS = re.compile(r"(?<=[,.;:!?…。，、！])|[*_\"'”’)\s]*(?:\Z|[,.;:!?…。，、！—–]| - )")
_INDEXED = re.compile(r"`?[a-z_][\w.]*\[\d+\]`?")  # a place in an array, no citation
_FULL_STOP = re.compile(r"(?<=\w\w)[.。]\Z")
_MARKS = [(mark, mark) for mark in ("**", "*", "`", '"', "'")] + [
    (pair[0], pair[1]) for pair in ("“”", "‘’", "„“", "«»", "「」", "『』", "《》")
]


@dataclass(frozen=True)
class ReplyKeys:
    """The keys of one reply.

    Attributes:
        keys: the keys that count. Replies with the same keys say the same.
        whole: the key of the whole answer; None for an echo of the question, which has no keys.
        rest: the tokens that are neither small words nor in the question; units are among them.
        forms: each key as the reply writes it first; for eyes.
        is_echo: True if it only repeats the question.
        is_grounded: True if a word of it stands in its group's own passages, as far as that can be told.
        left_out: True if it claims more than is read.
    """

    keys: frozenset[str]
    whole: str | None
    rest: frozenset[str]
    forms: Mapping[str, str] = field(compare=False, hash=False)
    is_echo: bool = False
    is_grounded: bool = True
    left_out: bool = False

    @property
    def without_grounds(self) -> ReplyKeys:
        """The same of a reply that stands in no passage of its group."""
        return replace(self, is_grounded=False)


class RunReader:
    """A reader of the replies to one question, each on its own.

    Args:
        question: its words make no keys, unless it is one whose answer may be among them ("Is it Paris or London?").
    """

    def __init__(self, question: str) -> None:
        self._language = Language.of(question)
        self._tokens_of = lru_cache(maxsize=16)(self.tokens)
        self._words = self.tokens(question[:MOST_CHARACTERS])
        self._asked = self._words - NEGATIONS if asks_for_something_else(question) else frozenset()
        self._takes_verdicts = is_yes_or_no(question)

    def __call__(self, reply: str) -> ReplyKeys:
        """The keys of a reply."""
        text = whole_answer(reply)
        tokens = tokens_of(text, self._language)[:MOST_TOKENS]
        if self._takes_verdicts and tokens and tokens[0].key in VERDICTS and _ENDS.match(text, tokens[0].end):
            verdict = tokens[0].key
            more = frozenset(t.key for t in tokens[1:] if not self._language.is_small(t.key)) - self._words
            return ReplyKeys(frozenset([verdict]), verdict, more | {verdict}, {verdict: _form(text, tokens[:1])})
        small = [self._language.is_small(token.key) for token in tokens]
        if all(small):
            small = [False] * len(tokens)
        ends = [place for place, is_small in enumerate(small) if not is_small]
        new = [
            not is_small and token.key[0] != UNIT and token.key not in self._asked
            for token, is_small in zip(tokens, small, strict=True)
        ]
        forms: dict[str, str] = {}
        whole = _joined(tokens[ends[0] : ends[-1] + 1]) if any(new) else None
        if whole is not None:
            forms[whole] = text
        for first in ends:
            for last in range(first, min(first + LONGEST, len(tokens))):
                if not small[last] and any(new[first : last + 1]):
                    run = tokens[first : last + 1]
                    forms.setdefault(_joined(run), _form(text, run))
        rest = frozenset(t.key for t, is_new in zip(tokens, new, strict=True) if is_new or t.key[0] == UNIT)
        return ReplyKeys(frozenset(forms), whole, rest, forms, whole is None and bool(tokens))

    def tokens(self, text: str) -> frozenset[str]:
        """The tokens of a text."""
        return frozenset(token.key for token in tokens_of(text, self._language))

    def new_words(self, tokens: Iterable[str]) -> frozenset[str]:
        """Those of some tokens that are neither small words nor in the question."""
        return frozenset(t for t in tokens if not self._language.is_small(t) and t not in self._asked)

    def stands_in(self, words: frozenset[str], text: str) -> bool:
        """True if one of a reply's words stands in a text, or in the question, which may offer answers.

        Of a short text, and of a yes or no, that cannot be told.
        """
        known = self._words | VERDICTS
        if len(text) < _SHORTEST_JUDGED or not words or not words.isdisjoint(known):
            return True
        plain = _THOUSANDS.sub("", text.casefold())
        for word in words:  # most replies are found so, at no cost
            if word.isdecimal() and re.search(rf"(?<![\d.]){word}(?!\d)", plain):
                return True
            if word.isalpha() and word in plain:
                return True
        return not words.isdisjoint(self._tokens_of(text[:MOST_CHARACTERS]))

    def comes_with(self, part: str, key: str) -> bool:
        """True if every reply that says a key says this part of it, too; False where that is not certain."""
        tokens = part.split(" ")
        if len(tokens) > LONGEST or self._language.is_small(tokens[0]) or self._language.is_small(tokens[-1]):
            return part == key
        return is_part(part, key)


def _joined(run: list[Token]) -> str:
    return " ".join([token.key for token in run])


def _form(text: str, run: list[Token]) -> str:
    """A run as the text writes it, without the punctuation at its ends."""
    if len(run) == 1 and run[0].alone:
        return run[0].alone
    written = text[run[0].start : max(token.end for token in run)]
    return " ".join(without_punctuation(written).split()) or written


def whole_answer(reply: str) -> str:
    """Return a reply without its wrapping."""
    text = unboxed(answer_text(visible(reply[:MOST_CHARACTERS]))).strip()
    if text[:1] not in ("[", "{") and not _INDEXED.fullmatch(text):
        text = without_citations(text).strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    text = _LEAD.sub("", text, count=1)
    before = None
    while text != before:
        before = text
        for opening, closing in _MARKS:
            inner = text[len(opening) : len(text) - len(closing)]
            if text.startswith(opening) and text.endswith(closing) and inner and closing not in inner:
                text = inner.strip()
        text = _FULL_STOP.sub("", text)
    return text


def visible(text: str) -> str:
    """A text without control characters and marks of direction; joiners of letters stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([c for c in text if c in "\n\t\u200c\u200d" or unicodedata.category(c) not in _UNSEEN])


def is_part(run: str, key: str) -> bool:
    """True if a run of tokens stands in a key."""
    return f" {run} " in f" {key} "


def longest(keys: Collection[str]) -> frozenset[str]:
    """Return the keys that are no part of another one."""
    inside: set[str] = set()
    for key in keys:
        tokens = key.split(" ")
        for first in range(len(tokens)):
            runs = range(first + 1, min(first + LONGEST, len(tokens)) + 1)
            inside.update(" ".join(tokens[first:last]) for last in runs if last - first < len(tokens))
    long = [key for key in keys if key.count(" ") >= LONGEST]
    inside.update(key for key in long for other in long if key != other and is_part(key, other))
    return frozenset(keys) - inside


def find_written(keyword: str, text: str) -> str:
    """Return a keyword as a text first writes it, up to case; as it is if it stands nowhere."""
    words = r"\W{1,3}".join(map(re.escape, keyword.split()))
    found = re.search(rf"(?<!\w){words}(?!\w)", text[:MOST_CHARACTERS], re.I) if words else None
    return found[0] if found else keyword
