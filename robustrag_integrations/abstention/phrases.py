"""The phrases of abstention: a data file for each language in `words/`, and what all languages share.

A file has sections of regular expressions, whose lines are alternatives; `{name}` stands for those of another section.
They are written case-folded and without Latin accents, and searched for in one clause of a reply:

- `denies`: the clause says that nothing is known or given.
- `of_source`: the same where it speaks of a text (`sources`) or of what was asked for (`asked`): a document that does
  not contain a date says nothing, a drink that does not contain alcohol is an answer.
- `answers`: the clause says something in spite of the words above.
- `aside`, `filler`, `sorry`, `empty`: the clause says nothing of its own; only next to one that denies does it matter.
- `turns`: before these words a new clause begins; `asks`: these begin an indirect question.
- `hints`, `hints_within`: how words begin of which every clause that denies holds one: a reply without any is read no
  further.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from robustrag_integrations.languages import scripts_of, sections_of

_WORDS = Path(__file__).with_name("words")
_NAMED = re.compile(r"\{([a-z_]+)\}")
_NEVER = "(?!)"
_TOP_LEVEL = re.compile(r"\|(?![^()]*\))")  # between alternatives outside brackets
_IN_WORD = r"[\w\u0900-\u0963\u0981-\u0df3]"  # letters, and the vowel signs of India
_UNSPACED = frozenset({"zh", "ja", "th"})

LATIN = (
    "en", "de", "fr", "es", "it", "pt", "pl", "tr", "vi", "nl",
    "sv", "id", "cs", "ro", "fi", "hu", "hr", "ca", "sw", "tl",
)  # fmt: skip
_BY_SCRIPT = {
    "greek": ("el",), "cyrillic": ("ru", "uk", "bg", "sr"), "hebrew": ("he",), "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "mr"), "bengali": ("bn",), "gujarati": ("gu",), "tamil": ("ta",), "telugu": ("te",),
    "han": ("zh", "ja"), "kana": ("ja",), "hangul": ("ko",), "thai": ("th",),
}  # fmt: skip
LANGUAGES = tuple(sorted({*LATIN, *(name for names in _BY_SCRIPT.values() for name in names)}))


class Language:
    """One file's sections as patterns, each compiled on first use, which for most replies never comes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sections = sections_of(_WORDS / f"{name}.txt")
        self._compiled: dict[str, re.Pattern[str]] = {}

    def written(self, section: str) -> str:
        """Return a section as one pattern; a missing section matches nowhere."""
        lines = self.sections.get(section)
        return _NAMED.sub(lambda named: self.written(named[1]), "|".join(lines)) if lines else _NEVER

    def finds(self, section: str, clause: str) -> bool:
        """True if a clause matches one of the patterns of a section."""
        pattern = self._compiled.get(section)
        if pattern is None:
            written = unicodedata.normalize("NFC", self.written(section))  # as the letters of replies are
            if section == "asks" and self.name not in _UNSPACED:
                written = f"(?:{written})(?!{_IN_WORD})"
            pattern = self._compiled[section] = re.compile(_FRAMES.get(section, "{}").format(written))
        return pattern.search(clause) is not None


_FRAMES = {
    "asks": "^(?:{})",
    "filler": "^(?:{})",
    "sorry": "^(?:(?:i am|i'm|we are|we're|i) )?(?:so |very |really |but )?(?:{})",
}


@cache
def language(name: str) -> Language:
    """Return the words of a language, or those that are `shared`."""
    return Language(name)


@cache
def empty_words() -> frozenset[str]:
    """Return the words that add nothing to a denial: names for the text and the answer, and small words."""
    return frozenset(" ".join(language("shared").sections["empty"]).split())


@cache
def hints_of(*names: str) -> re.Pattern[str]:
    """Return a pattern found in every denial in these languages; it matches anything if one of them has no hints."""
    if any("hints" not in language(name).sections for name in names):
        return re.compile("")
    words = _TOP_LEVEL.split("|".join(language(name).written("hints") for name in names))
    groups = groupby(sorted(set(words)), key=itemgetter(0))  # by first letters, at most places few are left to try
    beginnings = "|".join(f"{letter}(?:{'|'.join(word[1:] for word in group)})" for letter, group in groups)
    within = [line for name in names for line in language(name).sections.get("hints_within", ())]
    return re.compile("|".join([rf"\b(?:{beginnings})", *within]))


@lru_cache(maxsize=64)
def turns_of(languages: tuple[Language, ...]) -> re.Pattern[str]:
    """Return a pattern of the words before which a new clause begins."""
    found = []
    for each in languages:
        turns = each.written("turns")
        spaced = each.name not in _UNSPACED and each.name != "ko"
        found.append(rf"(?<!{_IN_WORD})(?:{turns})(?:(?<= )|(?!{_IN_WORD}))" if spaced else turns)
    return re.compile(unicodedata.normalize("NFC", "|".join(found) or _NEVER))


def languages_of(text: str) -> tuple[str, ...]:
    """Return the languages that a text may be in: by script; those in Latin script if no other one stands out."""
    if text.isascii():
        return LATIN
    counts = scripts_of(text)
    if not counts:
        return LATIN
    return _BY_SCRIPT["kana" if counts["kana"] else counts.most_common(1)[0][0]]
