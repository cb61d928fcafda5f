"""Dissent in words, and forms of one answer that are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.answer import Dissent
from robustrag_integrations.languages import language_of, stop_words

_MOST_NAMED = 3


def variants_of(answer: str | None, keys: Iterable[str], question: str) -> frozenset[str]:
    """Return the keys that are longer or shorter forms of the answer's: "mayor ruth penn" of "ruth penn".

    One stands in the other at word boundaries, and what it has more is content words of the question's language alone:
    with a stop word, such as a "not", or a digit, it is another answer. None in a language that is not known.
    """
    language = language_of(question)
    if answer is None or language is None:
        return frozenset()
    small = stop_words(language)
    return frozenset(key for key in keys if key != answer and _is_form(answer, key, small))


def _is_form(answer: str, key: str, small: frozenset[str]) -> bool:
    short, long = sorted((answer, key), key=len)
    before, found, after = f" {long} ".partition(f" {short} ")
    rest = f"{before} {after}".split()
    return bool(found) and all(word.isalpha() and word.casefold() not in small for word in rest)


def dissent_warnings(dissent: Sequence[Dissent], answering: int) -> list[str]:
    """Name the sources that answer something else, with their words."""
    if not dissent:
        return []
    groups = sum(len(found.groups) for found in dissent)
    named = "; ".join(
        f"{printable(found.text, 60)!r} ({printable(', '.join(found.origins), 60)}{', unsure' * found.unsure})"
        for found in dissent[:_MOST_NAMED]
    )
    more = f"; and {len(dissent) - _MOST_NAMED} more" if len(dissent) > _MOST_NAMED else ""
    return [f"{groups} of {answering} answering sources {'say' if groups != 1 else 'says'} otherwise: {named}{more}"]
