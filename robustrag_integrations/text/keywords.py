"""Keywords of a reply, for keyword aggregation: an extractor is any function from one reply to a set of strings.

A reply becomes a few lines of plain, bounded text first: control characters, markup and words of 50 kB that a passage
smuggles into it are removed. Every step takes time linear in the length of the text.

`WordExtractor`, the default, gives the paper's keywords without spaCy:

1. content words: those that are no small words (stop words) of its language; a "not", a "yes" and a "no" count;
2. keyphrases: content words in a row with no small word and no punctuation between them;
3. what stands between two punctuation marks, if it is short, without small words at its ends: "the island of Sorra".

Words are compared without case. In scripts without spaces all that stands between punctuation counts whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from functools import cache
from itertools import groupby
from typing import Protocol

from robustrag_integrations._util.normalise import MONEY, compatible
from robustrag_integrations.text.answer_text import LEAD, answer_text, unboxed
from robustrag_integrations.text.languages import NEGATIONS, VERDICTS, language_of, stop_words

MAX_CHARACTERS = 20_000
MAX_LINES = 400
_LONGEST_REPLY = 100_000  # characters of a reply, reasoning included
MAX_WORD_CHARACTERS = 100
MAX_KEYWORD_CHARACTERS = 200

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛ʼ´`′ʻ＇", "'"),
        **dict.fromkeys("“”„‟«»″＂「」『』《》", '"'),
        **dict.fromkeys("‐‑‒–−﹣－", "-"),
        **dict.fromkeys("—―", " - "),
        **dict.fromkeys("™®©", ""),
        "…": " ... ",
        "٫": ".",  # of Arabic numbers
        "٬": ",",
        "⁄": "/",
        "∕": "/",
        "♭": "b",  # of keys in music: "B♭" is not "B"
        "♯": "#",
    }
)
_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{0,500}\)")
_CITATION = re.compile(r"\[\d{1,3}\]")
_EMPHASIS = re.compile(r"\*{2,}|`+|~~|\*(?=[^\W\d])|(?<=[^\W\d])\*|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_LINE_LEAD = re.compile(r"^(?:#{1,6} |[-*•+] |> )+")
_LIST_NUMBER = re.compile(r"^\(?\d{1,2}[.)] (?=[^\W\d])")
_SUPERSCRIPT = re.compile(r"(?<=\d)[⁺⁻]?[²³¹⁰⁴-⁹]+")
_VULGAR = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_LONG_WORD = re.compile(rf"(\S{{{MAX_WORD_CHARACTERS}}})\S+")
_LOOSE_APOSTROPHE = re.compile(r"(?<![^\W_])'|'(?![^\W_])")
_PLAIN_WORDS = re.compile("[a-z0-9]+(?: [a-z0-9]+)*")
_NEGATIVE = re.compile(rf"-[{MONEY}]?\d")
_GRADE = re.compile(r"(?:^| )[^\W\d_]{1,2}-$")  # "A-", "AB-"
_INSIDE = frozenset("'-./&+#%:@^_=°")  # punctuation a keyword may hold between its words and at its ends
_NEVER = frozenset("<>|~`◁▷")


def plain_characters(text: str) -> str:
    """Return the text in NFKC with plain quotes, dashes, digits and spaces, without invisible characters."""
    if text.isascii() and text.isprintable():
        return text.translate(_PLAIN)
    text = _VULGAR.sub(" ", _SUPERSCRIPT.sub(lambda match: "^" + match.group(), text.translate(_PLAIN)))
    return "".join(map(_plain_character, compatible(text).translate(_PLAIN)))


def _plain_character(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if character.isalnum() or character == " ":
        return character
    if character in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
        return "\n"
    category = unicodedata.category(character)
    if category in ("Cc", "Zs"):
        return " "
    return "" if category in ("Cf", "Co", "Cs", "Cn") else character


def lines_of(reply: str) -> list[str]:
    """Return the lines of a reply's answer that count: without reasoning, JSON and LaTeX."""
    return plain_lines(unboxed(answer_text(reply[:_LONGEST_REPLY])))


