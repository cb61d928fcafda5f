"""Warnings about how an answer's sources came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.grouping.origins import ID, NO_HOST, Origin
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Passage,
    Source,
    first_of_same,
    is_blank,
)

FEW = 3  # sources: of two, neither can be outvoted

_NAMED = 5  # sources that a warning names


def grouping_warnings(sources: Sequence[Source], by: GroupBy | None) -> list[str]:
    """Return the warnings; `by` is None if the criterion of the grouping is unknown."""
    found = [*keyless_warnings(sources, by), *(_few_warnings(sources) if len(sources) < FEW else ())]
    if blank := [passage for source in sources for passage in source.passages if is_blank(passage.text)]:
        named = "; ".join(o.given if (o := p.known_origin) else p.id or "?" for p in blank[:_NAMED])
        found.append(f"{count_of(len(blank), 'passage')} blank ({printable(named, 200)}): a scan without text?")
    if by != PASSAGE:
        found += [
            f"{count_of(len(g.passages), 'passage')} with addresses whose hosts URL libraries refuse or read in "
            f"different ways ({_named([g])}); they count as one source"
            for g in sources
            if g.key == NO_HOST
        ]
    if by in (None, PASSAGE) and (most := max((len(g.passages) for g in sources), default=1)) > 1:
        found.append(
            f"sources of {most} adjacent passages: the radius is about replacing what is in a source; a passage put in "
            "shifts which passages share one, and one such passage may change the answer. certify() counts that"
        )
    origins = [(g.index, p, o) for g in sources for p in g.passages if (o := p.known_origin) is not None]
    if by in (ORIGIN, SITE):
        found += _contradiction_warnings([passage for _, passage, _ in origins])
    if by == ORIGIN:
        found += _origin_warnings([(source, origin) for source, _, origin in origins])
    return found + _copy_warnings(sources)


def _origin_warnings(origins: Sequence[tuple[int, Origin]]) -> list[str]:
    """Warn of sources, given with their origins, that may be of one page or file."""
    pages: dict[str, set[int]] = {}
    for source, origin in origins:
        pages.setdefault(origin.page if origin.host else "", set()).add(source)
    found = [
        f"sources {_listed(sorted(those))} are the page {printable(page, 60)} with other queries, with a vote each: "
        "who writes a page may choose what stands behind its '?'; group_by='site' gives a site one vote"
        for page, those in pages.items()
        if page and len(those) > 1
    ][:_NAMED]
    named: dict[str, dict[str, tuple[int, str]]] = {}
    for source, origin in origins:
        if origin.file_id is not None:
            named.setdefault(origin.name, {}).setdefault(origin.file_id, (source, origin.given))
    several = [files for files in named.values() if len({source for source, _ in files.values()}) > 1]
    for files in several[:_NAMED]:
        file_ids = printable(", ".join(list(files)[:_NAMED]), 200)
        (_, given), *_ = files.values()
        found.append(
            f"sources {_listed(sorted(source for source, _ in files.values()))} are files of one name "
            f"({printable(given, 60)}) and other file ids ({file_ids}), with a vote each"
        )
    if len(ids := {origin.name for _, origin in origins if origin.kind == ID}) > 1:
        found.append(
            f"{len(ids)} sources are told apart by document ids alone: a file that was loaded as several documents, "
            "a page each, has several votes; give documents their file_path, source or url"
        )
    return found


def _contradiction_warnings(passages: Sequence[Passage]) -> list[str]:
    alike: dict[tuple[str, str], list[str]] = {}
    for passage in passages:
        for other, another in passage.contradicted[1:]:
            first, counted = passage.contradicted[0]
            alike.setdefault((first, other), []).append(f"{counted.given[:60]}, {another.given[:60]}")
    return [
        f"{count_of(len(found), 'passage')} whose {printable(one, 40)!r} and {printable(other, 40)!r} name different "
        f"origins ({printable(found[0])}): the first counts; "
        f"group_by={printable(other, 40)!r} goes by the other"
        for (one, other), found in islice(alike.items(), _NAMED)
    ]


def keyless_warnings(sources: Sequence[Source], by: GroupBy | None) -> list[str]:
    """Warn of passages that have no origin or key, with the reasons."""
    reasons = Counter(reason for source in sources for reason in source.keyless)
    if not reasons:
        return []
    total, missing = sum(len(source.passages) for source in sources), reasons.total()
    if by in (ORIGIN, SITE) and missing == total:
        return [
            f"none of the {total} passages names its origin (source, file_path, url, ...), so each counts as a source: "
            "a text cut into several passages has several votes, and one passage that names its origin would make one "
            "source of the others; give each its source, or pass group_by='passage'"
        ]
    causes = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    what = f"group_by key ({causes})" if callable(by) else str(by)
    return [f"{missing} of {total} passages have no {what}; they count as one source"]


def _few_warnings(sources: Sequence[Source]) -> list[str]:
    if not sources:
        return ["there are no passages: nothing was retrieved, or a filter left nothing, and the answer abstains"]
    if len(sources) > 1:
        return ["only 2 sources: neither can be outvoted; retrieve from more sources, or set min_sources"]
    passages = count_of(len(sources[0].passages), "passage")
    return [f"one source ({_named(sources)}; {passages}) decides alone; retrieve from more sources, or set min_sources"]


def _copy_warnings(sources: Sequence[Source]) -> list[str]:
    """Warn of whole sources alike: one passage that several have, such as a site's footer, says nothing of the rest."""
    members: dict[int, list[int]] = {}  # by the first source with a text
    for source, first in zip(sources, first_of_same([g.content for g in sources]), strict=True):
        members.setdefault(first, []).append(source.index)
    same = [those for those in members.values() if len(those) > 1]
    return [
        f"sources {_listed(those)} hold the same text ({_named([sources[i] for i in those])}): several origins, one "
        "author?"
        for those in same[:_NAMED]
    ]


def _named(sources: Sequence[Source]) -> str:
    names = (", ".join(g.origins) or ", ".join(p.id or "?" for p in g.passages) for g in sources[:_NAMED])
    return "; ".join(printable(name, 60) for name in names) + ("; ..." if len(sources) > _NAMED else "")


def _listed(places: Sequence[int]) -> str:
    shown = [str(place + 1) for place in places[:_NAMED]]
    if len(places) > _NAMED:
        return f"{', '.join(shown)} and {len(places) - _NAMED} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
