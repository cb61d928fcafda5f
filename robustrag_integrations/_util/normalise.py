"""Normalises text to comparable words: the definition of "the same words" for metrics, votes and reports."""

from __future__ import annotations

import re
import unicodedata

_MAX_MARKS = 3  # combining marks in a row; Vietnamese needs two
_SPACED = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})  # for ASCII
MONEY = "$€£¥₹₽₩₺₫₦₪฿"
_MATH = re.compile(r"\$([^$\n]{1,80})\$(?!\d)")  # of LaTeX, no amount of money
_SPACE_AT_A_SIGN = re.compile(
    rf"(?<=\d)[ \u00a0\u202f](?=[%‰{MONEY}](?!\d))|(?<=[<>≤≥±{MONEY}])[ \u00a0\u202f](?=\.?\d)"
)
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d{1,30}),(?=\d{1,2}(?![\d.,]))")  # not a thousands separator
_SIGN = re.compile(
    rf"(?<![^\W_])-(?=[{MONEY}]?\.?\d)"  # -5
    r"|(?:(?<=\b[^\W\d_])|(?<=\b[^\W\d_]{2}))-(?![\w-])"  # A-, AB-
    r"|(?<=\w)\++|(?<!\+)\++(?=\d)|(?<=[^\W\d_])#(?!\w)"  # C++, O+, UTC+5, C#
    rf"|[{MONEY}](?=\.?\d)|(?<=\d)[%‰{MONEY}]|[<>≤≥±](?=[-{MONEY}]?\.?\d)"
    r"|(?<=\d)[./\u2044](?=\d)"  # 1.5, 1/2
)


def compatible(text: str) -> str:
    """Return the text in NFKC, with few marks in a row, and the Thai sara am as everybody types it."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", few_marks(text)).replace("\u0e4d\u0e32", "\u0e33")


def few_marks(text: str) -> str:
    """Drop combining marks beyond a few in a row: sorting them, as NFKC does, takes quadratic time."""
    if text.isascii():
        return text
    kept, run = [], 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def plain_words(text: str) -> str:
    """Return the words of a text in NFKC and case-folded, with single spaces and without punctuation.

    Letters, digits and the marks that belong to letters stay. Takes time linear in the length of the text.
    """
    if text.isascii():
        folded = text.lower()
        return folded if folded.isalnum() else " ".join(folded.translate(_SPACED).split())
    folded = compatible(text).casefold()
    return " ".join("".join(c if _belongs_to_a_word(c) else " " for c in folded).split())


def signed_words(text: str) -> str:
    """Return `plain_words` with the signs that change a word's meaning: "-5", "$5", "5%", "<5", "1.5", "C++", "A-".

    A sign is written at its word, whatever spaces stood between them. A comma between digits that separates no
    thousands is a point: "5,5" is "5.5". Takes time linear in the length of the text.
    """
    folded = compatible(text).casefold().replace("\u2212", "-")
    folded = _SPACE_AT_A_SIGN.sub("", _MATH.sub(r"\1", folded))
    folded = _DECIMAL_COMMA.sub(r"\1.", folded) if "," in folded else folded
    signs = {place for match in _SIGN.finditer(folded) for place in range(*match.span())}
    if not signs:
        return plain_words(folded)
    kept = (c if place in signs or _belongs_to_a_word(c) else " " for place, c in enumerate(folded))
    return " ".join("".join(kept).split())


def opposed_words(text: str) -> str:
    """Return `plain_words` with the signs that reverse a meaning: the minus of a number, and the sign of a grade."""
    return " ".join(filter(None, map(_opposed, signed_words(text).split())))


def _opposed(word: str) -> str:
    plain = plain_words(word)
    if not plain:
        return ""
    ending = word[-1] if word[-1] in "+-" and not word[-2].isdigit() else ""
    return ("-" if word[0] == "-" else "") + plain + ending


def _belongs_to_a_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character) in {"Mn", "Mc"}