def plain_lines(response: str) -> list[str]:
    """Return the lines of a response that count, without markup and without a lead such as "The answer is".

    A response of several words that are all in capitals is lower-cased, since a tagger takes capitals for names.
    """
    text = response[:MAX_CHARACTERS]
    text = plain_characters(text)[:MAX_CHARACTERS]
    if "[" in text:
        text = _CITATION.sub("", _LINK.sub(r"\1", text))
    if "*" in text or "`" in text or "~" in text or "_" in text:
        text = _EMPHASIS.sub("", text)
    lines = [_LINE_LEAD.sub("", " ".join(line.split())) for line in text.split("\n")]
    lines = [line for line in lines if line]
    if len(lines) > 1:
        lines = [_LIST_NUMBER.sub("", line) for line in lines]
    if not lines:
        return []
    lines[0] = LEAD.sub("", lines[0], count=1) or lines[0]
    lines = [*lines[: MAX_LINES - 1], *filter(None, [" ".join(lines[MAX_LINES - 1 :])])]
    lines = [_LONG_WORD.sub(r"\1", line) if len(line) > MAX_WORD_CHARACTERS else line for line in lines]
    if text.isupper() and len(text.split()) > 3:
        lines = [line.lower() for line in lines]
    return lines


def as_keyword(text: str) -> str:
    """Return the text as it is counted: case-folded, single-spaced, free of commas, quotes and brackets.

    Empty if nothing is left. Never longer than `MAX_KEYWORD_CHARACTERS`.
    """
    folded = text.casefold()
    if _PLAIN_WORDS.fullmatch(folded) and len(folded) <= MAX_KEYWORD_CHARACTERS:
        return folded
    folded = _LOOSE_APOSTROPHE.sub(" ", compatible(folded))
    spaced = " ".join("".join(c if _may_stand_in_keyword(c) else " " for c in folded).split())
    return _bare_ends(spaced[:MAX_KEYWORD_CHARACTERS])


def _may_stand_in_keyword(character: str) -> bool:
    if character.isalnum() or character in _INSIDE:
        return True
    return character not in _NEVER and unicodedata.category(character)[0] in "MS"


def _bare_ends(text: str) -> str:
    bare = text.rstrip(" '-./&:@^_=").lstrip(" './&:@^_=#")
    while bare.startswith("-") and not _NEGATIVE.match(bare):
        bare = bare[1:].lstrip(" '-./&:@^_=")
    return bare + "-" if _GRADE.search(text) else bare


MAX_PIECE_WORDS = 12
_PUNCTUATION = re.compile(r"[.,;:!?]+(?=\s|\Z)|[()\[\]{}\"。、，；：！？।؟،؛]+|\s[-–—]\s")


class KeywordExtractor(Protocol):
    """Any function from the text of one response to its keywords.

    The certificate rests on two properties that no type can state:

    - deterministic: the same text gives the same keywords, whatever was extracted before, in whichever order or thread;
    - one response only: nothing of another response, of the query or of a passage enters.

    An extractor that is wrong about words costs answers, never soundness. Keywords are joined by ", " in the second
    prompt, so a keyword should hold neither a comma nor a line break.
    """

    def __call__(self, text: str, /) -> Collection[str] | None:
        """Return the keywords and keyphrases of one response; None if it abstains."""
        ...


def extractor_fingerprint(extractor: Callable[[str], object]) -> str:
    """Return a line that identifies an extractor: its `fingerprint`, else `module.qualname (unhashed)`."""
    own = getattr(extractor, "fingerprint", None)
    if isinstance(own, str):
        return own
    named = extractor if hasattr(extractor, "__qualname__") else type(extractor)
    module = getattr(named, "__module__", None) or "builtins"  # a method such as `str.split` has none
    return f"{module}.{named.__qualname__} (unhashed)"


class WordExtractor:
    """The content words and keyphrases of one reply, in any language with a list of small words."""

    fingerprint = "words/1"

    def __call__(self, text: str, /) -> frozenset[str]:
        """The keywords of one reply; none for a reply without a letter, digit or symbol."""
        lines = lines_of(text)
        small = _small_words(language_of("\n".join(lines)) or "en")
        found: set[str] = set()
        for line in lines:
            for piece in _PUNCTUATION.split(line):
                words = piece.split()
                telling = [place for place, word in enumerate(words) if as_keyword(word) not in small]
                first, last = (telling[0], telling[-1]) if telling else (0, len(words) - 1)
                if last - first < MAX_PIECE_WORDS:
                    found.add(" ".join(words[first : last + 1]))
                found.update(words[place] for place in telling)
                for _, row in groupby(enumerate(telling), key=lambda item: item[1] - item[0]):
                    found.add(" ".join(words[place] for _, place in row))
        return frozenset(map(as_keyword, found)) - {""}

    def __repr__(self) -> str:
        return "WordExtractor()"


@cache
def _small_words(language: str) -> frozenset[str]:
    return stop_words(language) - NEGATIONS - VERDICTS
