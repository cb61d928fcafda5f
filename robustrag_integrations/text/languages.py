"""Identification of a reply's language, and each language's small words.

Scripts decide where they can; languages that share a script are told apart by their small words, and a reply without
any counts as in no known language. All words are data: `words.txt`, and in `stop_words` a file for each language.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

_HEADING = re.compile(r"\[([a-z_ ]+)\]")


def sections_of(file: Path) -> dict[str, list[str]]:
    """Return the lines under each `[heading]` of a data file, without comments and empty ones."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.fullmatch(line):
            lines = found[heading[1]] = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


WORDS = {name: " ".join(lines).split() for name, lines in sections_of(Path(__file__).with_name("words.txt")).items()}
"""Lists of words, by the headings of `words.txt`."""

ABOUT_THE_TEXT, NEGATIONS, YES, NO = (frozenset(WORDS[name]) for name in ("about the text", "negations", "yes", "no"))
VERDICTS = YES | NO
_STOP_WORDS = Path(__file__).with_name("stop_words")
_RANGES = (
    ("greek", 0x370, 0x3FF), ("cyrillic", 0x400, 0x52F), ("hebrew", 0x590, 0x5FF), ("arabic", 0x600, 0x77F),
    ("devanagari", 0x900, 0x963), ("bengali", 0x980, 0x9FF), ("gujarati", 0xA80, 0xAFF), ("tamil", 0xB80, 0xBFF),
    ("telugu", 0xC00, 0xC7F), ("thai", 0xE00, 0xE7F), ("hangul", 0x1100, 0x11FF), ("kana", 0x3041, 0x30FA),
    ("han", 0x3400, 0x9FFF), ("hangul", 0xAC00, 0xD7A3),
)  # fmt: skip
_OF_SCRIPT = {
    "hebrew": "he", "arabic": "ar", "devanagari": "hi", "thai": "th", "kana": "ja", "han": "zh", "hangul": "ko",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")
_ONE_LETTER = 0.4  # of a word: "e-mail" is no Portuguese
_PROFILES = {name.removeprefix("profile "): words for name, words in WORDS.items() if name.startswith("profile ")}
_SHARES: dict[str, list[tuple[str, float]]] = {}  # what a word counts for each of its languages
for _word in dict.fromkeys(word for words in _PROFILES.values() for word in words):
    _languages = [language for language, words in _PROFILES.items() if _word in words]
    _SHARES[_word] = [(each, (1 if len(_word) > 1 else _ONE_LETTER) / len(_languages)) for each in _languages]
_LETTERS = {
    "de": "äöüß", "fr": "àâçèêëîïôùûœ", "es": "ñ¿¡", "pt": "ãõ", "pl": "ąćęłńóśźż", "tr": "ğışİ", "vi": "ăđơư",
    "sv": "å",
}  # fmt: skip
_VIETNAMESE = re.compile("[\u1ea0-\u1ef9\u0103\u0111\u01a1\u01b0]")


def language_of(text: str) -> str | None:
    """Return the language of a reply's plain lines ("en", "de", "ja", ...), None where its words do not tell."""
    if text.isascii() or not (scripts := scripts_of(text)):
        return _of_latin(text)
    main, size = scripts.most_common(1)[0]
    if scripts["kana"] and scripts["kana"] + scripts["han"] >= size:
        main = "kana"
    if main == "cyrillic":
        return "uk" if any(letter in text for letter in "іїєґ") else "ru"
    return _OF_SCRIPT.get(main) or _of_latin(text)


def scripts_of(text: str) -> Counter[str]:
    """Count a text's characters by script; empty if most of its letters are Latin."""
    counts = Counter(script for character in text if (script := _script(ord(character))))
    latin = sum(character.isascii() and character.isalpha() for character in text)
    return counts if 3 * counts.total() >= latin else Counter()


def _script(code: int) -> str | None:
    if code < _RANGES[0][1]:
        return None
    return next((name for name, first, last in _RANGES if first <= code <= last), None)


def _of_latin(text: str) -> str | None:
    lowered = text.casefold()
    scores: defaultdict[str, float] = defaultdict(float)
    for profile in filter(None, map(_SHARES.get, _WORD.findall(lowered))):
        for language, share in profile:
            scores[language] += share
    if not text.isascii():
        for language, letters in _LETTERS.items():
            scores[language] += 0.5 * any(letter in lowered for letter in letters)
        scores["vi"] += 2 * bool(_VIETNAMESE.search(lowered))
    best = max(scores.values(), default=0.0)
    return next(language for language in _PROFILES if scores[language] == best) if best >= 0.3 else None


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the small words of a language, case-folded; without a list, only those that any text may hold."""
    file = _STOP_WORDS / f"{language}.txt"
    words = file.read_text(encoding="utf-8").splitlines() if language.isalpha() and file.is_file() else ()
    return ABOUT_THE_TEXT.union(words)
