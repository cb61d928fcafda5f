"""Figures with more curves or panels than one drawing can show, split into parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from robustrag_integrations.drawing.charts import Figure, Panel, Series, labels_of, named_places
from robustrag_integrations.evaluation.score.summary import Line
from robustrag_integrations.evaluation.show.figures import all_figures, setup_labels

MOST_CURVES = 12  # that colours and marks tell apart
MOST_PANELS = 12
MOST_PARTS = 24
_MOST_BASELINES = 2

_Item = TypeVar("_Item")


def in_parts(figure: Figure, baselines: Collection[str] = ()) -> tuple[Figure, ...]:
    """The figure, or where it has too many curves or panels, parts of it.

    Args:
        figure: what is to be drawn.
        baselines: labels that every part shows, to compare with.

    Returns:
        Figures of at most 12 curves and 12 panels. Beyond 24 parts the last one's note says what was left out.
    """
    labels = labels_of(figure)
    if len(labels) <= MOST_CURVES and len(figure.panels) <= MOST_PANELS:
        return (figure,)
    always = [label for label in labels if label in baselines][:_MOST_BASELINES]
    others = [label for label in labels if label not in always]
    made = []
    for some in _chunks(others, MOST_CURVES - len(always)) or [()]:
        kept = list(_with_labels(figure.panels, {*always, *some}))
        made += [replace(figure, panels=panels) for panels in _chunks(kept, MOST_PANELS)]
    parts = [_named(part, number, len(made)) for number, part in enumerate(made[:MOST_PARTS], 1)]
    if len(made) > MOST_PARTS:
        left = len(labels) - len({label for part in parts for label in labels_of(part)})
        note = f"The parts from {MOST_PARTS + 1} to {len(made)} are left out, with {left} more curves."
        parts[-1] = replace(parts[-1], note=note)
    return tuple(parts)


def drawable_figures(lines: Sequence[Line], seed: int | None = None) -> tuple[Figure, ...]:
    """Every figure that these lines have the data for, in parts where there is too much; vanilla RAG is in all.

    Args:
        lines: of `summarise`.
        seed: of the run, for the titles of figures without an attack; None where it is not known.
    """
    labels = setup_labels(lines)
    baselines = {labels[line.setup, line.top_k] for line in lines if line.defense == "vanilla"}
    return tuple(part for figure in all_figures(lines, seed) for part in in_parts(figure, baselines))


def _with_labels(panels: Sequence[Panel], labels: Collection[str]) -> Iterator[Panel]:
    for panel in panels:
        if series := tuple(s for s in panel.series if s.label in labels):
            yield Panel(panel.title, series)


def _named(part: Figure, number: int, count: int) -> Figure:
    """A part, renamed; empty places on its axis are closed up."""
    name = part.name if number == 1 else f"{part.name}-{number}"
    part = replace(part, name=name, title=f"{part.title} ({number} of {count})")
    if not named_places(part):
        return part
    used = sorted({p.x for panel in part.panels for s in panel.series for p in s.points})
    place = {x: float(i) for i, x in enumerate(used)}
    panels = tuple(Panel(panel.title, tuple(_moved(s, place) for s in panel.series)) for panel in part.panels)
    return replace(part, panels=panels, ticks=tuple((place[x], text) for x, text in part.ticks if x in place))


def _moved(series: Series, place: dict[float, float]) -> Series:
    return replace(series, points=tuple(replace(p, x=place[p.x]) for p in series.points))


def _chunks(items: Sequence[_Item], size: int) -> list[tuple[_Item, ...]]:
    return [tuple(items[i : i + size]) for i in range(0, len(items), size)]
