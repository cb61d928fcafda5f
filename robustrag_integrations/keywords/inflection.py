"""A word without its inflection, where a rule of thumb can tell: endings of nouns and names, by language.

Far less than a stemmer, on purpose: what is left is to be a form that people write, since it is shown to the model. It
stands beside the word as it was written, never in place of it.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import re

_LEAST = 4  # letters that stay

_ENDINGS: dict[str, tuple[str, ...]] = {
    "de": ("innen", "es", "en", "er", "s", "e", "n"),
    "fr": ("aux", "es", "s", "x"),
    "es": ("ces", "es", "s"),
    "pt": ("ões", "es", "s"),
    "pl": ("ami", "ach", "owi", "ów", "om", "iem", "em", "ie", "ą", "ę", "y", "i", "u", "a", "e", "o"),
    "ru": ("иями", "ями", "ами", "ого", "его", "ому", "ему", "ыми", "ими", "ой", "ей", "ом", "ем", "ов", "ев", "ам", "ям", "ах", "ях", "ый", "ий", "ая", "ое", "ые", "ую", "ым", "им", "а", "я", "у", "ю", "ы", "и", "е", "о", "ь"),
    "uk": ("ями", "ами", "ого", "ому", "ої", "ою", "ом", "ем", "ів", "ам", "ах", "а", "я", "у", "ю", "и", "і", "е", "о", "ь"),
    "nl": ("en", "s"),
    "sv": ("arna", "erna", "en", "et", "ar", "er", "s"),
}  # fmt: skip
_ITALIAN = re.compile(r"(?:i|e)\Z")
_TURKISH = re.compile(
    r"(?:(?:n[ıiuü]n|[ıiuü]n|d[ae]n|t[ae]n|d[ae]|t[ae]|yla|yle|la|le|y[ae]|y[ıiuü]|d[ıiuü]r|t[ıiuü]r|l[ae]r[ıi]?|[ae]|[ıiuü]))\Z"
)
_HEBREW_CLITIC = re.compile(r"\A(?:ש?[ובלמהכ]|ש)(?=\w{3})")
_ARABIC_CLITIC = re.compile(r"\A(?:و?(?:بال|كال|فال|ال|لل)|[بلك](?=\w{3}))(?=\w{2})")
_HINDI = re.compile("(?:ों|ें|ियों|ियाँ)\\Z")
_UMLAUTS = str.maketrans("äöü", "aou")


def base_forms(word: str, language: str) -> set[str]:
    """Return a case-folded word without what is likely an ending or a clitic; empty where nothing comes off."""
    if language in _ENDINGS:
        return _without(word, language)
    if language == "it" and len(word) > _LEAST:
        return {_ITALIAN.sub("a" if word.endswith("e") else "o", word)} if _ITALIAN.search(word) else set()
    if language == "tr":
        return _turkish(word)
    if language == "he":
        return {_HEBREW_CLITIC.sub("", word)}
    if language == "ar":
        return {_ARABIC_CLITIC.sub("", word)}
    if language == "hi" and len(word) > _LEAST:
        return {_HINDI.sub("े", word)} if _HINDI.search(word) else set()
    return set()


def _without(word: str, language: str) -> set[str]:
    for ending in _ENDINGS[language]:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST:
            stem = word[: -len(ending)]
            if language == "de":
                return {stem, stem.translate(_UMLAUTS)}
            return {stem}
    return set()


def _turkish(word: str) -> set[str]:
    if "'" in word:
        return {word.partition("'")[0]}
    found: set[str] = set()
    stem = _TURKISH.sub("", word)
    if stem != word and len(stem) > _LEAST:
        found.add(stem.removesuffix("ğ") + "k" if stem.endswith("ğ") else stem)
    return found
