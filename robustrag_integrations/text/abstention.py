"""Recognises replies that abstain (paper, Algorithm 1, line 6), and tells silence from other abstentions.

Prompts ask for a fixed phrase where the answer is not there, and nearly all abstentions begin with it. Beside it there
are whole short replies ("Not specified"), and for each language one pattern of a clause that says that the text, or
whoever read it, does not say: both are data (`abstentions.txt`). A reply abstains if one of its clauses does and the
others say nothing of their own ("I'm sorry, but"). It never does with a number or a name that the question lacks.
A reply that only repeats what was asked says nothing, either.

What a thing lacks is an answer: "The source code is not included", "Premium has no deductible".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from robustrag_integrations._util.normalise import few_marks, plain_words
from robustrag_integrations.text.answer_text import LEAD, answer_text, unboxed, without_citations
from robustrag_integrations.text.keywords import extractor_fingerprint
from robustrag_integrations.text.languages import WORDS, scripts_of, sections_of
from robustrag_integrations.text.prompts import ABSTENTION
from robustrag_integrations.text.reasoning import parts_of

_NAMED = re.compile(r"\{([a-z]+)\}")
_LONGEST = 1000  # characters; an abstention is short, and a hostile reply may be long
_LONGEST_CLAUSE = 300
_MOST_CLAUSES = 20
_BLANK = re.compile(r"[\s.…?!,;:\"'“”„«»*_–—-]*\Z")  # "[]", "==" and "&&" are answers
_STRAIGHT = str.maketrans("’‘ʼ`´“”„«»「」『』《》*_", "'" * 5 + '"' * 11 + "  ")
_SENTENCE_END = re.compile(r"[.!?;:]+(?=\s|$)|[…。！？；：।॥؟؛۔\n()\[\]{}（）【】|]+|\s[-–—]+\s|—")
_COMMA = re.compile(
    r"[,،、，](?=\s|[^\d\s])"
    r"| (?=(?:but|although|though|however|whereas|except|and (?:do|does|did|it|is)|aber|sondern|mais|pero|ma|mas) )"
)
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[\w,'’\"“«] )[\"'“«„]?([^\W\d_][\w'’-]+)")
_ENDING = re.compile(r"(?<=\w\w\w)['’].*")  # "Brezar's", "Brezar'ın"
_ASKS = frozenset(WORDS["asks"])
_MARKS = frozenset("\"'’‘ʼ`´“”„«»「」『』《》*_")  # around a phrase, and apostrophes


class _Language:
    """One section of `abstentions.txt`."""

    def __init__(self, lines: Sequence[str]) -> None:
        named = [line.partition(": ") for line in lines if not line.startswith("= ")]
        self.words = {name: text for name, _, text in named}
        self.short = frozenset(short.rstrip(".") for short in self.words["short"].split("; "))
        self._patterns = [line.removeprefix("= ") for line in lines if line.startswith("= ")]
        self._asides = [text for name, _, text in named if name == "aside"]
        self.scripts = frozenset(scripts_of(self.words["short"]))
        begins = "|".join(map(re.escape, self.words.get("and", "").split()))
        self.begins = re.compile(f"(?:{begins}) ?(?=.)" if self.scripts & {"han", "kana"} else f"(?:{begins}) ")

    @cached_property
    def says_nothing(self) -> re.Pattern[str]:
        """What a clause is that abstains."""
        return self._any([*map(re.escape, sorted(self.short)), *self._patterns])

    @cached_property
    def aside(self) -> re.Pattern[str]:
        """What a clause is that says nothing beside one that abstains."""
        return self._any(self._asides)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words of the patterns, which are no names however they are written."""
        return frozenset(re.findall(r"[^\W\d_]+", " ".join([*self.words.values(), *self._patterns, *self._asides])))

    def _any(self, alternatives: Sequence[str]) -> re.Pattern[str]:
        written = "|".join(f"(?:{each})" for each in alternatives) or "(?!)"
        while _NAMED.search(written):
            written = _NAMED.sub(lambda name: self.words[name[1]], written)
        return re.compile(unicodedata.normalize("NFC", written))


@cache
def languages() -> dict[str, _Language]:
    """Return what abstains in each language, by its code."""
    return {name: _Language(lines) for name, lines in sections_of(Path(__file__).with_name("abstentions.txt")).items()}


@dataclass(frozen=True)
class Abstention:
    """A test for abstentions: a function of a reply, or those that `is_abstention` recognises with further phrases.

    Case, accents and quotation marks of phrases make no difference, nor does punctuation at their end.
    """

    phrases: tuple[str, ...] = ()
    function: Callable[[str], bool] | None = None

    def __call__(self, reply: str, question: str | None = None) -> bool:
        """True if this reply abstains."""
        return self.function(reply) if self.function else is_abstention(reply, question, self.phrases)

    @property
    def fingerprint(self) -> str:
        """The name of this test in certificates and answers."""
        if self.function:
            return extractor_fingerprint(self.function)
        return f"meaning and {list(self.phrases)!r}" if self.phrases else "meaning"


