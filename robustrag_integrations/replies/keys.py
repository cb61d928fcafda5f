"""A reply's whole answer, and the key under which it is counted.

A vote is a whole answer. Nothing is cut out of a reply, so that no "not", no unit and no surname is lost. A key folds
what surely means nothing: typography, case in words, a full stop, how a date is written. **Two meanings never share a
key**; two wordings of one meaning may have two keys, which costs that answer votes. So signs, units, digits and short
words stay as they are. Code keeps every space and line, and so does a reply with an indented line.

Every function is one of a single reply, linear in its length.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import Literal

from robustrag_integrations._util.normalise import few_marks
from robustrag_integrations.text.answer_text import LEAD, answer_text, unboxed
from robustrag_integrations.text.languages import NO, VERDICTS, WORDS, YES

_CODE_ALONE = re.compile(r"```[\w+-]*[ \t]*\n(?P<block>.*?)\n?```|`(?P<span>[^`]+)`\.?", re.S)
_INDENTED = re.compile(r"\n[ \t]+\S")
_PAIRS = [(mark, mark) for mark in ("**", '"', "'")] + [
    (pair[0], pair[1]) for pair in ("“”", "‘’", "‚‘", "„“", "„”", "«»", "»«", "「」", "『』")
]
_ARTICLES = frozenset({"a", "an", "the", "An", "The"})  # "A" is a letter, a grade, a blood source
_LAST = re.compile(r"(?<=[^\W_])[.,;。，、]+\Z")
_EXCLAIMED = re.compile(r"[!！]+\Z")
_FULL_WIDTH = str.maketrans(
    {
        code: code - 0xFEE0
        for codes in (range(0xFF10, 0xFF1A), range(0xFF21, 0xFF3B), range(0xFF41, 0xFF5B))
        for code in codes
    }
)
_APOSTROPHE = {0x2019: "'"}  # not U+2018, which Arabic names hold where others hold U+2019
_HYPHENS = re.compile(
    r"(?<=[^\W_])[\u2010\u2011](?=[^\W_])|(?<=\d)[\u2012\u2013](?=\d)|(?<![^\s(<>=≤≥~≈±])\u2212(?=[$€£¥]?[.,]?\d)"
)
_YES, _NO = YES.union(WORDS["yes elsewhere"]), NO.union(WORDS["no elsewhere"])
_WORDS, _FOLLOWING = (
    "|".join(map(re.escape, sorted(words, key=len, reverse=True))) for words in (_YES | _NO, WORDS["verdict goes on"])
)
_VERDICT = re.compile(
    rf"\*\*(?P<bold>{_WORDS})[.,!:]?\*\*|(?P<word>{_WORDS})(?![\w'’])"
    r"(?:\s*(?:\Z|[,;!。，、！；،؛。।(—–]|\.(?!\s*\d)|(?<!예)(?<!ano):\s+(?!\d)|-\s)|[ \t]*\n"
    rf"|\s+(?:{_FOLLOWING})(?![\w-]))",
    re.I,
)
_TELEPHONE = re.compile(r"(?!0\d*-0\d*\Z)(?=\(?[+0])\(?\+?(?:[ ()-]{0,2}\d){8,15}")  # not the range 01067-01099
_AT_A_SIGN = re.compile(r"(?<=\d) (?=°|[%‰](?! ?(?:\d|\w\b|\()))")  # 5 °C, 5 % of all; not 5 % 3
_CODE = re.compile(r"(?:\A|\s)-{1,2}\w|[_/\\=|<>{}\[\]$#@~^`*]|\w\(")  # case means something there
_MOST_WRAPPERS = 10  # around one answer: "**The answer is "Oslo"**"
_SHORTEST_FOLDED = 4  # letters; of shorter words case may be all: mW and MW, US and us
# One date in whatever form it is written: `21 November 2026`, `November 21, 2026`, `2026-11-21`, `2026年11月21日`.
_MONTHS = {name: place % 12 + 1 for place, name in enumerate(WORDS["months"])}
_MONTH = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|º|\.)?"
_YEAR = r"(?P<year>\d{4})"
_DATES = [
    re.compile(form, re.I)
    for form in (
        r"(?P<month>\d{1,2})([./-])(?P<day>\d{1,2})\2(?P<year>\d{4})",
        r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})",
        rf"(?:le |el |il |den )?{_DAY} (?:of |de )?{_MONTH}(?:,?(?: de| del)? {_YEAR}(?: года| г\.?| р\.?| r\.?)?)?",
        rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
        r"(?:(?P<year>\d{4}) ?[年년] ?)?(?P<month>\d{1,2}) ?[月월] ?(?P<day>\d{1,2}) ?[日일号]",
    )
]
_LONGEST_DATE = 40  # characters
_LEAP_YEAR = 2000
_MONTHS_OF_A_YEAR = 12
MOST_ITEMS = 200  # of one reply
LONGEST_ITEM = 500  # characters
_ITEM_MARK = re.compile(r"\s*(?:[-*•+–‣▪]|\(?(\d{1,3})[.)])\s+(?=\S)")
_WITHIN_LINE = re.compile(r"(?:(?<=\s)|^)\(?(\d{1,3})[.)]\s+(?=\S)")

Items = tuple[tuple[str, str], ...]  # the items of one reply: each key with the wording of it

_JOINERS = "\u200c\u200d"  # of letters and of signs, which they change


def whole_answer(reply: str) -> str:
    """Return a reply without its wrapping; code keeps its backticks, and its lines their indentation."""
    text = _stripped(unboxed(answer_text(_visible(reply))))
    for _ in range(_MOST_WRAPPERS):
        before = text
        for opening, closing in _PAIRS:
            quoted = text.removesuffix(".")  # 'The answer is "Oslo FC".'
            inner = quoted[len(opening) : len(quoted) - len(closing)]
            if quoted.startswith(opening) and quoted.endswith(closing) and inner and closing not in inner:
                text = _stripped(inner)
        text = _stripped(LEAD.sub("", text, count=1))
        if text == before:
            break
    return text


def key_of(answer: str) -> str | None:
    """Return the key of a whole answer: what it is compared by; None if nothing is left of it.

    NFC, single spaces; off the start nothing but an article, at the end only punctuation after a letter or digit. Case
    is folded in words of four letters or more that hold no inner capital, in the first letter of a first word, and in
    yes and no, in other languages but for words in capitals (OUI is an identifier). Typography is folded: U+2019, a
    minus at a number's start, a dash between digits, hyphens that do not break, full-width letters and digits, an
    exclamation mark behind a verdict or behind words; a space before ° and %. A date is written as `2026-11-21`, a
    number of eight digits or more that begins like a telephone's, with 0 or +, without what parts them. Nothing of this
    is done to code: between backticks, indented, or in lines that hold its signs. The key of a key is that key.
    """
    answer = unicodedata.normalize("NFC", few_marks(answer))
    if alone := _CODE_ALONE.fullmatch(answer.strip()):
        code = alone["block"] if alone["span"] is None else alone["span"]
        if not code.strip():
            return None
        return code if "`" not in code and _key(code) == code else f"```\n{code}\n```"
    return _key(answer)


def _key(answer: str) -> str | None:
    answer = _stripped(answer)
    if "`" in answer or _INDENTED.search(answer) or ("\n" in answer and _CODE.search(answer)):
        return answer or None
    first, _, rest = answer.partition("\n")
    if rest and (said := _VERDICT.match(answer)) and said["word"] == first.rstrip():
        answer = f"{said['word']}, {rest}"  # a verdict has a line of its own
    text = _AT_A_SIGN.sub("", " ".join(_plain(answer).split()))
    words = _LAST.sub("", text).split(" ")
    if words[-1][-1:] in ("!", "！") and _is_exclaimed(words):
        words[-1] = _EXCLAIMED.sub("", words[-1])
    articles = next((place for place, word in enumerate(words[:-1]) if word not in _ARTICLES), len(words) - 1)
    words = words[articles:]
    if dated := _date_of(bare := " ".join(words)):
        return dated
    if _TELEPHONE.fullmatch(bare):
        return re.sub(r"[ ()-]", "", bare)
    if not _CODE.search(text):
        words = [_folded(word, first=place == 0 < len(words) - 1) for place, word in enumerate(words)]
    return unicodedata.normalize("NFC", " ".join(words)) or None


def _date_of(text: str) -> str | None:
    """Return a date as `2026-11-21`, without a year as `--11-21`; None for a text that is anything else, or holds more.

    No form may be read in two ways: the month is a word, or stands between year and day, or the day is above 12. A date
    that no calendar has is none.
    """
    for form in _DATES if len(text) <= _LONGEST_DATE else ():
        if found := form.fullmatch(text):
            parts = found.groupdict()
            month = int(parts["month"]) if "month" in parts else _MONTHS[parts["name"].lower()]
            day = int(parts["day"])
            if form is _DATES[0]:  # 21.11.2026, or 11/21/2026
                if max(month, day) <= _MONTHS_OF_A_YEAR and month != day:
                    return None
                month, day = sorted((month, day))
            try:
                written = date(int(parts["year"] or _LEAP_YEAR), month, day).isoformat()
            except ValueError:
                return None
            return written if parts["year"] else f"-{written[4:]}"
    return None


def _plain(text: str) -> str:
    """Return a text with the typography that means nothing folded."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _HYPHENS.sub("-", text.translate(_FULL_WIDTH).translate(_APOSTROPHE)))


