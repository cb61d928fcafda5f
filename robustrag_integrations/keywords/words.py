"""From a tagger's words to the items that phrases are made of: words, compounds and quantities.

What the tagger says is corrected here where it is known to be weak: a capitalised word within a sentence is a name
("Mount", "Will"), and words with digits and words of other scripts are informative whatever their tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from robustrag_integrations.keywords.closed_classes import EMPTY_WORDS, FUNCTION_WORDS
from robustrag_integrations.keywords.normalise import is_latin
from robustrag_integrations.keywords.quantities import Quantity, find_quantities

INFORMATIVE = frozenset({"ADJ", "ADV", "NOUN", "NUM", "PROPN", "SYM", "X"})

_JOINERS = frozenset("-/&+'")
_ENDINGS = frozenset({"#", "+", "++"})  # C#, A+, C++
_LONGEST_GRADE = 2  # letters
_NO_PLURAL = ("est", "er", "ed", "ing", "ly")
_KEPT_WORDS = 4096
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.){2,}(?:[^\W\d_]{1,2})?|[^\W\d_]{1,4}\.")


class TaggedWord(NamedTuple):
    """One word as the tagger sees it; `start` counts characters from the beginning of its line."""

    text: str
    lemma: str
    pos: str
    start: int

    @property
    def end(self) -> int:
        """Where the word ends in its line."""
        return self.start + len(self.text)


class Item(NamedTuple):
    """What a phrase is made of.

    Attributes:
        written: as it stands in the line, without the dots of abbreviations; a quantity in its fullest form.
        shown: as it stands in a phrase: a common noun as its lemma, anything else as written.
        alone: the keywords that it gives by itself.
        informative: whether phrases run through it.
        wordlike: whether it holds a letter or a digit.
        start, end: its characters in the line.
    """

    written: str
    shown: str
    alone: tuple[str, ...]
    informative: bool
    wordlike: bool
    start: int
    end: int

    @classmethod
    def of(cls, written: str, shown: str, alone: tuple[str, ...], informative: bool, start: int, end: int) -> Item:
        """An item, of which is found out whether it is wordlike."""
        return cls(written, shown, alone, informative, _is_wordlike(written), start, end)


def items_of(words: Sequence[TaggedWord], line: str) -> list[Item]:
    """Return the items of a tagged line, left to right; quantities take the place of the words they cover."""
    quantities = iter(find_quantities(line))
    upcoming = next(quantities, None)
    names = _informative_flags(words, line)
    items: list[Item] = []
    position, count = 0, len(words)
    while position < count:
        text, lemma, pos, start = words[position]
        end = start + len(text)
        if upcoming and end > upcoming.start:
            items.append(_quantity_item(upcoming))
            while position < count and words[position].start < upcoming.end:
                position += 1
            upcoming = next(quantities, None)
            continue
        length = 1
        if position + 1 < count and words[position + 1].start == end:
            length = _compound_length(words, position, upcoming.start if upcoming else len(line))
        if length == 1:
            parts = _word_parts(text, lemma, pos, names[position])
            items.append(tuple.__new__(Item, (*parts, start, end)))  # not by way of a Python function
        else:
            items.append(_compound(words[position : position + length], names[position : position + length], line))
        position += length
    return items


def _quantity_item(quantity: Quantity) -> Item:
    fullest = quantity.forms[0]
    return Item.of(fullest, fullest, quantity.forms, True, quantity.start, quantity.end)


def _compound_length(words: Sequence[TaggedWord], position: int, limit: int) -> int:
    """Return how many words from here on are written as one: around a hyphen or slash, or letters against digits."""
    end = position + 1
    if not words[position].text[-1].isalnum():
        return 1
    while end < len(words) and words[end].start == words[end - 1].end and words[end].end <= limit:
        here, following = words[end], words[end + 1] if end + 1 < len(words) else None
        if here.text in _JOINERS:
            glued = following and following.start == here.end and following.end <= limit and following.text[0].isalnum()
            if not glued:
                return end - position + (here.text in _ENDINGS or _is_grade(words, position, end))
            end += 2
        elif here.text in _ENDINGS:
            return end - position + 1
        elif here.text[0].isalnum() and (here.text[0].isdigit() or words[end - 1].text[-1].isdigit()):
            end += 1
        else:
            break
    return end - position


def _is_grade(words: Sequence[TaggedWord], position: int, end: int) -> bool:
    """Whether a hyphen that nothing follows is a minus: "A-", "AB-"."""
    text = words[position].text
    alone = end == position + 1 and (end + 1 == len(words) or words[end + 1].start > words[end].end)
    return alone and words[end].text == "-" and len(text) <= _LONGEST_GRADE and text.isalpha() and text.isupper()


def _compound(words: Sequence[TaggedWord], informative: Sequence[bool], line: str) -> Item:
    start, end = words[0].start, words[-1].end
    written = line[start:end]
    parts = [
        keyword
        for word, counts in zip(words, informative, strict=True)
        if counts and len(word.text) > 1 and not word.text.isdecimal()
        for keyword in _word_parts(word.text, word.lemma, word.pos, True)[2]
    ]
    return Item.of(written, written, (written, *parts) if any(informative) else (), any(informative), start, end)


@lru_cache(_KEPT_WORDS)
def _word_parts(text: str, lemma: str, pos: str, informative: bool) -> tuple[str, str, tuple[str, ...], bool, bool]:
    """The first five parts of the item of a word; a line's words have at most `MAX_WORD_CHARACTERS`."""
    written = undotted(text)
    lemma = undotted(lemma) if _is_wordlike(lemma) else written
    empty = written.casefold() in EMPTY_WORDS and not text[:1].isupper()
    counts = informative and not empty
    if len(written) == 1:
        lemma = written  # the "E" of "20° E" is no e-mail
    if pos == "NOUN" and written.casefold().endswith(_NO_PLURAL):
        lemma = written  # "everest", if tagged as a noun, is not the superlative of "ever"
    shown = lemma if pos == "NOUN" else written
    wordlike = _is_wordlike(written)
    if not counts or not wordlike:
        alone: tuple[str, ...] = ()
    elif pos == "PROPN":
        alone = (written, lemma)
    else:
        alone = (lemma,) if pos in ("NOUN", "ADJ", "ADV") else (written,)
    return written, shown, alone, counts, wordlike


