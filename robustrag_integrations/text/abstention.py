"""Recognises responses that abstain (paper, Algorithm 1, line 6).

1. A response is unwrapped: reasoning, JSON, LaTeX, citations, titles and quotations go.
2. It is cut into sentences, and each of them at commas and where a new clause begins (`turns`).
3. Each clause says that nothing is known ("denial"), says something ("content"), or neither. A response abstains if
   some clause denies and none has content.

All words are data, a file for each language in `denials/`, and one for all (`shared`). A file has sections of regular
expressions, whose lines are alternatives; `{name}` stands for those of another section. They are written case-folded
and without Latin accents, and searched for in one clause of a reply:

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal, TypeAlias

from robustrag_integrations._util.normalise import compatible
from robustrag_integrations.text.answer_text import answer_text, unboxed, without_citations
from robustrag_integrations.text.languages import scripts_of, sections_of
from robustrag_integrations.text.prompts import ABSTENTION
from robustrag_integrations.text.reasoning import parts_of

_DENIALS = Path(__file__).with_name("denials")
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


_FRAMES = {
    "asks": "^(?:{})",
    "filler": "^(?:{})",
    "sorry": "^(?:(?:i am|i'm|we are|we're|i) )?(?:so |very |really |but )?(?:{})",
}


class Language:
    """One file's sections as patterns, each compiled on first use, which for most replies never comes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sections = sections_of(_DENIALS / f"{name}.txt")
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


@cache
def language(name: str) -> Language:
    """Return the words of a language, or those that are `shared`."""
    return Language(name)


@cache
def empty_words() -> frozenset[str]:
    """Return the words that add nothing to a denial."""
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


@cache
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


Abstains: TypeAlias = Callable[[str], bool]  # True if a reply abstains

_LOOKED_AT = 2000  # characters; an abstention is short, and a hostile response may be long
_LONGEST_CLAUSE = 300  # characters; a longer one says something
_MOST_CLAUSES = 40
_MOST_CHUNKS = 3  # of a sentence whose denial commas cut in pieces

_STRAIGHT = str.maketrans("’‘ʼ`´“”„«»「」『』《》*_", "'" * 5 + '"' * 11 + "  ")
_MARKS = frozenset("\"'’‘ʼ`´“”„«»「」『』《》*_")  # around a phrase, and apostrophes
_QUOTED = re.compile(r'"[^"]*"')
# "The prize went to I Don't Know": three capitalised words or more within a sentence, one of which denies.
_TITLE = re.compile(
    r"(?<=[a-z])\s[*_]{0,2}(?=(?:[A-Z][a-z'’]*\s){0,5}(?:Not|No|Don['’]t|Didn['’]t|Can['’]t|Nothing|Nobody|None|Never|Unknown)"
    r"\b)[A-Z][a-z'’]*(?:\s[A-Z][a-z'’]*){2,7}"
)
_VOWEL_SIGNS = re.compile("[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f]")
_BLANK = re.compile(r"[\s.…?!,;:\"'_*–—-]*\Z")  # "[]", "==" and "&&" are answers
_NOTHING = re.compile(r"(?:null|nil|nan|n/?a|k\.\s?a)\W*\Z")
_CODE_SPAN = re.compile(r"\s*`(?:null|nil|nan)`[.\s]*\Z", re.I)
_SENTENCE_END = re.compile(r"[.!?;:]+(?=\s|$)|[…。！？；：।॥؟؛۔\n()\[\]{}（）【】|]+|\s[-–—]+\s|—|^- ", re.M)
_COMMA = re.compile(r"[,،、，](?=\s|[^\d\s])")
_BROKEN_LINE = re.compile(r"(?<=[^\W_])[ \t]*\n[ \t]*(?=[a-zà-öø-ÿа-я])")
_LEAD = re.compile(r"^(?:(?:[-•]|\d{1,2}[.)])\s)+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_DIGIT = re.compile(r"\d")
_LATIN_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})


@dataclass(frozen=True)
class Abstention:
    """A test for abstentions: those that `is_abstention` recognises, and replies that are one of these phrases.

    Case, accents and punctuation make no difference.
    """

    phrases: tuple[str, ...]

    def __call__(self, response: str) -> bool:
        """True if this response abstains."""
        return is_abstention(response) or _bare(response) in map(_bare, self.phrases)

    @property
    def fingerprint(self) -> str:
        """The name of this test in certificates and answers."""
        return f"meaning and {list(self.phrases)!r}"


def is_abstention(response: str) -> bool:
    """True if a response says that it does not know, or that what it was given does not say.

    It is read as a whole: every clause that says something of its own makes the response an answer, so that "Karl
    Gross, although I don't know his title" answers, and so does what a thing lacks: "The file was not found". What is
    empty abstains, as does a model's reasoning that never comes to an answer, and the JSON answer null. In a language
    without a list of words a response answers. A phrase inside quotation marks is somebody's title or words, unless the
    whole response is that quotation. A function of this one response, linear in its length.
    """
    if _CODE_SPAN.match(response):
        return False
    text = answer_text(response)
    if len(text) > _LOOKED_AT:
        return not text.strip()
    unwrapped = without_citations(unboxed(text))
    if "\n" in unwrapped:
        unwrapped = _BROKEN_LINE.sub(" ", unwrapped)
    plain = _plain(unwrapped)
    if _BLANK.match(plain) or _NOTHING.match(plain.strip(" '\"([<")):
        return True
    names = languages_of(plain)
    if names is LATIN and not hints_of(*LATIN).search(plain):
        return False
    plain = _plain(_TITLE.sub(" xx ", unwrapped)) if _TITLE.search(unwrapped) else plain
    bare = plain.strip(" \"'.!\n-")
    plain = _QUOTED.sub(" xx ", plain) if '"' in bare else bare  # a placeholder that counts as content
    spoken = tuple(language(name) for name in names if hints_of(name).search(plain))
    sentences = [sentence for sentence in _SENTENCE_END.split(plain) if any(map(str.isalnum, sentence))]
    if len(sentences) > _MOST_CLAUSES or any(len(sentence) > _LONGEST_CLAUSE for sentence in sentences):
        return False
    denied = False
    for sentence in sentences:
        said = _said(sentence, spoken)
        if said == "content":
            return False
        denied = denied or said == "denial"
    return denied


