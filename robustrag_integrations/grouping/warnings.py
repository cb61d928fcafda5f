"""Warnings about how an answer's groups came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.grouping.copies import first_of_same, near_copies
from robustrag_integrations.grouping.origins import FIELDS, ID, NO_HOST, label
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Passage,
    PassageGroup,
    is_blank,
    readable_origin,
)

FEW = 3  # groups: of two, neither can be outvoted

_NAMED = 5  # groups that a warning names
_COMPARED = 200  # passages that are compared with each other
_SAME, _NEARLY = "hold the same text", "hold nearly the same text"


def grouping_warnings(groups: Sequence[PassageGroup], by: GroupBy | None) -> list[str]:
    """Return the warnings; `by` is None if the criterion of the grouping is unknown."""
    found = [*keyless_warnings(groups, by), *_few_warnings(groups), *_blank_warnings(groups)]
    if by != PASSAGE:
        found += [
            f"{count_of(len(g.passages), 'passage')} with addresses whose hosts URL libraries refuse or read in "
            f"different ways ({_named([g])}); they share one group"
            for g in groups
            if g.key == NO_HOST
        ]
    if by in (None, PASSAGE) and (most := max((len(g.passages) for g in groups), default=1)) > 1:
        found.append(
            f"groups of {most} adjacent passages: the radius is about replacing what is in a group; a passage put in "
            "shifts which passages share one, and one such passage may change the answer. certify() counts that"
        )
    origins = [(g.index, p, o) for g in groups for p in g.passages if (o := readable_origin(p)) is not None]
    if by in (ORIGIN, SITE):
        found += _contradiction_warnings([passage for _, passage, _ in origins])
    if by == ORIGIN:
        pages: dict[str, dict[int, None]] = {}
        for group, _, origin in origins:
            if origin.host:
                pages.setdefault(origin.page, {})[group] = None
        found += [
            f"groups {_listed(list(those))} are the page {printable(page, 60)} with other queries, and have a vote "
            "each: who writes a page may choose what stands behind its '?'; group_by='site' gives a site one vote"
            for page, those in pages.items()
            if len(those) > 1
        ][:_NAMED]
        if len(ids := {origin.name for _, _, origin in origins if origin.kind == ID}) > 1:
            found.append(
                f"{len(ids)} groups are told apart by document ids alone: a file that was loaded as several documents, "
                "a page each, has several votes; give documents their file_path, source or url"
            )
    found += _copy_warnings(groups)
    passage_ids = [p.id for group in groups for p in group.passages]
    if len(set(passage_ids)) < len(passage_ids):
        found.append("some passages have the same id; they were kept apart, but reports cannot tell them apart by id")
    return found


def _contradiction_warnings(passages: Sequence[Passage]) -> list[str]:
    """Warn of passages whose entries name different origins."""
    alike: dict[tuple[str, str], list[str]] = {}
    for passage in passages:
        for other, another in passage.contradicted[1:]:
            first, counted = passage.contradicted[0]
            given = f"{printable(counted.given, 60)}, {printable(another.given, 60)}"
            alike.setdefault((printable(first, 40), printable(other, 40)), []).append(given)
    return [
        f"{count_of(len(found), 'passage')} whose {one!r} and {two!r} name different origins ({found[0]}): {one!r} "
        f"counts, and has no weight or tier of its own; group_by={two!r} goes by the other"
        for (one, two), found in islice(alike.items(), _NAMED)
    ]


def keyless_warnings(groups: Sequence[PassageGroup], by: GroupBy | None) -> list[str]:
    """Warn of passages that have no origin or key, with the reasons."""
    reasons = Counter(reason for group in groups for reason in group.keyless)
    if not reasons:
        return []
    total, missing = sum(len(group.passages) for group in groups), reasons.total()
    if by in (ORIGIN, SITE) and missing == total:
        odd = next(filter(None, map(_odd_origin, (p for group in groups for p in group.passages))), "")
        return [
            f"none of the {total} passages names its origin (source, file_path, url, ...){odd}, so each is a group: "
            "a text cut into several passages has several votes, and one passage that names its origin would put the "
            "others into one group; give each its source, or pass group_by='passage'"
        ]
    causes = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    what = f"group_by key ({causes})" if callable(by) else str(by)
    return [f"{missing} of {total} passages have no {what}; they share one group"]


def _odd_origin(passage: Passage) -> str:
    """Describe a value that stands where an origin is looked for and is no name."""
    for field in FIELDS:
        if (given := passage.metadata.get(field)) is not None and label(given) is None:
            return f"; the {field!r} of one is a {type(given).__name__}, not a name"
    return ""


def _few_warnings(groups: Sequence[PassageGroup]) -> list[str]:
    """Warn if there is no group, or too few for one of them to be outvoted."""
    count = len(groups)
    if count == 0:
        return ["there are no passages: nothing was retrieved, or a filter left nothing, and the answer abstains"]
    if count >= FEW:
        return []
    if count == 1:
        who, passages = _named(groups), len(groups[0].passages)
        what = "the only passage is" if passages == 1 else f"all {passages} passages are"
        return [f"{what} from one group ({who}), which decides alone; retrieve from more sources, or set min_groups"]
    return [f"only {count} groups: neither can be outvoted; retrieve from more sources, or set min_groups"]


def _blank_warnings(groups: Sequence[PassageGroup]) -> list[str]:
    """Warn of passages that hold nothing to read."""
    blank = [p for group in groups for p in group.passages if is_blank(p.text)]
    if not blank:
        return []
    names = (origin.given if (origin := readable_origin(p)) else p.id or "?" for p in blank[:_NAMED])
    named = ", ".join(printable(name, 60) for name in names) + (", ..." if len(blank) > _NAMED else "")
    silent = sum(group.is_empty for group in groups)
    return [
        f"{len(blank)} of {sum(len(g.passages) for g in groups)} passages are blank ({named})"
        + (f"; {silent} of {len(groups)} groups hold nothing else and abstain" if silent else "")
        + ": a scan without text, or a loader that found none?"
    ]


def _copy_warnings(groups: Sequence[PassageGroup]) -> list[str]:
    """Warn of passages in different groups with the same text, or nearly."""
    same, near = _alike(groups)
    found = [
        f"groups {_listed(those)} {_SAME} ({_named([groups[i] for i in those])}): several origins, one "
        "author? copies='one_vote' counts those that answer alike once"
        for those in sorted(same)
    ]
    if near:
        pairs = ", ".join(f"{i + 1} and {j + 1} ({_named([groups[i], groups[j]])})" for i, j in sorted(near)[:_NAMED])
        more = f", and {len(near) - _NAMED} more" if len(near) > _NAMED else ""
        found.append(f"groups {pairs}{more} {_NEARLY}: several origins, one author?")
    return found


def tell_of_copies(warnings: Sequence[str]) -> bool:
    """True if one of an answer's warnings names groups with the same text, or nearly."""
    return any(_SAME in warning or _NEARLY in warning for warning in warnings)


