"""The claims of a long reply or a list, each as it is compared and as it is written.

A claim is a statement of the reply (`keywords/statements.py`), or an item of a list. What limits a statement stays with
it: a sentence that begins with "unless", "however" or "if" is part of the one before it, and what stands below "For
students:" is said of students. In doubt statements stay together, which fewer groups then share.

Claims are compared by their words in their order, as whole answers are (`keywords/tokens.py`: case, inflection,
amounts), without articles and without what stands around a step and does not change it: bullets, "First,", "You
should", a lead that only repeats the question. Code is compared to the letter. The words are in `words.txt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.keywords.languages import NEGATIONS, stop_words
from robustrag_integrations.keywords.lists import BETWEEN, LAST_WORDS, after_unspaced_lead
from robustrag_integrations.keywords.runs import MOST_CHARACTERS, ReplyKeys, visible
from robustrag_integrations.keywords.statements import Line, cut_at, lines_of, numbered_in, sentences_of
from robustrag_integrations.keywords.tokens import Language, tokens_of, without_punctuation
from robustrag_integrations.reply_text import answer_text, unboxed, without_citations

MOST_CLAIMS = 200  # of one reply
_MOST_READ = 1_000  # statements, many of which may be the same
_LONGEST = 2_000  # characters of a claim
_WORDS = Path(__file__).with_name("words.txt")
_BOLD_HEAD = re.compile(r"(\*\*|__)(?P<head>[^*_]{1,120}?):?\1[ \t]*(?:[:–—-][ \t]*|(?=[A-Z]))(?=\S)")
_EMPHASIS = re.compile(r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)")
_CODE = re.compile(r"(`{1,3})(.+?)\1", re.S)
_SHORT_JOINS = frozenset(["of", "en", "e", "o", "y", "i"])
_LEAD = re.compile(r"[^,:]{1,100}[,:]\s+(?=\S)")
_NEXT = re.compile(r",?\s+(?:(?P<and>\w{1,3})\s+)?(?P<word>\w+)\b")
_NAME = re.compile(r"(?<=\w\s)[^\W\d_a-z]\w*(?:[ -][^\W\d_a-z]\w*)*")


class ClaimWords(NamedTuple):
    """The closed classes of words of one language (`words.txt`), as they are compared."""

    leads: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    modals: frozenset[str] = frozenset()
    articles: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    points: frozenset[str] = frozenset()
    heads: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    joins: frozenset[str] = frozenset()
    sequels: frozenset[str] = frozenset()

    @staticmethod
    @cache
    def of(language: Language) -> ClaimWords:
        """Read the words of a language; none for one that the file does not have."""
        found = {}
        for line in _WORDS.read_text(encoding="utf-8").splitlines():
            name, _, words = line.partition(": ")
            code, _, kind = name.partition(" ")
            if code == language.code:
                phrases = [tokens_of(word.replace("_", " "), language) for word in words.split()]
                found[kind] = frozenset(" ".join(token.key for token in phrase) for phrase in phrases)
        return ClaimWords(**found)


class _Word(NamedTuple):
    key: str
    is_code: bool


class ClaimReader:
    """A reader of the replies to one question as claims, each reply on its own.

    Args:
        question: a lead or a heading that only repeats it says nothing.
        as_list: whether replies are lists of items, rather than statements.
    """

    def __init__(self, question: str, *, as_list: bool = False) -> None:
        self._as_list = as_list
        self._language = Language.of(question)
        self._known = known = ClaimWords.of(self._language)
        self._binding = known.binds | NEGATIONS
        asked = question[:MOST_CHARACTERS]
        small = stop_words(self._language.code) | self._language.small
        self._asked = frozenset(key.casefold() for key in self._keys(asked))
        self._about = self._asked - self._binding - small
        names = _NAME.findall(asked)
        self._name = self._keys(names[0]) if len(names) == 1 else frozenset()
        around = known.leads | known.subjects | known.modals
        closed = known.heads | known.articles | self._language.small | small & self._asked
        self._neutral = closed.union(word for phrase in around for word in phrase.split()) - known.binds
        self._question = self.key(asked)

    def __call__(self, reply: str) -> ReplyKeys:
        """The claims of a reply in its order, each key with the form in which the reply writes it."""
        text = unboxed(answer_text(visible(reply[:MOST_CHARACTERS]))).strip()
        forms: dict[str, str] = {}
        for form in islice(self._items(text) if self._as_list else self._statements(text), _MOST_READ):
            key = self.key(form) if len(form) <= _LONGEST else ""
            if key and key != self._question and not is_abstention(form):
                forms.setdefault(key, form)
            if len(forms) == MOST_CLAIMS:
                break
        return ReplyKeys(frozenset(forms), None, frozenset(), forms)

    def key(self, claim: str) -> str:
        """A claim as it is compared; empty if no word is left."""
        lead = _LEAD.match(claim)
        words = self._words(claim[lead.end() :] if lead and self._is_neutral(lead[0]) else claim)
        words = [word for word in words if word.is_code or word.key not in self._known.articles]
        known, first = self._known, 0
        if not self._as_list:
            while first < len(words) and self._begins(words, first, self._name):
                first += 1
            if self._name and not first and words and self._begins(words, 0, known.pronouns):
                first = 1
        droppable = known.leads | known.subjects | known.modals
        while size := self._begins(words, first, droppable):
            first += size
        return " ".join(word.key for word in words[first:] or words)

    def _begins(self, words: list[_Word], first: int, phrases: frozenset[str]) -> int:
        """The number of words, of those from `first` on, that are one of these phrases; 0 if none."""
        for size in (3, 2, 1):
            here = words[first : first + size]
            if len(here) == size and not any(w.is_code for w in here) and " ".join(w.key for w in here) in phrases:
                return size
        return 0

    def _keys(self, text: str) -> frozenset[str]:
        return frozenset(token.key for token in tokens_of(text, self._language))

    def _words(self, text: str) -> list[_Word]:
        """The words of a claim; those in code as they are, unless they would be compared as they are anyway."""
        words: list[_Word] = []
        done = 0
        for span in _CODE.finditer(text):
            words += self._spoken(text[done : span.start()])
            for word in span[2].split():
                [*keys] = (token.key for token in tokens_of(word, self._language))
                words.append(_Word(word if keys == [word] else f"`{word}", True))
            done = span.end()
        return words + self._spoken(text[done:])

    def _spoken(self, text: str) -> list[_Word]:
        is_blank = not any(map(str.isalnum, text))
        return [] if is_blank else [_Word(token.key, False) for token in tokens_of(text, self._language)]

    def _is_neutral(self, text: str) -> bool:
        """True if a heading or lead says nothing: small words, and of the question's either all or its one name."""
        words = self._keys(text)
        content = words - self._neutral
        return (
            not words & self._binding
            and content <= self._about
            and (not content or content == self._about or content == self._name)
        )

    def _statements(self, text: str) -> Iterator[str]:
        """Yield the statements of a reply, each with what limits it."""
        held = ""
        for statement in self._loose(text):
            if held and self._limits(statement):
                held = f"{held} {statement}" if held[-1:] in ".!?…。" else f"{held}; {statement}"
                continue
            if held:
                yield held
            held = statement
        if held:
            yield held

    def _loose(self, text: str) -> Iterator[str]:
        titles: dict[int, str] = {}  # by their indent, what the lines below are said of
        for line in lines_of(text):
            if not line.is_code:
                titles = {
                    at: title for at, title in titles.items() if at < line.indent or (at < 0 and not line.is_title)
                }
            if line.is_title:
                titles[line.indent] = _plain(line.text).rstrip(" :：")
                continue
            about = ": ".join(title for title in titles.values() if not self._is_neutral(title))
            for statement in [f"```\n{line.text}\n```"] if line.is_code else self._in_line(line):
                yield f"{about}: {statement}" if about else statement

    def _in_line(self, line: Line) -> Iterator[str]:
        for piece in numbered_in(without_citations(line.text), begun=line.is_step):
            bold = _BOLD_HEAD.match(piece)
            if bold and line.is_step and not self._keys(piece) & self._binding:
                yield _plain(bold["head"])
            for sentence in sentences_of(_plain(piece)):
                yield from self._steps(sentence)

    def _steps(self, sentence: str) -> Iterator[str]:
        """Cut a sentence before "then" after a comma, unless a word in it binds it together."""
        if self._keys(sentence) & self._binding:
            yield sentence
            return
        done = 0
        for cut in cut_at(_NEXT, sentence):
            comes_next = self._keys(cut["word"]) & self._known.sequels and (cut[0][0] == "," or cut["and"])
            if comes_next and cut.start() > done:
                yield sentence[done : cut.start()].strip()
                done = cut.end("word")
        yield sentence[done:].strip()

    def _limits(self, statement: str) -> bool:
        """True if a statement limits the one before it."""
        words = self._words(statement[:200])
        points = self._begins(words, 0, self._known.points) and NEGATIONS.intersection(word.key for word in words)
        return bool(points or self._begins(words, 0, self._known.binds))

    def _items(self, text: str) -> Iterator[str]:
        """Yield the items of a list: of lines, in a row, or of JSON; a reply that is none is one item."""
        if text.startswith("["):
            try:
                listed = json.loads(text)
            except ValueError:
                listed = None
            if isinstance(listed, list) and all(isinstance(item, str) for item in listed):
                yield from listed
                return
        lines = list(lines_of(_without_fences(text), as_list=True))
        marked = sum(line.indent >= 0 and not line.is_title for line in lines) > 1
        pieces, title = [], ""
        for line in lines:
            binds = bool(self._keys(line.text) & self._binding)
            if line.is_title:
                title = f"{_plain(line.text)} " if binds else ""  # "Not on the Lenn:"
            if line.is_title or (marked and line.indent < 0 and not binds):
                continue
            pieces += [title + piece for piece in numbered_in(without_citations(line.text), begun=line.is_step)]
        for piece in pieces:
            bold = _BOLD_HEAD.match(piece)
            if bold and not self._keys(piece) & self._binding:
                yield _bare(bold["head"])
            elif len(pieces) > 1:
                yield _bare(piece)
            else:
                yield from self._in_a_row(_plain(piece))

    def _in_a_row(self, text: str) -> Iterator[str]:
        """Yield the items of "The towns are Kelford, Ashby and Marrow." without what leads to them or follows them.

        One with an exception or a negation in it is not cut: Ashby is no item of "all but Kelford and Ashby".
        """
        lead = _LEAD.match(text)
        if lead and lead[0].rstrip().endswith(":"):
            text = text[lead.end() :]
        for sentence in sentences_of(text):
            if self._keys(sentence) & self._binding:
                yield _bare(sentence)
                continue
            marks = [mark for mark in cut_at(BETWEEN, sentence) if self._is_between(mark, sentence)]
            edges = [0, *(edge for mark in marks for edge in mark.span()), len(sentence)]
            parts = [sentence[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]
            parts = [part for part in parts if part]
            if len(parts) == 1:
                parts = [self._only_item(parts[0])]
            elif parts:
                first = self._after_lead(after_unspaced_lead(sentence, parts[0]))
                last = self._before_rest(parts[-1], shortest=2 if first == parts[0] else 1)
                parts = [first, *parts[1:-1], LAST_WORDS.sub("", last)]
            yield from map(_bare, parts)

    def _is_between(self, mark: re.Match[str], sentence: str) -> bool:
        """True if a mark stands between two items: "of" is a conjunction in Dutch and none in English."""
        if mark["east"]:
            return "、" in sentence or "，" in sentence
        word = (mark["joint"] or "").casefold()
        return word not in _SHORT_JOINS or word in self._known.joins

    def _is_link(self, word: str) -> bool:
        """True if a word may stand between the items and the rest of a sentence: "are", or a verb of the question."""
        keys = self._keys(word)
        is_asked = word[:1].islower() and bool(keys) and keys <= self._asked - self._known.articles
        return is_asked or bool(keys & self._known.verbs)

    def _after_lead(self, part: str) -> str:
        """The first item of a row, without what leads to it."""
        words = part.split()
        links = [at for at, word in enumerate(words[:-1]) if self._is_link(word)]
        if words[1:] and words[1].islower() and self._is_link(words[0].lower()):
            links = links or [0]
        rest = words[links[-1] + 1 :] if links else words
        while len(rest) > 1 and links and self._keys(rest[0]) <= self._asked | self._known.articles:
            rest = rest[1:]
        return " ".join(rest)

    def _only_item(self, sentence: str) -> str:
        """The item of "The town is Kelford" and of "Kelford is a town on the Lenn"."""
        words = sentence.split()
        link = next((at for at in range(1, len(words) - 1) if self._is_link(words[at])), None)
        if link is not None and self._keys(" ".join(words[:link])) <= self._neutral | self._asked:
            return self._after_lead(sentence)
        return self._before_rest(sentence, shortest=2)

    def _before_rest(self, part: str, *, shortest: int) -> str:
        """The last item of a row, without the rest of the sentence if that is of so many words."""
        words = part.split()
        ends = (at for at in range(1, len(words) - shortest + 1) if self._is_link(words[at]))
        return " ".join(words[: next(ends, len(words))])


def _without_fences(text: str) -> str:
    return "\n".join(row for row in text.splitlines() if not row.lstrip().startswith(("```", "~~~")))


def _plain(text: str) -> str:
    """A text without emphasis."""
    return _EMPHASIS.sub("", text).strip()


def _bare(item: str) -> str:
    """An item without emphasis, quotation marks and the punctuation at its end."""
    return without_punctuation(_plain(item)).strip() or item.strip()
