"""The claims of a long reply or a list, each as it is compared and as it is written.

A claim is a statement of the reply (`keywords/statements.py`), or an item of a list. What limits a statement stays with
it: a sentence that begins with "unless", "however" or "if" is part of the one before it, what stands below "For
students:" is said of students, and "Poisonous:" stays with each item of its list. In doubt statements stay together,
which fewer groups then share.

Claims are compared by their words in their order, as whole answers are (`keywords/tokens.py`: case, inflection,
amounts), without articles and without what stands around a step and does not change it: bullets, "First,", "You
should", a lead that only repeats the question. Code is compared to the letter. The words are in `words.txt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.keywords.languages import NEGATIONS, stop_words
from robustrag_integrations.keywords.lists import BETWEEN, LAST_WORDS, after_unspaced_lead
from robustrag_integrations.keywords.runs import MOST_CHARACTERS, ReplyKeys, visible
from robustrag_integrations.keywords.statements import Line, cut_at, lines_of, numbered_in, sentences_of
from robustrag_integrations.keywords.tokens import Language, tokens_of, without_punctuation
from robustrag_integrations.reply_text import answer_text, unboxed, without_citations

MOST_CLAIMS = 200  # of one reply
_MOST_READ = 1_000  # statements, many of which may be the same
LONGEST_CLAIM = 2_000  # characters of a claim
_WORDS = Path(__file__).with_name("words.txt")
_BOLD_HEAD = re.compile(r"(\*\*|__)(?P<head>[^*_]{1,120}?):?\1[ \t]*(?:[:–—-][ \t]*|(?=[A-Z]))(?=\S)")
_EMPHASIS = re.compile(r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)")
_IS_QUESTION = re.compile(r"[?？؟][\s*_\"'”’»)\]]*\Z")
_ASKED = " ?"  # the end of a question's key
_CODE = re.compile(r"(`{1,3})(.+?)\1", re.S)
_LETTER = re.compile(r"[A-Za-z][.,;:!?)\"'”’]+")  # no article stands before punctuation: "hepatitis A."
_STRUCK = re.compile("(.)\u0338")
_NEGATED = {  # what comparison would take for the same sign without its stroke: "≠"
    code: f"!{plain[0]}" for code in range(0x2190, 0x2300) if "\u0338" in (plain := normalize("NFD", chr(code)))
}
_JSON = re.compile(r"(?:^|[:：])\s*(?=[\[{])", re.M)
_BOLD = re.compile(r"(\*\*|__)[^*_]+\1")
_NUMBERS_LEAD = re.compile(r"[^:：]{1,200}[:：]\s+(?=\(?1[.)] )")
_ORDINAL = re.compile(r"(?:\A|[\s(])\d{1,3}\.\Z")
_SHORT_JOINS = frozenset(["of", "en", "e", "o", "y", "i"])
_LEAD = re.compile(r"[^,:]{1,100}[,:]\s+(?=\S)")
_ROW_LEAD = re.compile(r"[^:：]{1,200}(?:：|:(?!//|\d))\s*(?=\S)")
_OR = re.compile(r"(?i:\b(?:and|or|und|oder|et|ou|y|o|e|en|of)\b)|,(?=\s)|[、，]")
_GIVEN = re.compile(r"\bprovided (?=(?:text|context|passage|document|information|excerpt)s?\b)", re.I)
_BEFORE_LIMIT = re.compile(
    r"(?:[^\w`]|[_¹²³⁴-⁹])+|[^\W\d]\w*\.?(?: [^\W\d]\w*\.?)?[*_ ]*[:：](?=[\s*_])|(?:and|und|et|y|e|en)\s(?=\S)", re.I
)
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
    chat: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    joins: frozenset[str] = frozenset()
    sequels: frozenset[str] = frozenset()
    speakers: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    hows: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()

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
        as_list: True if replies are lists of items, rather than statements.
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
        closed = known.heads | known.chat | known.articles | self._language.small | small & self._asked
        self._neutral = closed.union(word for phrase in around for word in phrase.split()) - known.binds
        self._around = self._neutral | self._asked | known.verbs | small
        self._offers = _OR.search(asked) is not None
        self._question = self.key(asked).removesuffix(_ASKED)

    def __call__(self, reply: str) -> ReplyKeys:
        """The claims of a reply in its order, each key with the form in which the reply writes it."""
        text = unboxed(answer_text(visible(reply[:MOST_CHARACTERS]))).strip()
        forms: dict[str, str] = {}
        left_out = len(reply) > MOST_CHARACTERS
        for place, form in enumerate(self._items(text) if self._as_list else self._statements(text)):
            if len(forms) == MOST_CLAIMS or place == _MOST_READ:
                left_out = True
                break
            left_out |= len(form) > LONGEST_CLAIM
            key = self.key(form) if len(form) <= LONGEST_CLAIM else ""
            if key and key.removesuffix(_ASKED) != self._question and not is_abstention(form):
                forms.setdefault(key, form)
        return ReplyKeys(frozenset(forms), None, frozenset(), forms, left_out=left_out)

    def key(self, claim: str) -> str:
        """A claim as it is compared; empty if no word is left. A question is another claim than the same statement."""
        lead = _LEAD.match(claim)
        words = self._words(claim[lead.end() :] if lead and self._is_neutral(lead[0]) else claim)
        words = [word for word in words if word.is_code or word.key not in self._known.articles] or words
        known, first = self._known, 0
        if not self._as_list:
            while first < len(words) and self._begins(words, first, self._name):
                first += 1
            if self._name and not first and words and self._begins(words, 0, known.pronouns):
                first = 1
        droppable = known.leads | known.subjects | known.modals
        while size := self._begins(words, first, droppable):
            first += size
        asks = bool(words) and _IS_QUESTION.search(claim) is not None
        return " ".join(word.key for word in words[first:] or words) + _ASKED * asks

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
        if not any(map(str.isalnum, text)):
            return []
        text = _STRUCK.sub(r"!\1", text.translate(_NEGATED))
        return [
            _Word(token.key.upper() if _LETTER.fullmatch(text, token.start, token.end) else token.key, False)
            for token in tokens_of(text, self._language)
        ]

    def _is_neutral(self, text: str, spared: frozenset[str] = frozenset()) -> bool:
        """True if a heading or lead says nothing: small words, words of the question, and these that are spared.

        Of the question's words it has all or its one name. Some are enough to lead to a list, unless the question
        offers several things ("edible or poisonous"). Nothing of a question that negates is repeated.
        """
        words = self._keys(_GIVEN.sub("", text)) - spared
        content = words - self._neutral
        if self._as_list:  # "There are three towns:"
            content = frozenset(word for word in content if not (word.isdecimal() and len(word) < 3))
        if words & self._binding or not content <= self._about:
            return False
        if not content or content in (self._about, self._name):
            return not content or self._asked.isdisjoint(NEGATIONS)
        leads = self._as_list or words & self._known.chat
        return bool(leads) and not self._offers and self._asked.isdisjoint(NEGATIONS)

    def _statements(self, text: str) -> Iterator[str]:
        """Yield the statements of a reply, each with what limits it: the one before, or all items of the list above."""
        held: list[str] = []  # the items of a list, or one statement
        limits: list[str] = []
        below = ""
        for about, statement, is_item in self._loose(text):
            whole = f"{about}: {statement}" if about else statement
            if held and self._limits(statement):
                more = statement if about == below else whole
                if not limits and (is_item or not self._is_of_all(statement)):
                    held[-1] = _joined([held[-1], more])
                else:
                    limits.append(more)
                continue
            if limits or not is_item:
                yield from (_joined([each, *limits]) for each in held)
                held, limits = [], []
            held.append(whole)
            below = about
        yield from (_joined([each, *limits]) for each in held)

    def _loose(self, text: str) -> Iterator[tuple[str, str, bool]]:
        """Yield what each statement is said of, the statement, and whether it is an item of a list."""
        for about, line in self._titled(lines_of(text)):
            for statement in [f"```\n{line.text}\n```"] if line.is_code else self._in_line(line):
                yield about, statement, line.indent >= 0

    def _titled(self, lines: Iterable[Line]) -> Iterator[tuple[str, Line]]:
        """Yield each line that is no title with the titles it stands below, but for those that say nothing.

        A heading lives until the next one, a title with a mark as far as lines are indented below it, any other for its
        list, or the block right after it; "Note:" for one line.
        """
        titles: dict[float, str] = {}  # by their indent; half less for one with nothing indented below it
        over: str | None = None  # what the title without an indent stands above
        is_first = False  # below a title
        is_neutral, is_label = cache(self._is_neutral), cache(self._is_label)
        for line in lines:
            if line.is_title:
                title = _plain(line.text).rstrip(" :：.")
                if is_first and line.indent in titles and line.indent >= -1:  # a title of nothing but a title
                    title = f"{titles[line.indent]}: {title}"
                titles = {at: title for at, title in titles.items() if at < line.indent - 0.5}
                titles[line.indent] = title
                over, is_first = "list" if line.indent >= 0 and -1 in titles else None, True
                continue
            kind = "code" if line.is_code else "text" if line.indent < 0 else "list"
            if is_first and kind == "list" and line.indent in titles:
                titles[line.indent - 0.5] = titles.pop(line.indent)
            if not line.is_code and not (is_first and kind == "text"):
                deep = line.margin - 0.5 if kind == "text" else line.indent
                titles = {at: title for at, title in titles.items() if at <= -1 or at < deep}
            if -1 in titles:
                inside = kind == over or (over == "list" and (line.is_code or line.margin))
                goes_on = inside or (over == "text" and not line.after_blank)
                if over and (not goes_on or (over == kind == "text" and line.after_blank) or is_label(titles[-1])):
                    del titles[-1]
                over = over or kind
            is_first = False
            yield ": ".join(title for title in titles.values() if not is_neutral(title)), line

    def _is_chat(self, part: str) -> bool:
        """True for "according to the text"; a word alone may be an item."""
        return " " in part and bool(self._keys(part) & self._known.chat) and self._is_neutral(part)

    def _is_label(self, title: str) -> bool:
        return self._keys(title) <= self._known.labels

    def _in_line(self, line: Line) -> Iterator[str]:
        text = without_citations(line.text)
        if (lead := _NUMBERS_LEAD.match(text)) and self._is_neutral(lead[0]):
            text = text[lead.end() :]
        for piece in numbered_in(text, begun=line.is_step):
            bold = _BOLD_HEAD.match(piece)
            if bold and line.is_step and self._asked & self._known.hows and not self._keys(piece) & self._binding:
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

    def _is_of_all(self, limit: str) -> bool:
        """True for "None of these holds" and "The above is wrong", which may limit all items of a list."""
        words = [word for word in self._words(limit[:200]) if word.key not in self._known.articles]
        return bool(words) and (words[0].key in NEGATIONS or self._begins(words, 0, self._known.points) > 0)

    def _limits(self, statement: str) -> bool:
        """True if a statement limits the one before it, whatever marks, quotation marks or label it begins with."""
        start, known = statement[:200], self._known
        while True:
            words = self._words(start)
            first = next((at for at, word in enumerate(words) if word.is_code or word.key not in known.articles), 0)
            keys = [word.key for word in words]
            judges = len(words) - first < 5 and not known.verbs.isdisjoint(
                keys[first + 1 : first + 2]
            )  # "That is wrong"
            points = self._begins(words, first, known.points) and (judges or NEGATIONS.intersection(keys))
            if points or self._begins(words, first, known.binds):
                return True
            if not (before := _BEFORE_LIMIT.match(start)):
                return False
            start = start[before.end() :]

    def _items(self, text: str) -> Iterator[str]:
        """Yield the items of a list: of lines, in a row, or of JSON; a reply that is none is one item.

        What stands below a list is said of its items, unless it says nothing.
        """
        text = _without_fences(text).strip()
        before, value, after = _json_in(text)
        if isinstance(value, list) and not before + after and all(isinstance(item, str) for item in value):
            yield from value
            return
        if value is not None:
            text = "\n".join([before, *self._as_lines(value), "", after])
        lines = list(lines_of(text, as_list=True))
        marks = sum(line.indent >= 0 and not line.is_title for line in lines)
        marked = value is not None or marks > 1 or (marks == 1 and lines[0].indent >= 0 and lines[-1].after_blank)
        pieces: list[tuple[str, str, int]] = []  # each with how many notes stand before it
        notes: list[str] = []
        for about, line in self._titled(_with_titles(lines, marked=marked)):
            said = without_citations(line.text)
            if pieces and line.indent < 0 and (marked or self._is_note(said)):
                if not self._names_sources(line.text):
                    notes += self._notes(sentences_of(_plain(said)))
            else:
                pieces += [(about, piece, len(notes)) for piece in numbered_in(said, begun=line.is_step)]
        for about, piece, first in pieces:
            head = _BOLD_HEAD.match(piece)
            if head and self._is_neutral(piece[head.end() :]):
                items: Iterable[str] = [_bare(head["head"])]
            elif len(pieces) > 1:
                items = [_bare(piece)]
            else:
                sentences = sentences_of(_plain(piece))
                back = [at > 0 and self._points_back(sentence) for at, sentence in enumerate(sentences)]
                notes += self._notes(each for each, points in zip(sentences, back, strict=True) if points)
                items = self._in_a_row([each for each, points in zip(sentences, back, strict=True) if not points])
            note = f" ({'; '.join(notes[first:])})" if notes[first:] else ""
            yield from (f"{about}: {item}{note}" if about else f"{item}{note}" for item in items)

    def _as_lines(self, value: Any) -> Iterator[str]:
        """Yield JSON as the lines of a list; the keys of arrays are titles, other entries beside them are notes."""
        if isinstance(value, list):
            yield from (f"- {self._entry(item)}" for item in value)
            return
        arrays = {key: item for key, item in value.items() if isinstance(item, list)}
        for key, array in arrays.items():
            yield from ("", f"{' '.join(key.split())}:", *self._as_lines(array))
        others = {key: item for key, item in value.items() if key not in arrays and not _is_number(item)}
        if arrays:
            yield from ("", *(self._entry({key: item}) for key, item in others.items()))
        else:
            yield from (f"- {self._entry({key: item})}" for key, item in value.items())

    def _entry(self, value: Any) -> str:
        """A value of JSON in one line; an object with its keys, but for one that says nothing."""
        if isinstance(value, dict):
            single = len(value) == 1 and self._is_neutral(next(iter(value)))
            return ", ".join(
                self._entry(item) if single else f"{key}: {self._entry(item)}" for key, item in value.items()
            )
        return " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())

    def _names_sources(self, line: str) -> bool:
        """True for "[1] handbook.pdf" and "Sources: handbook.pdf"."""
        title = line.partition(":")[0]
        return line[:1] == "[" or (title != line and self._keys(title) <= self._known.sources)

    def _is_note(self, line: str) -> bool:
        """True if a line without a mark is a sentence about those above it, not one more item."""
        return line.count(" ") > 1 and line.endswith((".", "!")) and self._points_back(line)

    def _points_back(self, sentence: str) -> bool:
        """True if a sentence is about what stands before it: "These are poisonous", "Only in spring"."""
        words = [word.key for word in self._words(sentence[:200])]
        first = words if NEGATIONS.intersection(words) else words[:4]
        return not self._known.points.isdisjoint(first) or self._limits(sentence)

    def _notes(self, sentences: Iterable[str]) -> Iterator[str]:
        """Yield those of the sentences around a list that say something of its items."""
        for sentence in sentences:
            keys, known = self._keys(sentence), self._known
            talks = keys & known.speakers and keys.isdisjoint(NEGATIONS)  # "I hope this helps"
            complete = known.others | NEGATIONS | self._around - self._binding  # "No other towns are named"
            spared = complete if keys & known.others else frozenset()
            if not talks and not self._is_neutral(sentence, spared):
                yield _bare(sentence)

    def _in_a_row(self, sentences: Iterable[str]) -> Iterator[str]:
        """Yield the items of "The towns are Kelford, Ashby and Marrow." without what leads to them or follows them.

        One with an exception or a negation in it is not cut: Ashby is no item of "all but Kelford and Ashby". A lead
        that says something stays with each: "Poisonous: death cap".
        """
        about = ""
        for whole in sentences:
            sentence = whole
            if lead := _ROW_LEAD.match(whole):
                if self._keys(lead[0]) & self._binding:
                    yield _bare(whole)
                    continue
                about = "" if self._is_neutral(lead[0]) else f"{lead[0].rstrip()} "
                sentence = whole[lead.end() :]
            if self._keys(sentence) & self._binding:
                yield about + _bare(sentence)
                continue
            marks = [mark for mark in cut_at(BETWEEN, sentence) if self._is_between(mark, sentence)]
            edges = [0, *(edge for mark in marks for edge in mark.span()), len(sentence)]
            parts = [sentence[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]
            parts = [part for part in parts if part]
            parts = [part for part in parts if not self._is_chat(part)] or parts
            if len(parts) == 1:
                parts = [self._only_item(parts[0])]
            elif parts:
                first = self._after_lead(after_unspaced_lead(sentence, parts[0]))
                last = self._before_rest(parts[-1], shortest=2 if first == parts[0] else 1)
                parts = [first, *parts[1:-1], LAST_WORDS.sub("", last)]
            if " " in sentence and parts and parts[0] and parts[-1]:
                around = [
                    *self._spoken(sentence.partition(parts[0])[0]),
                    *self._spoken(sentence.rpartition(parts[-1])[2]),
                ]
                if not self._around.issuperset(word.key for word in around):  # "... are poisonous"
                    parts = [sentence]
            yield from (about + _bare(part) for part in parts)

    def _is_between(self, mark: re.Match[str], sentence: str) -> bool:
        """True if a mark stands between two items: "of" is a conjunction in Dutch and none in English.

        None does in "1. und 2. Bundesliga".
        """
        if _ORDINAL.search(sentence[max(0, mark.start() - 5) : mark.start()]):
            return False
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


def _json_in(text: str) -> tuple[str, Any, str]:
    """The first array or object of JSON in a text, with what stands before and after it; None without one."""
    begun = _JSON.search(text)
    try:
        value, end = json.JSONDecoder().raw_decode(text, begun.end()) if begun else (None, 0)
    except (ValueError, RecursionError):
        return text, None, ""
    before, after = (text[: begun.end()].strip(), text[end:].strip()) if begun else (text, "")
    is_list = isinstance(value, list) and all(isinstance(item, (str, dict)) for item in value)
    if not (is_list or isinstance(value, dict)) or (not value and before + after):  # "[1] handbook.pdf", "[ ] open"
        return text, None, ""
    return before, value, after


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _with_titles(lines: Sequence[Line], *, marked: bool) -> Iterator[Line]:
    """Yield the lines of a list; those before its first mark are titles, and so is a line in bold right above one.

    One that stands apart from the items above it and not from those below it is both: a note and a title.
    """
    is_before = marked
    for line, below in zip_longest(lines, lines[1:]):
        title = line._replace(is_title=True)
        is_above = line.indent < 0 and below is not None and below.indent >= 0
        is_before = is_before and line.indent < 0
        if is_before or (not marked and is_above and _BOLD.fullmatch(line.text)):
            yield title
            continue
        yield line
        if marked and is_above and line.after_blank and not (line.is_title or below is None or below.after_blank):
            yield title


def _without_fences(text: str) -> str:
    return "\n".join(row for row in text.splitlines() if not row.lstrip().startswith(("```", "~~~")))


def _plain(text: str) -> str:
    """A text without emphasis."""
    return _EMPHASIS.sub("", text).strip()


def _joined(statements: Sequence[str]) -> str:
    """Statements that belong together, as one."""
    *first, last = statements
    return " ".join([*(each if each[-1:] in ".!?…。" else f"{each};" for each in first), last])


def _bare(item: str) -> str:
    """An item without emphasis, quotation marks and the punctuation at its end."""
    plain = without_punctuation(_plain(item)).strip() or item.strip()
    return f"{plain}?" if _IS_QUESTION.search(item) and not plain.endswith("?") else plain
