"""The items of the lists in a reply: where single words are phrases, too.

A list is lines of a few words, marked or numbered items, or words in a row that commas and a last "and" hold together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from robustrag_integrations.keywords.closed_classes import ARTICLES, FUNCTION_WORDS, listed
from robustrag_integrations.keywords.languages import language_of, stop_words
from robustrag_integrations.keywords.normalise import MAX_CHARACTERS, plain_lines

_MOST_ITEMS = 100
_LONGEST_ITEM = 3  # words
_LONGEST_UNSPACED = 12  # characters
_MARK = re.compile(r"\s{0,20}(?:[-*•+–‣▪]|\(?\d{1,2}[.)、]|[(]?[a-h][.)])\s{0,5}(?=\S)")
_NUMBERS = re.compile(r"(?:^|\s)\(?\d{1,2}[.)]\s(?=\S)")
_EXPLAINED = re.compile(r":\s|：|\s[-(]")
_CLAUSE_ENDS = re.compile(r"[.!?](?:\s|$)|[。！？：()（）]|:\s")
_EAST = "\u3041-\u30ff\u3400-\u9fff"
AND = (
    "and|or|und|oder|sowie|et|ou|y|e|o|ed|i|oraz|lub|и|или|та|і|або|ve|veya|và|hoặc|en|of|och|eller|و|أو|और|या|및|"
    "그리고|&|as well as"
)
BETWEEN = re.compile(
    rf"(?:,(?=\s|[^\W\d])|[;、，；]|(?<=[^\W\d_]{{3}})/(?=[^\W\d_]{{3}}))\s*(?P<last>(?:{AND})\s+|以及|或)?|\s+(?P<joint>{AND})\s+"
    rf"|(?<=[{_EAST}])(?P<east>と|や|及び|および|和|与|與|及|以及|或)(?=[{_EAST}]{{2}})"
)
LAST_WORDS = re.compile(r"(?:です|でした|である|だ|など)?[.。!？?]*\Z")
_OTHER_ARTICLES = frozenset(
    listed("der die das den dem ein eine einen le la les un une el los las il lo i gli o os as de het")
)
_UNSPACED = re.compile(f"[{_EAST}]")
_LEADS = re.compile("[\u3041-\u3096]+|包括|[是有为為在]")  # between "the towns are" and the first of them


def items_of_lists(text: str) -> Iterator[str]:
    """Yield the items of the lists in a reply, without articles; of a hostile one the first hundred."""
    found = dict.fromkeys(item for item in _items(text[:MAX_CHARACTERS]) if item)
    yield from list(found)[:_MOST_ITEMS]


def _items(text: str) -> Iterator[str]:
    rows = [(bool(_MARK.match(row)), " ".join(plain_lines(_MARK.sub("", row, count=1)))) for row in text.splitlines()]
    rows = [(marked, line) for marked, line in rows if line]
    small = stop_words(language_of("\n".join(line for _, line in rows)) or "en") | FUNCTION_WORDS
    for marked, line in rows:
        pieces = [piece for piece in _NUMBERS.split(line) if piece.strip()]
        if len(pieces) < 2:
            pieces = [line]
        for piece in pieces:
            if marked or len(pieces) > 1:
                yield _item(_EXPLAINED.split(piece)[0], small)
            elif len(rows) > 1 and not piece.endswith((":", "：")):
                yield _item(piece, small)
            for clause in _CLAUSE_ENDS.split(piece):
                yield from _in_a_row(clause, small, whole=clause.strip(" .") == piece.strip(" ."))


def _in_a_row(clause: str, small: frozenset[str], *, whole: bool) -> Iterator[str]:
    """Yield the items of "Paris, London and Rome", and those within "It is made of copper, nickel and zinc today"."""
    marks = [match for match in BETWEEN.finditer(clause) if not match["east"] or "、" in clause or "，" in clause]
    edges = [0, *(edge for match in marks for edge in match.span()), len(clause)]
    parts = [clause[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]
    parts = [part for part in parts if part]
    if len(parts) < 2:
        return
    parts[0] = after_unspaced_lead(clause, parts[0])
    joined = bool(marks[-1]["last"] or marks[-1]["joint"])
    articled = [part.split()[0].casefold() in ARTICLES | _OTHER_ARTICLES for part in parts]
    if any(articled) and not articled[-1] and not joined:
        return  # "A tall man, a doctor, came"
    items = [_item(part, small) for part in parts]
    if all(items) and (whole or len(parts) > 2):
        yield from items
        return
    if len(parts) > 2 and all(items[1:-1]) and (joined or len(parts) > 3):
        yield from (parts[0].split()[-1], *items[1:-1], items[-1] or parts[-1].split()[0])


def after_unspaced_lead(clause: str, part: str) -> str:
    """The first part of a clause without what leads to it, in a script without spaces."""
    if _UNSPACED.search(clause) and " " not in part:
        return _LEADS.split(part)[-1] or part
    return part


def _item(part: str, small: frozenset[str]) -> str:
    """A part without its article and full stop; empty if it is more than a few words or holds a small word."""
    bare = LAST_WORDS.sub("", part.strip(" \"'"))
    words = bare.split()
    if len(words) > 1 and words[0].casefold() in ARTICLES | _OTHER_ARTICLES:
        words = words[1:]
    if not 0 < len(words) <= _LONGEST_ITEM or any(word.casefold() in small for word in words):
        return ""
    return " ".join(words) if " " in bare or bare.isascii() or len(bare) <= _LONGEST_UNSPACED else ""