def _is_wordlike(text: str) -> bool:
    return text.isalnum() or any(map(str.isalnum, text))


def undotted(text: str) -> str:
    """Return an abbreviation without its dots: "U.S." as "US", "Dr." as "Dr"; any other text as it is."""
    return text.replace(".", "") if "." in text and _DOTTED.fullmatch(text) else text


def _informative_flags(words: Sequence[TaggedWord], line: str) -> list[bool]:
    """Of each word whether it is informative, by its tag or in spite of it."""
    shouting = line.isupper()
    return [
        word.pos in INFORMATIVE or (not _says_nothing(word.text) and _counts(words, position, shouting))
        for position, word in enumerate(words)
    ]


def _counts(words: Sequence[TaggedWord], position: int, shouting: bool) -> bool:
    """Whether an uninformative tag is overruled by what a word looks like, where it stands."""
    word = words[position]
    before = words[position - 1] if position else None
    after = words[position + 1] if position + 1 < len(words) else None
    return _of_its_looks(word.text) or _a_name(word, before, after, shouting)


@lru_cache(_KEPT_WORDS)
def _says_nothing(text: str) -> bool:
    """Whether nothing in a word's looks speaks against its tag: small letters of ASCII, or signs of it."""
    return text.isascii() and ((text.islower() and text.isalpha()) or not any(map(str.isalnum, text)))


def _of_its_looks(text: str) -> bool:
    if text.isascii() and text.isalpha() and text[1:].islower():
        return False
    camel = text[0].islower() and not text.islower() and text.isalpha()  # iPhone, eBay
    return camel or any(c.isdigit() or (c.isalpha() and not is_latin(c)) for c in text)


def _a_name(word: TaggedWord, before: TaggedWord | None, after: TaggedWord | None, shouting: bool) -> bool:
    """Whether an uninformative tag is overruled because the word is capitalised like a name."""
    text = word.text
    if not text[0].isupper() or text == "I" or "'" in text:
        return False
    if len(text) > 1 and text.isupper() and not shouting:
        return True
    starts_sentence = before is None or not (before.text[-1].isalnum() or before.text in (",", "-", "&", "/", "'s"))
    if not starts_sentence and len(text) == 1:
        return True
    if text.casefold() in FUNCTION_WORDS:
        return False
    if not starts_sentence:
        return True
    return word.pos in ("VERB", "AUX") and after is not None and after.text[0].isupper()