def is_abstention(reply: str, question: str | None = None, phrases: Sequence[str] = ()) -> bool:
    """True if a reply says that it does not know, or that what it was given does not say.

    What is empty abstains, as does a model's reasoning that never comes to an answer, and the JSON answer null. In a
    language without a section a reply answers. A function of the reply, its question and these further phrases, linear
    in the length of the reply.
    """
    text = answer_text(reply)
    if len(text) > _LONGEST or text.strip().startswith("`"):
        return not text.strip()
    text = LEAD.sub("", without_citations(unboxed(text)).strip(), count=1)
    if _BLANK.match(text):
        return True
    plain = unicodedata.normalize("NFC", few_marks(text)).translate(_STRAIGHT)
    if question is not None and _repeats(plain, question):
        return True
    scripts = frozenset(scripts_of(plain))
    spoken = {name: each for name, each in languages().items() if each.scripts & scripts or each.scripts == scripts}
    bare = " ".join(plain.lower().strip(" \"'.!。\n-").split())
    if any(bare in each.short for each in spoken.values()):
        return True
    own = [_loose(phrase).rstrip(" .!。") for phrase in phrases]
    asked = frozenset(plain_words(" ".join([question or "", *phrases])).split())
    found, sentences = set(), [s for s in _SENTENCE_END.split(plain.lower()) if any(map(str.isalnum, s))]
    if len(sentences) > _MOST_CLAUSES:
        return False
    for sentence in sentences:
        after = False  # a clause of this sentence that abstains
        for piece in _COMMA.split(sentence):
            clause = " ".join(piece.strip(" \"'-•").split())
            if not any(map(str.isalnum, clause)):
                continue
            if len(clause) > _LONGEST_CLAUSE:
                return False
            names = [name for name, each in spoken.items() if _says(each, clause, "says_nothing")]
            if names or _loose(clause) in own:
                found.update(names or ["en"])
                after = True
            elif not any(_says(each, clause, "aside") for each in spoken.values()) and not (
                after and asked.issuperset(plain_words(clause).split())
            ):
                return False
    return bool(found) and not _adds(text, asked, found, question is not None)


def _repeats(reply: str, question: str) -> bool:
    """True if a reply is the question, or its end with a small word that asks: "to do what", not "The Who"."""
    said, asked = (re.findall(r"\w+", text) for text in (reply, question))
    return bool(said) and (said == asked or (said == asked[-len(said) :] and said[-1] in _ASKS))


def _says(language: _Language, clause: str, what: Literal["says_nothing", "aside"]) -> bool:
    pattern: re.Pattern[str] = getattr(language, what)
    begun = language.begins.match(clause)
    return bool(pattern.fullmatch(clause) or (begun and pattern.fullmatch(clause, begun.end())))


def _adds(text: str, asked: frozenset[str], spoken: set[str], names: bool) -> bool:
    """True if a text holds a number or a name that its question lacks; German writes every noun like a name."""
    known = asked.union(*(languages()[name].vocabulary for name in spoken))
    if not set(_NUMBER.findall(" ".join(asked))).issuperset(_NUMBER.findall(text)):
        return True
    if not names or "de" in spoken or text.isupper():
        return False
    found = (match[1] for match in _NAME.finditer(text) if match[1][0].isupper() and match[1][:2] not in ("I'", "I’"))
    return any(not known.issuperset(plain_words(_ENDING.sub("", name)).split()) for name in found)


def silence_of(
    reply: str, phrases: Sequence[str] = (ABSTENTION,), question: str | None = None
) -> Literal["silent", "abstains"] | None:
    """Tell whether a reply is silence, an abstention by its words alone, or an answer (None).

    Silence begins with one of these phrases, which the model was asked for, and says nothing else: "I don't know. The
    handbook does not mention it." Case, accents, quotation marks and the form of an apostrophe make no difference. An
    abstention by its words ("The handbook does not mention it.") is no silence; nor is an empty reply.
    """
    text = parts_of(reply).answer
    begun = _loose(text)
    abstains = is_abstention(text, question, phrases)
    for phrase in (_loose(each).rstrip(" .!。") for each in phrases):
        rest = begun.removeprefix(phrase)
        if rest != begun and not rest[:1].isalnum() and (abstains or not any(map(str.isalnum, rest))):
            return "silent"
    return "abstains" if abstains else None


def may_begin_phrase(prefix: str, phrases: Sequence[str] = (ABSTENTION,)) -> bool:
    """True if a reply of which this much has come, reasoning aside, begins or may yet begin with one of these phrases.

    True of every beginning of a reply that is silence; once it is false, it stays so however the reply goes on.
    """
    begun = _loose(prefix)
    for phrase in (_loose(each).rstrip(" .!。") for each in phrases):
        if phrase.startswith(begun) or (begun.startswith(phrase) and not begun[len(phrase)].isalnum()):
            return True
    return False


def abstention_of(given: Abstention | Callable[[str], bool] | Sequence[str] | None) -> Abstention:
    """Return the test of a function, or one for which phrases abstain besides what `is_abstention` recognises."""
    if isinstance(given, Abstention):
        return given
    if given is None or callable(given):
        return Abstention(function=given)
    if isinstance(given, str) or not all(isinstance(phrase, str) and phrase.strip() for phrase in given):
        raise TypeError(
            "abstains must be a function from a response to bool, or a list of phrases such as ['keine Ahnung'], got "
            f"{given!r:.80}"
        )
    return Abstention(tuple(given))


def _loose(text: str) -> str:
    """Return a text case-folded, with single spaces, without accents, quotation marks, apostrophes, `*` and `_`.

    Character by character, so that a beginning of a text gives a beginning of what the text gives.
    """
    kept: list[str] = []
    plain = "".join([character for character in text if character not in _MARKS])
    for character in unicodedata.normalize("NFKD", few_marks(plain)).casefold():
        if character.isspace():
            if kept and kept[-1] != " ":
                kept.append(" ")
        elif unicodedata.category(character) not in ("Mn", "Cf"):
            kept.append(character)
    return "".join(kept)
