"""The list for readers without scripts: rows with their details folded up, as many as there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any

from robustrag_integrations.drawing.answer import Limits
from robustrag_integrations.drawing.elements import h, to_html
from robustrag_integrations.evaluation.show.report.listing import COLUMNS, details, list_line
from robustrag_integrations.evaluation.show.report.outcomes import attack_label

_FEWEST = 100  # rows that are listed in any case, if without details
_SHORT = {"passage": 400, "response": 300, "keywords": 12, "counts": 10, "groups": 40, "steps": 40}


@dataclass(frozen=True)
class PlainList:
    """Rows of the list as markup.

    Attributes:
        lines: in the order of the run.
        unfolding: how many of them have their details.
    """

    lines: tuple[str, ...]
    unfolding: int

    @property
    def size(self) -> int:
        """Characters."""
        return sum(map(len, self.lines))


def plain_list(rows: Sequence[Mapping[str, Any]], room: float, limits: Limits) -> PlainList:
    """Rows of every setup and attack in turn, so that there is something of each.

    Args:
        rows: those of the list.
        room: characters of markup.
        limits: how much of each answer is shown where there is room; here it is less.
    """
    short = replace(limits, **{name: min(most, getattr(limits, name)) for name, most in _SHORT.items()})
    found: dict[int, str] = {}
    unfolding = 0
    for number in _in_turn(rows):
        line = to_html(list_line(rows[number]))
        if unfolding == len(found):  # there was room for all so far
            folded = _folded(rows[number], short)
            room -= len(line) + len(folded)
            if room >= 0:
                found[number] = line + folded
                unfolding += 1
                continue
        if len(found) >= _FEWEST:
            break
        found[number] = line
    return PlainList(tuple(found[number] for number in sorted(found)), unfolding)


def _folded(row: Mapping[str, Any], limits: Limits) -> str:
    content = h("details", h("summary", "Details"), details(row, limits))
    return to_html(h("tr", h("td", content, colspan=str(len(COLUMNS))), cls="unfolded plain"))


def _in_turn(rows: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """The rows by number: the first of every setup and attack, then the second of each, ..."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        key = (row["dataset"], row["task"], row["model"], row["setup"], attack_label(row))
        groups.setdefault(key, []).append(number)
    return (number for number in chain.from_iterable(zip_longest(*groups.values())) if number is not None)
