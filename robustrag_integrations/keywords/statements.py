"""A reply cut into statements, where its writer ends one and nowhere else.

Cuts are made 1) between lines, bullets and numbers that count up, so not after the day of "3. März", 2) at the ends of
sentences and at semicolons, but not inside quotation marks, brackets and code. A line that was only broken to fit a
page goes on in the next one. In doubt there is no cut: two statements that stay together are shared by fewer groups,
and nothing is torn apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from robustrag_integrations.keywords.lists import AND

_FENCE = re.compile(r"[ \t]{0,20}(?:```|~~~)")
_MARK = re.compile(
    # Without a space "0.5 mg" and "2:1" are amounts; a letter with a full stop is an initial.
    r"([ \t]{0,40})(?:[-*•+–‣▪]\s{1,5}(?:\[[ xX]\]\s{1,5})?|\(?\d{1,3}[.):](?:\s{1,5}|(?=[\u3040-\u9fff]))|"
    r"\(?\d{1,3}\)?、\s{0,5}|\(?[a-h]\)\s{1,5}|"
    r"\**(?:step|schritt|étape|paso|passo|passaggio|stap) \d{1,3}\**[.:)]\**\s{0,5})(?=\S)",
    re.I,
)
# After "1." where it is an ordinal: "1. und 2. Bundesliga", "1. 5. 2020", "1. Mai" in the languages that write it so.
_ORDINAL = (
    rf"(?:(?:{AND}|bis|[-–—])\s|\d{{1,2}}\. ?\d{{4}}\b|"
    "(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
    "|januar|februar|marts|mars|april|ma[ij]|juni|juli|august|september|oktober|november|de[cs]ember"
    "|ledna|února|března|dubna|května|června|července|srpna|září|října|listopadu|prosince"
    "|januára|februára|marca|apríla|mája|júna|júla|augusta|septembra|okt[oó]bra|novembra|decembra"
    "|januar(?:ja|a)|februar(?:ja|a)|marta|aprila|maja|juni?ja|juli?ja|jula|juna|avgusta"
    "|siječnja|veljače|ožujka|travnja|svibnja|lipnja|srpnja|kolovoza|rujna|listopada|studenoga?|prosinca"
    "|(?:tammi|helmi|maalis|huhti|touko|kesä|heinä|elo|syys|loka|marras|joulu)kuuta"
    "|jaanuar|veebruar|märts|aprill|juuni|juuli|detsember|janúar|febrúar|apríl|maí|júní|júlí|ágúst|október|nóvember)\\b)"
)
_STOPPED = re.compile(rf"[ \t]{{0,40}}(\d{{1,3}})\.\s{{1,5}}(?!{_ORDINAL})(?=\S)")
_SHORT_FENCE = re.compile(r"[ \t]{0,20}```([^`\n]*[^`\s])\s*```[ \t]*")
_TITLE = re.compile(r"(#{1,6}) +(.+)")
_NUMBER = re.compile(rf"(?:\A|(?<=\s))\(?(\d{{1,2}})[.)] (?!{_ORDINAL})(?=\S)")
_HARD_LINE = 60  # characters from which a line without an end may go on in the next one
_SOFT_LINE = 30  # the same where the next one begins with a small letter
_OPENS = {"(": ")", "[": "]", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』", "《": "》", '"': '"', "`": "`"}
_LONGEST_SPAN = 300  # characters; what is opened and not closed by then was never opened
_END = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？।؟]+[”」』）]?(?=.)|[;；](?=\s)")
_NO_END = re.compile(
    r"(?:\b[^\W\d]|\b[A-Z]\w{0,2}|\b\w\.\w|(?<!\d)\d{1,2}|\b(?i:vol|pp|no|nr|ca|bzw|usw|etc|approx|prof))\.\Z"
)


class Line(NamedTuple):
    """A line of a reply without its mark.

    Attributes:
        text: its words.
        indent: the indent of its mark; -1 for a line without one, less for a heading of a section.
        is_code: True for a fenced block of code.
        is_title: True if it says what the next lines are about.
        is_step: True if its mark is a number.
        margin: the indent of the line itself.
        after_blank: True if an empty line stands before it.
    """

    text: str
    indent: int = -1
    is_code: bool = False
    is_title: bool = False
    is_step: bool = False
    margin: int = 0
    after_blank: bool = False


def lines_of(text: str, *, as_list: bool = False) -> Iterator[Line]:
    """Cut a text into lines, a block of code being one and a line that was broken to fit a page whole again.

    Args:
        text: a reply.
        as_list: True if each line is an item; only an indented line then belongs to the marked one above it.
    """
    rows = iter(text.splitlines())
    numbers = {int(found[1]) for row in text.splitlines() if (found := _STOPPED.match(row))}
    open_line: Line | None = None
    last, is_blank = "", False
    for row in rows:
        if not as_list and (short := _SHORT_FENCE.fullmatch(row)):
            if open_line:
                yield open_line
            open_line, is_blank = None, False
            yield Line(short[1], is_code=True)
            continue
        if _FENCE.match(row):
            if open_line:
                yield open_line
            open_line = None
            code = []
            for inner in rows:
                if _FENCE.match(inner):
                    break
                code.append(inner)
            if block := "\n".join(code).strip():
                yield Line(block, is_code=True)
            is_blank = False
            continue
        mark = _mark(row, numbers)
        line = _line(row, mark)
        if open_line and (not line or mark or not _goes_on(open_line, last, row, as_list=as_list)):
            yield open_line
            open_line = None
        if line:
            joined = open_line and open_line._replace(text=f"{open_line.text} {line.text}")
            open_line, last = joined or line._replace(after_blank=is_blank), line.text
        is_blank = line is None
    if open_line:
        yield open_line


def _mark(row: str, numbers: set[int]) -> re.Match[str] | None:
    """The mark of a row; "2." is one next to a row of "1." or "3.", and the ordinal of "2. Bundesliga" alone is not."""
    mark = _MARK.match(row)
    if not mark or not re.fullmatch(r"\s*\d+\.\s+", mark[0]):
        return mark
    counted = _STOPPED.match(row)
    number = int(counted[1]) if counted else 0
    return mark if number == 1 or (counted and {number - 1, number + 1} & numbers) else None


def _line(row: str, mark: re.Match[str] | None) -> Line | None:
    text = row[mark.end() if mark else 0 :].strip()
    if not any(map(str.isalnum, text)):
        return None
    margin = _margin(row)
    if title := _TITLE.fullmatch(text):
        return Line(title[2].strip(" *#"), len(title[1]) - 10, is_title=True, margin=margin)
    indent = len(mark[1].expandtabs()) if mark else -1
    is_step = mark is not None and any(map(str.isdigit, mark[0]))
    return Line(text, indent, is_title=text.rstrip("*_ ").endswith((":", "：")), is_step=is_step, margin=margin)


def _margin(row: str) -> int:
    row = row.expandtabs()
    return len(row) - len(row.lstrip())


def _goes_on(line: Line, last: str, row: str, *, as_list: bool) -> bool:
    """True if a line, the last row of which is given, was broken to fit a page and goes on in this row without mark."""
    if line.is_title or last.rstrip("*_\"'”’»)")[-1:] in ".!?…。！？।؟;；":
        return False
    if line.indent >= 0 and _margin(row) > line.indent:
        return True
    is_cut = last.endswith(",") or len(last) >= (_SOFT_LINE if row.lstrip()[:1].islower() else _HARD_LINE)
    return is_cut and not as_list


def numbered_in(text: str, *, begun: bool = False) -> list[str]:
    """Cut "1. Install it. 2. Run it." at its numbers if they count up; else the text is all there is.

    Args:
        text: one line.
        begun: True if a number or bullet stood before it.
    """
    marks = list(_NUMBER.finditer(text))
    numbers = [int(mark[1]) for mark in marks]
    first = numbers[0] if begun and numbers[:1] == [2] else 1
    is_row = numbers == list(range(first, first + len(marks))) and first + len(marks) > 2
    if not is_row or (first == 1 and marks[0].start()):
        return [text]
    edges = [0, *(edge for mark in marks for edge in mark.span()), len(text)]
    pieces = [text[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return [piece for piece in pieces if piece]


def spans_in(text: str) -> list[tuple[int, int]]:
    """Return the places of quotations, brackets and code in a text, from the opening sign to past the closing one."""
    spans, at = [], 0
    while at < len(text):
        closing = _OPENS.get(text[at])
        end = text.find(closing, at + 1, at + _LONGEST_SPAN) if closing else -1
        if end >= 0:
            spans.append((at, end + 1))
        at = end + 1 if end >= 0 else at + 1
    return spans


def cut_at(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the matches of a pattern in a text that lie outside of quotations, brackets and code."""
    inside = bytearray(len(text) + 1)
    for start, end in spans_in(text):
        inside[start + 1 : end - 1] = b"\1" * (end - start - 2)
    return [match for match in pattern.finditer(text) if not inside[match.start()]]


def sentences_of(text: str) -> list[str]:
    """Cut a text at the ends of its sentences and at semicolons. Abbreviations, initials and "3." end none."""
    found, done = [], 0
    for end in cut_at(_END, text):
        before, after = text[max(done, end.start() - 12) : end.start() + 1], text[end.end() : end.end() + 9].lstrip()
        if end[0][:1] == "." and (_NO_END.search(before) or after[:1].islower()):
            continue
        found.append(text[done : end.end()].strip(" ;；"))
        done = end.end()
    return [sentence for sentence in (*found, text[done:].strip(" ;；")) if any(map(str.isalnum, sentence))]