def retold(groups: Sequence[PassageGroup]) -> int:
    """Return how many of these groups, at most, hold nearly the same text; 0 if no two do."""
    same, near = _alike(groups)
    parts = [set(found) for found in (*same, *near)]
    largest: set[int] = set()
    while parts:
        part = parts.pop()
        while touching := [other for other in parts if not part.isdisjoint(other)]:
            part.update(*touching)
            parts = [other for other in parts if part.isdisjoint(other)]
        largest = max(largest, part, key=len)
    return len(largest)


def _alike(groups: Sequence[PassageGroup]) -> tuple[set[tuple[int, ...]], set[tuple[int, int]]]:
    """Return the sets of groups that hold the same text, and the other pairs that hold nearly the same one."""
    each = (
        (g.index, p.text if p.content is None else p.content, sketch)
        for g in groups
        for p, sketch in zip(g.passages, g.sketches, strict=True)
        if p.text.strip()
    )
    owners = list(islice(each, _COMPARED))
    firsts = first_of_same([text for _, text, _ in owners])
    kept = sorted(set(firsts))
    copies: dict[int, list[int]] = {}
    for (group, _, _), first in zip(owners, firsts, strict=True):
        copies.setdefault(first, []).append(group)
    same = {tuple(sorted(set(found))) for found in copies.values() if len(set(found)) > 1}
    near = {
        pair
        for i, j in near_copies([owners[first][2] for first in kept])
        for one in copies[kept[i]]
        for other in copies[kept[j]]
        if one != other and not any(one in s and other in s for s in same)
        for pair in [(min(one, other), max(one, other))]
    }
    return same, near


def _named(groups: Sequence[PassageGroup]) -> str:
    """Name the groups by their origins or passage ids."""
    names = (", ".join(g.origins) or ", ".join(p.id or "?" for p in g.passages) for g in groups[:_NAMED])
    return "; ".join(printable(name, 60) for name in names) + ("; ..." if len(groups) > _NAMED else "")


def _listed(places: Sequence[int]) -> str:
    shown = [str(place + 1) for place in places[:_NAMED]]
    if len(places) > _NAMED:
        return f"{', '.join(shown)} and {len(places) - _NAMED} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
