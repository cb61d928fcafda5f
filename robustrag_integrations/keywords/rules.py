"""The keyword set of a tagged response (paper, appendix "Implementation of keyword extraction").

The keywords are

1. the lemma of every informative word: ADJ ADV NOUN NUM PROPN SYM X (of a name also the word as written);
2. the keyphrases: informative words in a row with nothing uninformative between them, nouns as lemmas;
3. the whole response if it is short, so that equal answers match however they are tagged.

Beyond the paper: a hyphenated word comes whole, with its parts and without its hyphen; a quantity comes whole and
comparable (`quantities`); quoted titles and names held together by "of" are phrases too; a word with diacritics or an
apostrophe also comes without; a leading yes or no counts; a response that is only a verb gives that verb. Symbols, and
words that fit any answer ("very", "there"), are not keywords.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from robustrag_integrations.keywords.closed_classes import ARTICLES, NAME_LINKS, listed
from robustrag_integrations.keywords.han import simplified
from robustrag_integrations.keywords.languages import VERDICTS
from robustrag_integrations.keywords.normalise import as_keyword, as_keywords, without_accents
from robustrag_integrations.keywords.other_languages import keywords_of_line, whole_reply
from robustrag_integrations.keywords.words import Item, TaggedWord, items_of

RULES_VERSION = "6"
MAX_PHRASE_WORDS = 8
MAX_WHOLE_WORDS = 12

_QUOTED = re.compile(r"\"([^\"]{1,120})\"|(?<!\w)'([^']{1,120})'(?!\w)")
_NEGATIONS = {"not": "not", "n't": "not", "n’t": "not", "never": "never", "cannot": "not"}
_BETWEEN = frozenset(listed("a an the be been being to at all very really yet so have had in any"))
_NO_NEGATION = frozenset(listed("only just because merely simply until least"))
_WITHIN_TITLES = listed("a an the and but or nor for in on at to with without from of by as is")
_TITLE = re.compile(
    rf"\b[A-Z][\w'-]{{0,40}}(?:(?: (?:{'|'.join(_WITHIN_TITLES)})){{0,3}}"
    r" [A-Z][\w'-]{0,40}){1,7}"
)
_MAY_HOLD_A_TITLE = frozenset(_WITHIN_TITLES)  # a line without any of these as a word holds none
_FIRST_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0900-\u0963])*")
_CLAUSE_ENDS = frozenset(",;:.!?()-")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=\w)")
_PREFIX = re.compile(r"\b(e|co|re|pre|non|anti|un|multi|semi|sub|inter)-(?=[^\W\d_])")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")


def keywords_of(lines: Sequence[str], tagged: Sequence[Sequence[TaggedWord]]) -> frozenset[str]:
    """Return the keywords of one response.

    Args:
        lines: its plain lines.
        tagged: the words of every line.
    """
    items = [items_of(words, line) for words, line in zip(tagged, lines, strict=True)]
    found = set[str]()
    for line, row in zip(lines, items, strict=True):
        found.update(_of_line(row, line))
    found = found or set(_actions(tagged))
    whole = _whole_response(items, lines)
    found.update(whole, _verdict(items))
    if len(items) > 1 or not whole:
        found.update(_clauses(items))
    counted = as_keywords(found)
    odd = [keyword for keyword in counted if "-" in keyword or "'" in keyword or not keyword.isascii()]
    counted.update(as_keyword(variant) for keyword in odd for variant in _variants(keyword))
    counted.discard("")
    return frozenset(counted)


def keywords_in(lines: Sequence[str], language: str) -> frozenset[str]:
    """Return the keywords of one response in a language that no tagger reads."""
    found = {keyword for line in lines for keyword in keywords_of_line(line, language)}
    if whole := whole_reply(lines, language):
        found.add(whole)
    if lines and (first := _FIRST_WORD.match(lines[0])) and first[0].casefold() in VERDICTS:
        found.add(first[0])
    counted = {as_keyword(keyword) for keyword in found}
    counted |= {without_accents(as_keyword(keyword)) for keyword in found if keyword[:1].isupper()}
    if language == "zh":
        counted |= {simplified(keyword) for keyword in counted}
    return frozenset(counted - {""})


def _of_line(row: Sequence[Item], line: str) -> list[str]:
    items = _negated(row)
    found: list[str] = []
    run: list[Item] = []
    for item in items:
        if item.informative:
            found += item.alone
            run.append(item)
        elif run:
            found += _phrases(run)
            run = []
    found += _phrases(run)
    written = [item.written for item in items]
    if not NAME_LINKS.isdisjoint(written):
        found += _linked_names(items)
    if not _MAY_HOLD_A_TITLE.isdisjoint(line.split()):
        found += _titles(line)
    if '"' in line or "'" in line:
        found += _quoted_titles(row, line)
    return found


def _negated(items: Sequence[Item]) -> Sequence[Item]:
    """Join a negation and the word that it negates to one item: "not effective" is another phrase than "effective"."""
    if _NEGATIONS.keys().isdisjoint("\0".join([item.written for item in items]).casefold().split("\0")):
        return items
    joined: list[Item] = []
    negation: Item | None = None
    for item in items:
        folded = item.written.casefold()
        if folded in _NEGATIONS:
            negation = item
        elif negation is not None and item.wordlike and folded not in _BETWEEN:
            if folded not in _NO_NEGATION:
                shown = f"{_NEGATIONS[negation.written.casefold()]} {item.shown}"
                item = Item.of(shown, shown, (shown,), True, item.start, item.end)
            negation = None
        elif not item.wordlike:
            negation = None
        joined.append(item)
    return joined


def _phrases(run: Sequence[Item]) -> list[str]:
    """Return a run of informative words as a phrase; one that is too long in pieces."""
    if len(run) < 2:
        return []
    words = [item.shown for item in run if item.wordlike]
    pieces = [words[first : first + MAX_PHRASE_WORDS] for first in range(0, len(words), MAX_PHRASE_WORDS)]
    return [" ".join(piece) for piece in pieces if len(piece) > 1]


def _linked_names(items: Sequence[Item]) -> Iterator[str]:
    """Yield "Lord of the Rings", "Bank of America": capitalised stretches held together by small words."""
    if not any(after.written in NAME_LINKS and item.written[:1].isupper() for item, after in pairwise(items)):
        return

    def kind(item: Item) -> str:
        if item.written in NAME_LINKS:
            return "link"
        return "name" if item.informative and item.written[:1].isupper() else "other"

    stretches = [(name, list(group)) for name, group in groupby(items, key=kind)]
    for (first, left), (middle, link), (last, right) in zip(stretches, stretches[1:], stretches[2:], strict=False):
        names_linked = (first, middle, last) == ("name", "link", "name")
        if names_linked and len(left) + len(link) + len(right) <= MAX_PHRASE_WORDS and link[0].written != "the":
            yield " ".join(item.written for item in [*left, *link, *right])


def _titles(line: str) -> Iterator[str]:
    """Yield "Everything but the Rain": capitalised words with up to three small words between them."""
    for match in _TITLE.finditer(line):
        words = match[0].split()
        if len(words) <= MAX_PHRASE_WORDS and not all(word[0].isupper() for word in words):
            yield " ".join(_without_article(words))


def _quoted_titles(items: Sequence[Item], line: str) -> Iterator[str]:
    """Yield what stands in quotes, if it is no longer than a phrase."""
    starts = [item.start for item in items]
    for match in _QUOTED.finditer(line):
        inside = items[bisect_left(starts, match.start() + 1) : bisect_left(starts, match.end() - 1)]
        words = [item.written for item in _rejoined(inside)]
        if len(words) <= MAX_PHRASE_WORDS:
            yield " ".join(_without_article(words))


def _actions(tagged: Sequence[Sequence[TaggedWord]]) -> Iterator[str]:
    """Yield the verbs, for a response that says nothing else ("He resigned.")."""
    for words in tagged:
        for word in words:
            if word.pos == "VERB":
                yield from (word.text, word.lemma)


def _verdict(items: Sequence[Sequence[Item]]) -> list[str]:
    """Return the yes or no that a response begins with."""
    rows = list(filter(None, items))
    first = rows[0][0].written if rows else ""
    return [first] if first.casefold() in ("yes", "no") else []


def _whole_response(items: Sequence[Sequence[Item]], lines: Sequence[str]) -> list[str]:
    """Return a short response as one keyword, without its article, final possessive and punctuation."""
    words = [item.written for row in items for item in _rejoined(row)]
    if not words:
        return [line for line in lines if len(line.split()) <= MAX_WHOLE_WORDS][:1]
    if words[-1].casefold().endswith("'s"):
        words[-1] = words[-1][:-2]
    return [" ".join(_without_article(words))] if len(words) <= MAX_WHOLE_WORDS else []


def _clauses(items: Sequence[Sequence[Item]]) -> Iterator[str]:
    """Yield the lines of a list and the clauses of prose that are no longer than a short response."""
    for row in items:
        for inside, group in groupby(row, key=lambda item: item.written not in _CLAUSE_ENDS):
            words = [item.written for item in _rejoined(list(group))] if inside else []
            if 1 < len(words) <= MAX_WHOLE_WORDS:
                yield " ".join(_without_article(words))


def _rejoined(row: Sequence[Item]) -> list[Item]:
    """Return the words of a line with contractions and possessives put back together."""
    if "'" not in "".join([item.written for item in row]):
        return [item for item in row if item.wordlike]
    joined: list[Item] = []
    for item in row:
        if joined and item.start == joined[-1].end and "'" in item.written:
            last = joined[-1]
            written = last.written + item.written
            joined[-1] = Item.of(written, written, (), last.informative, last.start, item.end)
        elif item.wordlike:
            joined.append(item)
    return joined


def _without_article(words: Sequence[str]) -> Sequence[str]:
    return words[1:] if len(words) > 1 and words[0].casefold() in ARTICLES else words


def _variants(keyword: str) -> set[str]:
    """Return the other ways in which the same thing is often written."""
    plain = without_accents(keyword)
    unhyphenated = _HYPHEN.sub(" ", _PREFIX.sub(r"\1", keyword))
    unquoted = _APOSTROPHE.sub("", keyword)
    everything = _APOSTROPHE.sub("", _HYPHEN.sub(" ", _PREFIX.sub(r"\1", plain)))
    return {plain, unhyphenated, unquoted, everything, simplified(keyword)}
