"""How each group words what was agreed on, read off its own response."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from robustrag_integrations.defenses.agreement.runs import longest
from robustrag_integrations.defenses.consensus.counting import Wording
from robustrag_integrations.keywords.normalise import as_keyword
from robustrag_integrations.keywords.quantities import find_quantities
from robustrag_integrations.mentions import mentions

_MOST_PHRASES = 40
_LONGEST_WINDOW = 200  # characters
_MINUS = tuple("-\u2212\u2010\u2011\u2013")
_HYPHENS = str.maketrans(dict.fromkeys(_MINUS, "-"))
_LONGEST_LINE = 1_000  # characters that are looked through for amounts


def phrases_of(agreed: Collection[str]) -> tuple[str, ...]:
    """The agreed phrases that are no part of another one, in the order of a list; it is a function of them alone."""
    return tuple(sorted(longest(agreed))[:_MOST_PHRASES])


def wordings_of(
    said: Sequence[tuple[str | None, frozenset[str] | None]], agreed: Collection[str], phrases: Sequence[str]
) -> list[Wording]:
    """Each group's wording, a function of what it says; of groups that say the same it is looked for once.

    Args:
        said: per group its response, None if it failed, and its keywords, None if it abstained.
        agreed: what was agreed on.
        phrases: `phrases_of` that.
    """
    worded = {each: _wording(*each, agreed, phrases) for each in dict.fromkeys(said)}
    return [worded[each] for each in said]


def _wording(
    text: str | None, keywords: frozenset[str] | None, agreed: Collection[str], phrases: Sequence[str]
) -> Wording:
    if text is None or keywords is None:
        return Wording()
    found = {p: places for p in phrases if p in keywords and (places := _places(p, text))}
    forms = {phrase: _written(text, *places[0]) for phrase, places in found.items()}
    says_all = bool(found) and keywords.issuperset(agreed)
    return Wording(_window(text, list(found.values())) if says_all else None, forms)


def _places(phrase: str, text: str) -> list[tuple[int, int]]:
    """Where a phrase is mentioned; an amount with its sign and its unit, of which its mention may have neither."""
    places = mentions(phrase, text.translate(_HYPHENS))
    if not any(map(str.isdigit, phrase)):
        return places
    if not places and len(text) <= _LONGEST_LINE:  # "five miles" for "5 mile"
        return [(a.start, a.end) for a in find_quantities(text) if phrase in map(as_keyword, a.forms)]
    return [_whole_amount(phrase, text, start, end) for start, end in places]


def _whole_amount(phrase: str, text: str, start: int, end: int) -> tuple[int, int]:
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    for amount in find_quantities(line) if len(line) <= _LONGEST_LINE else ():
        first, last = line_start + amount.start, line_start + amount.end
        if first < end and start < last and f" {as_keyword(amount.forms[0])} " in f" {phrase} ":
            start, end = min(start, first), max(end, last)
    return start - (phrase.startswith("-") and text[start - 1 : start] in _MINUS), end


def _window(text: str, places: Sequence[Sequence[tuple[int, int]]]) -> str | None:
    """The shortest part of the text with a mention of each phrase, the first among equals; None if it is long."""
    marks = sorted((start, end, phrase) for phrase, spans in enumerate(places) for start, end in spans)
    best: tuple[int, int] | None = None
    last: dict[int, tuple[int, int]] = {}
    for start, end, phrase in marks:
        last[phrase] = (start, end)
        if len(last) == len(places):
            begin, stop = min(s for s, _ in last.values()), max(e for _, e in last.values())
            if best is None or stop - begin < best[1] - best[0]:
                best = (begin, stop)
    return _written(text, *best) if best is not None and best[1] - best[0] <= _LONGEST_WINDOW else None


def _written(text: str, start: int, end: int) -> str:
    return " ".join(text[start:end].split())