def _is_exclaimed(words: list[str]) -> bool:
    """True if an exclamation mark at the end is no part of an answer: behind yes or no, or at least two words."""
    plain = [_EXCLAIMED.sub("", word) if word is words[-1] else word for word in words]
    return plain[0].casefold() in VERDICTS if len(words) == 1 else all(map(str.isalpha, plain))


def verdict_of(answer: str) -> Literal["yes", "no"] | None:
    """Return the verdict with which a whole answer, or its key, begins: "Yes, on Fridays", "Nein.", "不是".

    The word stands alone, before punctuation, or before a word that goes on with it ("No they may not"). "No one",
    "No. 5", "No-fly zone", "Yes and no" and "네 가지" (four kinds) begin with none.
    """
    found = _VERDICT.match(answer)
    return None if found is None else "yes" if (found["bold"] or found["word"]).casefold() in _YES else "no"


def _folded(word: str, *, first: bool) -> str:
    letters = word.rstrip(".,;:!?")
    if letters.casefold() in ("yes", "no"):
        return word.casefold()
    if not letters.isalpha() or letters[1:] != letters[1:].lower() or "ß" in letters:
        return word
    if len(letters) >= _SHORTEST_FOLDED or letters.casefold() in VERDICTS:
        return word.casefold()
    return word[0].lower() + word[1:] if first and len(letters) > 1 else word


