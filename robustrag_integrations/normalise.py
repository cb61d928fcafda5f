"""Text as words that can be compared: what metrics, votes and reports mean by "the same words"."""

from __future__ import annotations

import unicodedata

_MAX_MARKS = 3  # combining marks in a row; Vietnamese needs two
_SPACED = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})  # for ASCII


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
    folded = unicodedata.normalize("NFKC", few_marks(text)).casefold()
    return " ".join("".join(c if _belongs_to_a_word(c) else " " for c in folded).split())


def _belongs_to_a_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character) in {"Mn", "Mc"}
