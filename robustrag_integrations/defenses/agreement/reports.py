"""Reports of answers that count keys: vote counts and dissent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.answer import Dissent
from robustrag_integrations.defenses.agreement.agreed import Worded
from robustrag_integrations.keywords.languages import language_of, stop_words
from robustrag_integrations.keywords.runs import ReplyKeys, longest

_MOST_COUNTS = 200
_MOST_NAMED = 3


def counts_shown(
    counts: Mapping[str, int], kept: Collection[str], replies: Sequence[ReplyKeys | None]
) -> dict[str, int]:
    """The counts of the most frequent keys, the kept ones among them, without parts of keys with the same count.

    Each key is named as the first reply writes it.
    """
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = dict(ranked[: max(_MOST_COUNTS, len(kept))])
    by_count: dict[int, list[str]] = {}
    for key, count in shown.items():
        by_count.setdefault(count, []).append(key)
    whole = {key for keys in by_count.values() for key in longest(keys)}
    named: dict[str, int] = {}
    for key in filter(whole.__contains__, shown):
        form = next((reply.forms[key] for reply in replies if reply is not None and key in reply.forms), key)
        named.setdefault(form, shown[key])
    return named


def unread_warnings(replies: Sequence[ReplyKeys | None]) -> list[str]:
    """Warn if an extractor found nothing in replies that answer."""
    answering = [reply for reply in replies if reply is not None]
    unread = sum(not reply.keys and not reply.is_echo for reply in answering)
    if not unread:
        return []
    return [
        f"extractor= found no keyword in {unread} of {len(answering)} replies, which count for nothing; "
        "use one that reads their language"
    ]


def invention_warning(words: Sequence[Worded]) -> str:
    """Say that an answer was withheld, of which no word stands in the passages of those that give it."""
    named = ", ".join(repr(printable(worded.form, 60)) for worded in words[:_MOST_NAMED])
    return (
        f"no answer: groups agree on {named}, and nothing of it stands in the passages of those that say it; "
        "ungrounded='count' lets it count"
    )


def variants_of(answer: str | None, keys: Iterable[str], question: str) -> frozenset[str]:
    """Return the keys that are longer or shorter forms of the answer's: "mayor ruth penn" of "ruth penn".

    One stands in the other at word boundaries, and what it has more is content words of the question's language alone:
    with a stop word, such as a "not", or a digit, it is another answer. None in a language that is not known.
    """
    language = language_of(question)
    if answer is None or language is None:
        return frozenset()
    small = stop_words(language)
    return frozenset(key for key in keys if key != answer and _is_form(*sorted((answer, key), key=len), small))


def _is_form(short: str, long: str, small: frozenset[str]) -> bool:
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
