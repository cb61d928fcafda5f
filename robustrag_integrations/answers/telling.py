"""What people are told where sources agree on nothing: who says what, in a form that no reply can forge.

Whether answers contradict each other or say the same in other words is left to the reader: no rule tells it surely.

One item a line, in the order of retrieval: `- name: answer`. An answer of several lines stands below, indented, so that
none begins an item; its fences are closed; names hold no line break, colon or comma that could end one. Programs read
`abstained`, and prompts get a bare abstention (`RobustAnswer.for_prompt`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.citations import shown_origin
from robustrag_integrations.answers.links import without_links
from robustrag_integrations.grouping.origins import origin_named

LONGEST = 300  # characters of an answer
LONGEST_IN_FULL = 1500  # of one that was asked for in full
_MOST, _MOST_UNSURE = 5, 3  # answers
_MOST_NAMED = 3  # sources of one
_LONGEST_NAME = 60
_INDENT = "    "
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_MOVES = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # what a terminal obeys


@dataclass(frozen=True)
class Item:
    """An answer, and the sources that give it, as their metadata spells them."""

    text: str
    sources: tuple[str, ...]
    unsure: bool = False


def told(items: Sequence[Item], *, cut: int = 0, longest: int = LONGEST) -> str:
    """Return the text that tells who says what; empty where nobody says anything.

    Args:
        items: in the order in which they are told.
        cut: the number of sources whose replies were cut.
        longest: characters of one answer.
    """
    sure, unsure = [i for i in items if not i.unsure], [i for i in items if i.unsure]
    names = shown_names(source for item in items for source in item.sources)
    parts = []
    if sure:
        alone = count_of(len(sure[0].sources), "source") + " answer" + "s" * (len(sure[0].sources) == 1)
        parts.append(_listed(alone if len(sure) == 1 else "The sources say", sure, _MOST, names, longest))
    if unsure:
        head = "The model is unsure of " + ("what else is answered" if sure else "what is answered")
        parts.append(_listed(head, unsure, _MOST_UNSURE, names, longest))
    if cut:
        parts.append(f"{'A reply' if cut == 1 else f'{cut} replies'} reached the limit of tokens and may say more.")
    return "\n".join(parts)


def shown_names(sources: Iterable[str]) -> Mapping[str, str]:
    """Return the names by which people are shown sources: files without their folders, unless two are alike."""
    parts = {source: _parts(source) for source in sources}
    shown: dict[str, str] = {}
    depths = _depths(set(parts.values()))
    for source, own in parts.items():
        name = re.sub(r"([:,;])\s+", r"\1", shown_origin("/".join(own[-depths[own] :])))
        shown[source] = printable(name, _LONGEST_NAME) or "a source"
    return shown


def _depths(paths: Collection[tuple[str, ...]]) -> Mapping[tuple[str, ...], int]:
    """Return how many of its last parts tell each path from the others, all of them where it ends another one."""
    found: dict[tuple[str, ...], int] = {}
    depth, alike = 0, [[*paths]]
    while alike:
        depth += 1
        apart: dict[tuple[int, str | None], list[tuple[str, ...]]] = {}
        for number, source in enumerate(alike):
            for path in source:
                apart.setdefault((number, path[-depth] if depth <= len(path) else None), []).append(path)
        found |= {source[0]: min(depth, len(source[0])) for source in apart.values() if len(source) == 1}
        alike = [source for source in apart.values() if len(source) > 1]
    return found


def _parts(source: str) -> tuple[str, ...]:
    origin = origin_named(source)
    if origin is None or origin.host is not None:
        return (source,)
    return tuple(part for part in re.split(r"[/\\]", source) if part) or (source,)


def _listed(head: str, items: Sequence[Item], most: int, names: Mapping[str, str], longest: int) -> str:
    lines = [f"{head}:", *(_line(item, names, longest) for item in items[:most])]
    return "\n".join([*lines, *([f"- and {len(items) - most} more"] if len(items) > most else [])])


def _line(item: Item, names: Mapping[str, str], longest: int) -> str:
    named = ", ".join(dict.fromkeys(names[source] for source in item.sources[:_MOST_NAMED]))
    if len(item.sources) > _MOST_NAMED:
        named += f" and {len(item.sources) - _MOST_NAMED} more"
    head, lines = f"- {named or 'a source'}:", _own_lines(item.text, longest)
    if len(lines) == 1:
        return f"{head} {lines[0]}".rstrip()
    return "\n".join([head, *(f"{_INDENT}{line}".rstrip() for line in lines)])


def _own_lines(text: str, longest: int) -> list[str]:
    """Return the lines of an answer without links, cut, its fences closed."""
    text = _MOVES.sub("", "\n".join(text.strip().splitlines()))
    shown = without_links(text[:longest]) + "…" * (len(text) > longest)
    lines = [line for line in shown.splitlines() if line.strip()] or [""]
    fence = None
    for line in lines:
        if (found := _FENCE.match(line)) and (fence is None or found[1].startswith(fence)):
            fence = found[1] if fence is None else None
    return [*lines, *([fence] if fence else [])]