def _stripped(text: str) -> str:
    """Return a text without space around it, but the indentation of its first line where others are indented."""
    return text.rstrip().lstrip("\r\n") if _INDENTED.search(text.strip()) else text.strip()


def _visible(text: str) -> str:
    """Return a text without invisible characters between letters; elsewhere they, and control characters, are spaces.

    So "30\\r60" is not 3060. Joiners of letters stay.
    """
    if text.isascii() and text.isprintable():
        return text
    kept: list[str] = []
    hidden = False
    for character in text.replace("\r\n", "\n"):
        category = unicodedata.category(character)
        if category == "Cf" and character not in _JOINERS:
            hidden = True
            continue
        if hidden and kept and not (_is_letter(kept[-1]) and _is_letter(character)):
            kept.append(" ")
        hidden = False
        kept.append(" " if category in ("Cc", "Cs") and character not in "\n\t" else character)
    return "".join(kept)


def _is_letter(character: str) -> bool:
    return character.isalpha() or unicodedata.category(character)[0] == "M"


def items_of(reply: str) -> Items:
    """Return the items of a reply: its lines without list marks, each once. A line that ends in a colon is none.

    Numbers are marks where they count from 1: "2. Bundesliga" alone is an item.
    """
    lines = [part for line in answer_text(reply).splitlines() for part in _numbered(line) if part.strip()]
    found: dict[str, str] = {}
    number = 0
    for line in lines:
        mark = _ITEM_MARK.match(line)
        if mark and mark[1]:
            if int(mark[1]) in (1, number + 1):
                number = int(mark[1])
            else:
                mark = None
        item = whole_answer(line[mark.end() :] if mark else line).strip()
        key = key_of(item) if len(item) <= LONGEST_ITEM else None
        leads = len(lines) > 1 and item.endswith((":", "："))
        if key is not None and any(map(str.isalnum, key)) and not leads and len(found) < MOST_ITEMS:
            found.setdefault(key, item)
    return tuple(found.items())


def _numbered(line: str) -> list[str]:
    """Return the parts of a line that is numbered 1, 2, 3 within, each with its number; else the line."""
    starts: list[int] = []
    for mark in _WITHIN_LINE.finditer(line[: MOST_ITEMS * LONGEST_ITEM]):
        if int(mark[1]) == len(starts) + 1:
            starts.append(mark.start())
    if len(starts) < 2:
        return [line]
    return [line[: starts[0]], *(line[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True))]
