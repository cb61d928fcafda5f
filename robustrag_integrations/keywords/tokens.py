"""A text as tokens: words as they are compared, each with its place in the text.

Words are compared in NFKC, without their case, the punctuation at their edges and, where a stemmer knows the language,
their inflection. What looks like code is compared to the letter. An amount is a number and its unit, however it is
written: "three years" and "3 years", "$5 million" and "five million dollars". Scripts without spaces come character by
character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from string import ascii_uppercase
from typing import NamedTuple

import snowballstemmer

from robustrag_integrations._util.normalise import MONEY, compatible, few_marks
from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.han import simplified
from robustrag_integrations.keywords.languages import NEGATIONS, VERDICTS, language_of, stop_words
from robustrag_integrations.keywords.normalise import without_accents
from robustrag_integrations.keywords.quantities import Quantity, find_quantities
from robustrag_integrations.keywords.unspaced import TOKENS, is_denial, is_filler, korean_stem

QUOTES, STOPS = "\"'`“”‘’„«»「」『』《》", ".,;:!?…。，、！？；：।॥،؛؟۔"
_LONGEST_LINE = 1_000  # characters of a line that is searched for amounts
_LONGEST_WORD = 100  # characters of a word that are compared; more is no word
_STEMMERS = {
    "ar": "arabic", "de": "german", "en": "english", "es": "spanish", "fr": "french", "hi": "hindi", "it": "italian",
    "nl": "dutch", "pt": "portuguese", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
_SHORTEST_STEMMED = 4  # letters
_DECIMAL_POINT = ("en", "zh", "ja", "ko", "th", "he", "ar", "hi")  # elsewhere "1.450" is 1450
_HEBREW_CLITIC = re.compile(r"\Aש?[ובלמהכש](?=\w{3})")
_CHARACTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"  # scripts without spaces
_WORD = re.compile(
    rf"{TOKENS}|[{_CHARACTERS}][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]*|(?:[^\s'’{_CHARACTERS}]|(?<!\w)['’]|['’](?!\w))+"
)
_HYPHENS = re.compile(r"(?<=[^\W\d_])[-‐‑](?=[^\W\d_])")
_CODE = re.compile(r"\A-|[_\\$=<>{}|/@#^~*%+]|[a-z][A-Z]")
_EXPONENT = re.compile("[⁰¹²³⁴-⁹⁺⁻₀-₉]")
_INVISIBLE = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f\u2060\ufeff]"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_POINTS = re.compile(r"\d{1,3}(?:\.\d{3})+")
_LETTERS = frozenset(ascii_uppercase)
_PAIRS = [(pair[0], pair[1]) for pair in ('""', "``", "“”", "„“", "«»", "「」", "『』", "《》")]
_BRACKETS = ("()", "[]", "{}", "<>")
_NUMBER = re.compile(r"-?(?:\d+\.)?\d+")
_DATE = re.compile(r"[a-z]{3,9} \d{4}|\d{1,2} [a-z]{3,9}(?: \d{4})?")
_UNIT = re.compile(r"-?[\d.]+ ?(?:(?:thousand|million|billion|trillion) )?([^\d\s].*)")
_BEFORE_AMOUNT, _AFTER_AMOUNT = frozenset("([\"'“‘«*_:~≈"), frozenset(STOPS + ")]\"'”’»*_")
SMALL_ENGLISH = frozenset(
    listed(
        "a an the of in on at for and or is was are were be been it its this that as with by he she his her their they "
        "s to there has have had can will you - – — •"
    )
)


UNIT = "¤"  # how the token of a unit begins; "5 km" and "7 km" do not agree on it


class Token(NamedTuple):
    """A word as it is compared, and where it stands in the text.

    `alone` is how the number of an amount with a unit is shown where the unit is not agreed on.
    """

    key: str
    start: int
    end: int
    alone: str = ""


@dataclass(frozen=True)
class Language:
    """The small words and the stemmer of one language.

    Attributes:
        code: "en", "de", ...
        small: words that begin and end no key.
        stem: a word without its inflection; None where no stemmer knows the language.
    """

    code: str
    small: frozenset[str]
    stem: Callable[[str], str] | None

    def is_small(self, token: str) -> bool:
        """True if no key begins or ends with this token."""
        if token.isascii():
            return token in self.small
        return not is_denial(token) and (token in self.small or is_filler(token))

    @staticmethod
    def of(text: str) -> Language:
        """Return the language of a text; English if its words do not tell."""
        return _language(language_of(text) or "en")


@cache
def _language(code: str) -> Language:
    stem = _stemmer(code)
    words = SMALL_ENGLISH if code == "en" else SMALL_ENGLISH & {"-", "–", "—", "•"} | stop_words(code)
    told = NEGATIONS | VERDICTS
    if stem:
        words |= {stem(word) for word in words}
        told |= {stem(word) for word in told}  # "nicht" is also what is left of "nichts"
    return Language(code, words - told, stem)


def _stemmer(code: str) -> Callable[[str], str] | None:
    if code == "ko":
        return korean_stem
    if code == "he":
        return lambda word: _HEBREW_CLITIC.sub("", word)
    if code not in _STEMMERS:
        return None
    stem = snowballstemmer.stemmer(_STEMMERS[code]).stemWord
    return lambda word: stem(word) if len(word) >= _SHORTEST_STEMMED and word.isalpha() else word


def tokens_of(text: str, language: Language) -> list[Token]:
    """Return the tokens of a text, in its order. Takes time linear in its length.

    A text of nothing but signs ("==", "[]") is one token.
    """
    text = _plain_digits(text)
    tokens: list[Token] = []
    done = 0
    for amount, start, end in _amounts(text, language):
        tokens += _words(text, done, start, language)
        number, *unit = amount
        tokens.append(Token(number, start, end, number if unit and unit[0][0] == UNIT else ""))
        tokens += [Token(key, start, end) for key in unit]
        done = end
    tokens += _words(text, done, len(text), language)
    if not tokens and (signs := text.strip()[:_LONGEST_WORD]) and " " not in signs:
        start = text.find(signs)
        return [Token(signs, start, start + len(signs))]
    return tokens


def _plain_digits(text: str) -> str:
    """The text, as long as it was, with the digits of all scripts as 0 to 9."""
    return text if text.isascii() else "".join([str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text])


def _words(text: str, start: int, end: int, language: Language) -> Iterator[Token]:
    for piece in _WORD.finditer(text, start, end):
        written = piece[0]
        if len(written) > 2 and not _CODE.search(written) and _HYPHENS.search(written):
            at = piece.start()
            for part in _HYPHENS.split(written):
                if key := _key(part, language):
                    yield Token(key, at, at + len(part))
                at += len(part) + 1
        elif written in _LETTERS and text[: piece.start()].strip():  # "Vitamin A"
            yield Token(written, piece.start(), piece.end())
        elif key := _key(written, language):
            yield Token(key, piece.start(), piece.end())


def _key(written: str, language: Language) -> str:
    """A word as it is compared; empty for one of nothing but punctuation."""
    word = written[:_LONGEST_WORD]
    if not word.isascii():
        word = _INVISIBLE.sub("", word)
        if not _EXPONENT.search(word):
            word = "".join(compatible(few_marks(word)).split())  # NFKC of some accents begins with a space
    word = _without_edges(word)
    if not word:
        return ""
    word = _THOUSANDS.sub("", word)
    if language.code not in _DECIMAL_POINT and _POINTS.fullmatch(word):
        word = word.replace(".", "")
    if _CODE.search(word):
        return word
    word = word.casefold()
    if not word.isascii() and language.code in ("en", "zh"):
        word = simplified(word) if language.code == "zh" else without_accents(word)
    return (language.stem(word) or word) if language.stem else word


def without_punctuation(text: str) -> str:
    """A text without the quotes, stars and stops around it; brackets stay, and so do quotes that close within it."""
    inner = text.strip(QUOTES + "*").rstrip(STOPS + QUOTES + "*")
    before, _, after = text.partition(inner) if inner else (text, "", "")
    for opening, closing in _PAIRS:
        opened, closed = inner.count(opening), inner.count(closing)
        is_open = opened % 2 == 1 if opening == closing else opened > closed
        is_closed = is_open if opening == closing else closed > opened
        whole = opening in before and closing in after and opened + closed > 0
        if whole or (is_closed and opening in before):
            inner = opening + inner
        if whole or (is_open and closing in after):
            inner += closing
    return inner


def _without_edges(word: str) -> str:
    """A word without the quotes, stops and brackets around it."""
    before = None
    while word != before:
        before = word
        word = word.strip(QUOTES).rstrip(STOPS)
        inner = word[1:-1]
        if word[:1] + word[-1:] in _BRACKETS and inner and not {word[0], word[-1]} & set(inner):
            word = inner
        if any(map(str.isalnum, word)):
            word = word.strip("*")
            for pair in _BRACKETS[:3]:
                if pair[0] in word and pair[1] not in word:
                    word = word.lstrip(pair[0])
                elif pair[1] in word and pair[0] not in word:
                    word = word.rstrip(pair[1])
    if any(map(str.isalnum, word)) or len(word) > 1 or word in "%&/" + MONEY:
        return word
    return word if unicodedata.category(word) in ("Sm", "So") else ""  # "<", "≠", "→", "❌"


def _amounts(text: str, language: Language) -> Iterator[tuple[list[str], int, int]]:
    """The amounts and dates of a text that stand by themselves, each as tokens, with their places."""
    at = 0
    for line in text.split("\n"):
        for quantity in find_quantities(line) if len(line) <= _LONGEST_LINE else ():
            start, end = at + quantity.start, at + quantity.end
            while start < end and text[start].isspace():
                start += 1
            alone = (start == 0 or text[start - 1].isspace() or text[start - 1] in _BEFORE_AMOUNT) and (
                end == len(text) or text[end].isspace() or text[end] in _AFTER_AMOUNT
            )
            if alone and (tokens := _amount_tokens(quantity, language)):
                yield tokens, start, end
        at += len(line) + 1


def _amount_tokens(quantity: Quantity, language: Language) -> list[str]:
    """A date as its words, an amount as its number in full and its unit; none for what is neither."""
    fullest = quantity.forms[0]
    if _DATE.fullmatch(fullest):
        return fullest.split()
    numbers = [form for form in quantity.forms if _NUMBER.fullmatch(form)]
    if not numbers:
        return [fullest] if " " not in fullest else []
    number = max(numbers, key=lambda form: len(form.lstrip("-").partition(".")[0]))
    if language.code not in _DECIMAL_POINT and _POINTS.fullmatch(numbers[0]):
        number = numbers[0].replace(".", "")
    signs = [sign for form in quantity.forms for sign in form if sign in MONEY or sign == "%"]
    unit = _UNIT.fullmatch(fullest)
    named = unit[1].replace(" ", "_") if unit and unit[1] not in ("thousand", "million", "billion", "trillion") else ""
    return [number, *(UNIT + unit for unit in signs[:1] or [named] if unit)]
