"""What the final prompt shows of the retained keywords.

A group gives marks beside its keywords, which are counted like keywords against the same threshold:

- the form mark (w, s) of each of its keywords w that its reply writes as s;
- the alone mark of each keyword w that is no part of another keyword of its own.

The list is a function of the set of what is retained, marks included, and of nothing else: not of counts. So it stays
as long as the keywords stay and those marks stay that decide something (`_deciding`). A mark holds a NUL character,
which no keyword does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product

from robustrag_integrations.defenses.agreement.runs import alone, parts_of
from robustrag_integrations.defenses.agreement.tally import KeywordTally, votes_for
from robustrag_integrations.defenses.agreement.written import WrittenReply, is_as_counted
from robustrag_integrations.plans.asking import Reading

_FORM, _ALONE = "\0written ", "\0alone"
_FAR = 1 << 62
_FEW = 16  # keywords


def form_mark(keyword: str, form: str) -> str:
    """The mark of a group that writes a keyword so."""
    return f"{keyword}{_FORM}{form}"


def alone_mark(keyword: str) -> str:
    """The mark of a group that says a keyword other than as a part of another one."""
    return keyword + _ALONE


def marks_of(text: str, keywords: Collection[str], spelled: Collection[str], hidden: Collection[str]) -> frozenset[str]:
    """One group's marks, a function of its reply alone for each keyword.

    Args:
        text: its reply.
        keywords: its keywords.
        spelled: the keywords whose form marks are asked for.
        hidden: those whose alone marks are.
    """
    own = frozenset(keywords)
    shaded = own.intersection(hidden)
    found = set(map(alone_mark, alone(shaded, own))) if shaded else set[str]()
    written = WrittenReply(text)
    for word in own.intersection(spelled):
        if (form := written.form_of(word)) is not None:
            found.add(form_mark(word, form))
    return frozenset(found)


def with_marks(
    readings: Sequence[Reading[frozenset[str]]], counted: Collection[str], hidden: Collection[str]
) -> list[frozenset[str] | None]:
    """The marks of each group (`marks_of`); None for one that abstains. Equal replies are looked at once.

    Args:
        readings: what the groups said.
        counted: the keywords whose marks are asked for: no others can decide anything.
        hidden: those of them that are `shadowed` by others.
    """
    spelled = list(filter(is_as_counted, counted))  # others count to the letter
    found: dict[tuple[str, frozenset[str]], frozenset[str]] = {}
    marks: list[frozenset[str] | None] = []
    for reading in readings:
        if reading.found is None:
            marks.append(None)
            continue
        reply = (reading.response.text or "", reading.found)
        if reply not in found:
            found[reply] = marks_of(*reply, spelled, hidden)
        marks.append(found[reply])
    return marks


@dataclass(frozen=True)
class KeywordList:
    """The list of an answer, and what it stands on.

    Attributes:
        shown: its entries.
        counted: per group its keywords and those of its marks that decide something; None for an abstention.
        decisive: what is retained of these, sorted: while that stays, the list stays.
    """

    shown: tuple[str, ...]
    counted: list[frozenset[str] | None]
    decisive: tuple[str, ...]


def list_of(readings: Sequence[Reading[frozenset[str]]], tally: KeywordTally, weights: Sequence[int]) -> KeywordList:
    """The list of what these groups said, given the count of their keywords."""
    hidden = shadowed(tally.retained)
    marks = with_marks(readings, tally.retained, hidden)
    counts = votes_for(marks, weights)
    needed = math.ceil(tally.mu)
    kept = frozenset(mark for mark, count in counts.items() if count >= needed)
    listed = _listed(tally.retained, hidden, kept)
    decisive = _deciding(listed, hidden, kept, counts, tally.mu)
    said = [None if given is None else (reading.found, given) for reading, given in zip(readings, marks, strict=True)]
    counted = {
        each: (each[0] or frozenset()) | (each[1] & decisive) for each in dict.fromkeys(said) if each is not None
    }
    return KeywordList(
        _shown(listed, kept),
        [None if each is None else counted[each] for each in said],
        tuple(sorted((*tally.retained, *(decisive & kept)))),
    )


def shadowed(keywords: Collection[str]) -> frozenset[str]:
    """The keywords that are a part of another one."""
    if len(keywords) <= _FEW:  # to compare them takes less than to list all parts
        return frozenset(keywords) - alone(keywords, keywords)
    return frozenset(keywords).intersection(chain.from_iterable(map(parts_of, keywords)))


def shown_keywords(retained: Collection[str]) -> tuple[str, ...]:
    """The list of the final prompt, in the order of the keywords.

    A part of a retained phrase is left out unless its alone mark is retained. A keyword is shown in its retained form;
    of several in the one that `_rank` puts first; if none is retained as it is counted.

    Args:
        retained: keywords and marks.
    """
    keywords = [w for w in retained if not is_mark(w)]
    return _shown(_listed(keywords, shadowed(keywords), retained), retained)


def _shown(listed: Sequence[str], marks: Collection[str]) -> tuple[str, ...]:
    forms = _forms(marks)
    return tuple(dict.fromkeys(min(forms.get(w, [w]), key=_rank) for w in listed))


def _deciding(
    listed: Sequence[str], hidden: Collection[str], kept: Collection[str], counts: Mapping[str, int], mu: Fraction
) -> frozenset[str]:
    """Marks of which the list depends: while they stay, and the retained keywords, the list stays.

    These are the alone marks of retained parts, and of each listed keyword the form that is shown and those that would
    come before it. A keyword that is shown as it is counted stays so, too, while all other forms stay out. Of the two
    the one is taken that is further from the threshold: each is enough.

    Args:
        listed: the keywords that the list shows.
        hidden: the retained keywords that are a part of another one.
        kept: the retained marks.
        counts: how many votes each mark has.
        mu: the threshold.
    """
    forms = _forms(counts)
    found = set(map(alone_mark, hidden))
    unit, middle = 2 * mu.denominator, 2 * mu.numerator - mu.denominator  # mu - 1/2, in whole numbers
    for word in listed:
        ranked = sorted(forms.get(word, ()), key=_rank)
        if len(ranked) <= 1:  # it is the only one that may be shown in the place of the keyword as it is counted
            found |= {form_mark(word, form) for form in ranked if form != word}
            continue
        shown = [form for form in ranked if form_mark(word, form) in kept]
        ways = [ranked[: ranked.index(shown[0]) + 1]] if shown else []
        if set(shown) <= {word}:
            ways.append([form for form in ranked if form != word])
        slack = [[abs(unit * counts[form_mark(word, form)] - middle) for form in way] for way in ways]
        best = max(range(len(ways)), key=lambda i: min(slack[i], default=_FAR))
        found |= {form_mark(word, form) for form in ways[best]}
    return frozenset(found).intersection(counts)


def possible_lists(
    keywords: Collection[str], always: Collection[str], contested: Collection[str]
) -> Iterator[tuple[str, ...]]:
    """All lists of a set of retained keywords next to marks of which an attacker decides on some.

    Args:
        keywords: what is retained, marks aside.
        always: marks that are retained in any case.
        contested: marks that the attacker has retained or not, each for itself.
    """
    certain, open_forms = _forms(always), _forms(contested)
    hidden = shadowed(keywords) - frozenset(w for w in keywords if alone_mark(w) in always)
    choices: list[list[str | None]] = []
    for word in sorted(keywords):
        if word in hidden and alone_mark(word) not in contested:
            continue
        best = min(certain.get(word, ()), key=_rank, default=word)
        better = [f for f in open_forms.get(word, ()) if word not in certain or _rank(f) < _rank(best)]
        choices.append([best, *better, *([None] if word in hidden else [])])
    for chosen in product(*choices):
        yield tuple(dict.fromkeys(form for form in chosen if form is not None))


def settled(keywords: Collection[str], always: Collection[str], marks: Collection[str]) -> frozenset[str]:
    """Those of the keywords that appear in no list and hide nothing: parts of what is always retained, never alone.

    Args:
        keywords: what may be retained.
        always: what is retained in any case.
        marks: those that may be retained.
    """
    hidden = frozenset[str]().union(*map(parts_of, always))
    unseen = (w for w in keywords if w in hidden and alone_mark(w) not in marks)
    return frozenset(w for w in unseen if hidden.issuperset(parts_of(w).intersection(keywords)))


def _listed(keywords: Collection[str], hidden: Collection[str], marks: Collection[str]) -> Sequence[str]:
    """The keywords that a list shows, in its order: all but those that are hidden and have no alone mark."""
    return sorted(w for w in keywords if w not in hidden or alone_mark(w) in marks)


def is_mark(text: str) -> bool:
    """Whether something that was counted is a mark and no keyword."""
    return "\0" in text


def _forms(marks: Collection[str]) -> Mapping[str, list[str]]:
    """The forms of each keyword among these marks."""
    found: dict[str, list[str]] = {}
    for mark in marks:
        keyword, is_form, form = mark.partition(_FORM)
        if is_form:
            found.setdefault(keyword, []).append(form)
    return found


def _rank(form: str) -> tuple[int, int, str]:
    """Which of several forms is shown, the smallest: a spelling with capitals within it ("Karl Gross", "iPhone") before
    lower case, that before a single capital, which may be that of a sentence, that before capitals throughout."""
    if form.isupper() and len(form) > 1:
        return 3, len(form), form
    within = any(map(str.isupper, form[1:]))
    return 0 if within else 1 + form[:1].isupper(), len(form), form
