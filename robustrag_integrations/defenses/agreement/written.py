"""How a reply writes what it says: a keyword as it stands there, with its capitals, points and endings.

A hostile reply finds its own forms alone. A form consists of letters, digits and the signs of the keyword, with single
signs or a space between its words: it ends no list, no line and no quotation, and acts on no chat template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from robustrag_integrations.keywords.normalise import (
    MAX_CHARACTERS,
    MAX_KEYWORD_CHARACTERS,
    PLAIN_WORDS,
    as_keyword,
    without_accents,
)
from robustrag_integrations.keywords.quantities import find_quantities
from robustrag_integrations.lazily import kept_property
from robustrag_integrations.normalise import compatible, plain_words

_WORD = re.compile(r"(?:[^\W_][\u0300-\u036f]{0,3})+")
_PLAIN_WORD = re.compile("[a-z0-9]+")
_GAP = re.compile(r"[ \u00a0\u202f]{1,2}|[-\u2010-\u2013'\u2019./&+_·]|[.] | [-\u2010-\u2013&/+] |,(?=\d)|")
_SENTENCE_END = re.compile(r"(?:[.!?:;\n\u3002\uff01\uff1f]|^)[\s\"'\u201c\u2018\u201e\u00ab(\[{*_#>-]*\Z")
_THOUSANDS = re.compile(r"(?<=\d)[,.'\u2019 \u00a0\u202f](?=\d{3}(?!\d))")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=\w)|(?<=\w)-(?=[^\W\d_])")
_LEAD = 12  # characters before a word that are looked at for the end of a sentence
_MOST = 50  # places where a keyword may begin
_SEARCHED = 1_000  # characters of a reply; in a longer one words are compared, and not all of it is searched each time
_LONGEST_ENDING = 4
_SHORTEST_STEM = 4


class _Word(NamedTuple):
    """A word of the text: folded, and where it stands."""

    folded: str
    start: int
    end: int


_Places: TypeAlias = tuple[list[int], dict[str, list[int]]]  # how long words are, and where each of them stands


class WrittenReply:
    """One reply, to be asked for the forms of keywords. Takes time linear in its length.

    Args:
        text: the reply; its first `MAX_CHARACTERS` characters count, as they do for keywords.
    """

    def __init__(self, text: str) -> None:
        self._text = text[:MAX_CHARACTERS]
        self._is_ascii = self._text.isascii()
        self._is_searched = self._is_ascii and len(self._text) <= _SEARCHED
        self._lowered = self._text.lower() if self._is_ascii else ""

    def form_of(self, keyword: str) -> str | None:
        """The keyword as the reply writes it first; None where it does not stand in it, or too oddly to be shown.

        Words are compared in NFKC, case-folded, and then without accents. If the keyword is not there to the letter,
        its words may have endings ("boots" for "boot"). A place within a sentence comes before the start of one, whose
        capital means nothing. An amount may be written otherwise ("5030 metres" for "5030 m").
        """
        if len(keyword) > MAX_KEYWORD_CHARACTERS:
            return None
        if (place := self._only_place(keyword)) is not None:
            return self._text[place : place + len(keyword)]
        words = plain_words(keyword).split()
        if not words:
            return None
        letters = "".join(words)
        places = list(self._exact(letters, self._words, self._starts))
        if not places and not self._is_ascii:
            places = list(self._exact(letters, self._unaccented, self._unaccented_starts))
        places = places or list(self._with_endings(words))
        forms = [(at, form) for at in places if (form := self._shown(keyword, *at)) is not None]
        if len(forms) == 1:
            return forms[0][1]
        if forms:
            return min(forms, key=lambda found: (self._starts_sentence(found[0][0]), len(found[1]), found[0]))[1]
        return self._amounts.get(keyword) if any(map(str.isdigit, keyword)) else None

    def _only_place(self, keyword: str) -> int | None:
        """Where a keyword of plain words begins that stands here to the letter, if its letters are nowhere else."""
        letters = _letters_of(keyword) if self._is_searched else None
        if letters is None:
            return None
        start = self._lowered.find(keyword)
        if start < 0 or self._run_together.find(letters) != self._run_together.rfind(letters):
            return None
        end = start + len(keyword)
        within = self._lowered[max(0, start - 1) : start].isalnum() or self._lowered[end : end + 1].isalnum()
        return None if within else start

    @kept_property
    def _run_together(self) -> str:
        """The words without anything between them."""
        return "".join(_PLAIN_WORD.findall(self._lowered))

    @kept_property
    def _words(self) -> list[_Word]:
        if self._is_ascii:
            return [_Word(m[0], *m.span()) for m in _PLAIN_WORD.finditer(self._lowered)]
        return [_Word(_folded(m[0]), *m.span()) for m in _WORD.finditer(self._text)]

    @kept_property
    def _starts(self) -> _Places:
        return _places(self._words)

    @kept_property
    def _unaccented(self) -> list[_Word]:
        return [_Word(without_accents(word.folded), word.start, word.end) for word in self._words]

    @kept_property
    def _unaccented_starts(self) -> _Places:
        return _places(self._unaccented)

    def _exact(self, letters: str, words: Sequence[_Word], places: _Places) -> Iterator[tuple[int, int]]:
        """Where words of the text in a row have just these letters."""
        tried, (lengths, starts) = 0, places
        for length in lengths:
            if length > len(letters):
                return
            for first in starts.get(letters[:length], ()):
                tried += 1
                if tried > _MOST:
                    return
                last, rest = first, letters[length:]
                while rest and last + 1 < len(words) and rest.startswith(words[last + 1].folded):
                    last += 1
                    rest = rest[len(words[last].folded) :]
                if not rest:
                    yield words[first].start, words[last].end

    def _with_endings(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Where these words stand in a row, some of them with an ending."""
        tried = 0
        for first, word in enumerate(self._words):
            if not _is_ending(words[0], word.folded):
                continue
            tried += 1
            following = self._words[first : first + len(words)]
            if len(following) == len(words) and all(
                _is_ending(w, f.folded) for w, f in zip(words, following, strict=True)
            ):
                yield word.start, following[-1].end
            if tried == _MOST:
                return

    def _shown(self, keyword: str, start: int, end: int) -> str | None:
        """The text between two places with the signs at the keyword's ends; None where it is not fit to be shown."""
        inside = self._text[start:end]
        if inside.isascii() and _is_plain_run(inside) and keyword == inside.lower():
            return inside
        lead, trail = _signs_at_ends(keyword)
        start, end = start - len(lead), end + len(trail)
        if start < 0 or not (self._text.startswith(lead, start) and self._text.endswith(trail, 0, end)):
            return None
        inside = self._text[start:end]
        between = inside[len(lead) : len(inside) - len(trail)]
        if ", " in between:  # the gap that most words are apart by
            return None
        gaps = _WORD.split(between)[1:-1]
        if len(inside) > MAX_KEYWORD_CHARACTERS or not all(map(_GAP.fullmatch, gaps)):
            return None
        if any(map(str.isdigit, keyword)) and not _same_numbers(inside, keyword):
            return None
        return " ".join(inside.split())

    def _starts_sentence(self, start: int) -> bool:
        return _SENTENCE_END.search(self._text[max(0, start - _LEAD) : start]) is not None

    @kept_property
    def _amounts(self) -> dict[str, str]:
        """The comparable forms of the amounts and dates in the text, each as it is first written."""
        found: dict[str, str] = {}
        for line in self._text.splitlines():
            for amount in find_quantities(line):
                written = line[amount.start : amount.end].rstrip(" .,")
                if _is_plain(written):
                    for form in amount.forms:
                        found.setdefault(as_keyword(form), written)
        return found