def silence_of(reply: str, phrases: Sequence[str] = (ABSTENTION,)) -> Literal["silent", "abstains"] | None:
    """Tell whether a reply is silence, an abstention by its words alone, or an answer (None).

    Silence begins with one of these phrases, which the model was asked for, and says nothing else: "I don't know. The
    handbook does not mention it." Case, accents, quotation marks and the form of an apostrophe make no difference. An
    abstention by its words ("The handbook does not mention it.") is no silence; nor is an empty reply.
    """
    text = parts_of(reply).answer
    begun = _loose(text)
    for phrase in (_loose(each).rstrip(" .!。") for each in phrases):
        rest = begun.removeprefix(phrase)
        if rest != begun and not rest[:1].isalnum() and (not any(map(str.isalnum, rest)) or is_abstention(text)):
            return "silent"
    return "abstains" if is_abstention(text) else None


def may_begin_phrase(prefix: str, phrases: Sequence[str] = (ABSTENTION,)) -> bool:
    """True if a reply of which this much has come, reasoning aside, begins or may yet begin with one of these phrases.

    True of every beginning of a reply that is silence; once it is false, it stays so however the reply goes on.
    """
    begun = _loose(prefix)
    for phrase in (_loose(each).rstrip(" .!。") for each in phrases):
        if phrase.startswith(begun) or (begun.startswith(phrase) and not begun[len(phrase)].isalnum()):
            return True
    return False


def abstention_of(given: Abstains | Sequence[str] | None) -> Abstains:
    """Return a function as it is; phrases abstain besides what `is_abstention` recognises."""
    if given is None or callable(given):
        return given or is_abstention
    if isinstance(given, str) or not all(isinstance(phrase, str) and phrase.strip() for phrase in given):
        raise TypeError(
            "abstains must be a function from a response to bool, or a list of phrases such as ['keine Ahnung'], got "
            f"{given!r:.80}"
        )
    return Abstention(tuple(given))


def _plain(text: str) -> str:
    if text.isascii():
        return text.translate(_STRAIGHT).casefold()
    folded = _VOWEL_SIGNS.sub("", compatible(text).translate(_STRAIGHT)).casefold()
    return _without_accents(folded)


def _without_accents(text: str) -> str:
    out: list[str] = []
    for character in unicodedata.normalize("NFD", text.translate(_LATIN_LETTERS)):
        if unicodedata.combining(character) and out and (out[-1].isascii() or "\u0370" <= out[-1] <= "\u03ff"):
            continue
        out.append(character)
    return unicodedata.normalize("NFC", "".join(out))


def _loose(text: str) -> str:
    """Return a text case-folded, with single spaces, without accents, quotation marks, apostrophes, `*` and `_`.

    Character by character, so that a beginning of a text gives a beginning of what the text gives.
    """
    kept: list[str] = []
    plain = "".join([character for character in text if character not in _MARKS])
    for character in unicodedata.normalize("NFKD", plain).casefold():
        if character.isspace():
            if kept and kept[-1] != " ":
                kept.append(" ")
        elif unicodedata.category(character) not in ("Mn", "Cf"):
            kept.append(character)
    return "".join(kept)


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(_plain(text)))


def _said(sentence: str, spoken: tuple[Language, ...]) -> str:
    """Classify a sentence as "content", "denial" or "nothing"."""
    sentence = _LEAD.sub("", sentence.strip())
    chunks = [chunk.strip(" \"'-") for chunk in _chunks(sentence, turns_of(spoken))]
    said = [_chunk_says(chunk, spoken) for chunk in chunks if any(map(str.isalnum, chunk))]
    if "denial" in said:
        return "content" if "content" in said else "denial"
    if said[:1] != ["content"] and len(said) <= _MOST_CHUNKS and _chunk_says(sentence, spoken) == "denial":
        return "denial"  # "The text, sadly, does not say"
    return "content" if "content" in said or "question" in said else "nothing"


def _chunks(sentence: str, turns: re.Pattern[str]) -> Iterator[str]:
    for piece in _COMMA.split(sentence):
        piece, done = f", {piece.strip()}", 2
        for match in turns.finditer(piece):
            yield piece[done : match.start()]
            done = match.end()
        yield piece[done:]


def _chunk_says(chunk: str, spoken: tuple[Language, ...]) -> str:
    def finds(section: str) -> bool:
        return any(each.finds(section, chunk) for each in (*spoken, language("shared")))

    if finds("answers"):
        return "content"
    if finds("denies"):
        return "denial"
    if finds("of_source") and (finds("sources") or finds("asked")):
        return "denial"
    if empty_words().issuperset(_WORD.findall(chunk)) or finds("sorry") or finds("filler"):
        return "nothing"
    if finds("asks"):
        return "question"
    return "nothing" if finds("aside") and finds("sources") and not _DIGIT.search(chunk) else "content"