def is_as_counted(keyword: str) -> bool:
    """Whether a keyword is what it is counted as; one of a user's extractor may not be."""
    if len(keyword) <= MAX_KEYWORD_CHARACTERS and _letters_of(keyword) is not None:
        return True
    return as_keyword(keyword) == keyword


@lru_cache(maxsize=512)  # several groups say the same keywords
def _letters_of(keyword: str) -> str | None:
    """The letters and digits of a keyword of plain lower-case words; None for any other one."""
    return keyword.replace(" ", "") if PLAIN_WORDS.fullmatch(keyword) else None


def _is_plain_run(text: str) -> bool:
    """Whether it is letters and digits with single spaces between them, and nothing else."""
    return len(text) <= MAX_KEYWORD_CHARACTERS and text.replace(" ", "").isalnum() and " ".join(text.split()) == text


def _folded(word: str) -> str:
    return compatible(word).casefold()


def _places(words: Sequence[_Word]) -> _Places:
    found: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        found.setdefault(word.folded, []).append(place)
    return sorted({len(word) for word in found if word}), found


def _is_ending(stem: str, word: str) -> bool:
    """Whether a word is another one with an ending or none."""
    if not word.startswith(stem) or len(word) - len(stem) > _LONGEST_ENDING:
        return False
    return word in (stem, stem + "s") or (len(stem) >= _SHORTEST_STEM and word.isalpha())


def _signs_at_ends(keyword: str) -> tuple[str, str]:
    if keyword[0].isalnum() and keyword[-1].isalnum():
        return "", ""
    inside = [place for place, character in enumerate(keyword) if character.isalnum()]
    return keyword[: inside[0]], keyword[inside[-1] + 1 :]


def _same_numbers(written: str, keyword: str) -> bool:
    """Whether only capitals, hyphens at letters and thousands separators differ: 3.5 is not 35."""
    ways = (as_keyword(written), as_keyword(_THOUSANDS.sub("", written)))
    return keyword in ways or _HYPHEN.sub(" ", keyword) in (_HYPHEN.sub(" ", way) for way in ways)


def _is_plain(written: str) -> bool:
    """Whether an amount as written may stand in a list."""
    return len(written) <= MAX_KEYWORD_CHARACTERS and written.isprintable() and ", " not in written
