"""Figures of curves: their data, and their drawing on a page or (by `files`) in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from robustrag_integrations._util.rounding import decimals
from robustrag_integrations.drawing.elements import Element, h
from robustrag_integrations.drawing.text import one_line

WIDTH, HEIGHT = 360, 220  # of a panel's drawing
COLOURS = (
    "#c23b22", "#0f7a68", "#3f74c4", "#b27a12", "#8d58ad", "#5c7080",
    "#2f97b3", "#a6567a", "#6f8c1f", "#7a5230", "#d0679d", "#4a4e9c",
)  # fmt: skip
"""On white paper; the page's style sheet has the same, and their like for dark screens."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 40
_SHAPES = 4
_TITLE = 160  # letters of a panel's title
_MOST_TICKS = 8


@dataclass(frozen=True)
class Point:
    """One value of a curve, a share from 0 to 1.

    Attributes:
        x: where on the axis.
        y: the mean.
        low: the lower end of its 95% interval; None where there is none.
        high: the upper end.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """One curve.

    Attributes:
        label: its name in the legend.
        points: from left to right.
    """

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """The axes and curves of one panel."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Figure:
    """A figure of one or several panels that share their axes.

    Attributes:
        name: of its file.
        title: what it shows.
        x_label: what is on the x axis.
        y_label: what is on the y axis, in percent.
        panels: at least one, each with at least one point.
        ticks: places on the x axis with their names, one unit apart; empty for an axis of numbers.
        kind: curves, or points where nothing is in between.
        note: what else a reader should know; empty for nothing.
        about: what was measured: the model, how many questions and passages, the seed; empty for nothing.
        order: the labels of all figures of a run; a label's place in it is its colour and mark.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...] = ()
    kind: Literal["curve", "point"] = "curve"
    note: str = ""
    about: str = ""
    order: tuple[str, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The labels of the curves, in the order of their appearance."""
        return list(dict.fromkeys(series.label for panel in self.panels for series in panel.series))

    @property
    def looks(self) -> dict[str, int]:
        """The number of each label's colour and mark."""
        places = {label: number for number, label in enumerate(dict.fromkeys([*self.order, *self.labels]))}
        return {label: places[label] for label in self.labels}


def x_ticks(figure: Figure) -> tuple[tuple[float, str], ...]:
    """Return the ticks of the x axis with their names: those of the points if these are few, else every so many."""
    if figure.ticks:
        return figure.ticks
    at = sorted({p.x for panel in figure.panels for series in panel.series for p in series.points})
    step = math.ceil(len(at) / _MOST_TICKS)
    return tuple((x, f"{x:.3g}") for x in at[::step])


def chart(figure: Figure) -> Element:
    """Draw a figure with its caption, its legend and one drawing per panel."""
    looks = figure.looks
    keys = [h("li", key(looks[label]), " ", one_line(label, 60)) for label in looks]
    caption = h(
        "figcaption",
        h("b", figure.title),
        f". {axes_in_words(figure)}",
        h("span", one_line(figure.about, 300), cls="about") if figure.about else None,
    )
    panels = [
        h(
            "div",
            h("p", one_line(panel.title, _TITLE), cls="panel-title") if panel.title else None,
            panel_drawing(panel, figure),
            cls="panel",
        )
        for panel in figure.panels
    ]
    return h("figure", caption, h("ul", *keys, cls="keys"), h("div", *panels, cls="panels"), cls="chart")


def axes_in_words(figure: Figure) -> str:
    """Describe the axes in words, with the figure's note."""
    said = f"{figure.y_label[:1].upper()}{figure.y_label[1:]} by {figure.x_label}."
    return f"{said} {figure.note}" if figure.note else said


def panel_drawing(panel: Panel, figure: Figure) -> Element:
    """Draw one panel, without its title."""
    looks, scale = figure.looks, _Scale.of(figure)
    marks = [h("g", *_curve(series, figure, scale), cls=_look(looks[series.label])) for series in panel.series]
    name = f"{figure.title}{', ' + one_line(panel.title, _TITLE) if panel.title else ''}"
    size = f"0 0 {WIDTH} {HEIGHT}"
    return h("svg", *_axes(figure, scale), *marks, role="img", aria_label=name, viewBox=size, cls="plot")


def key(look: int) -> Element:
    """Draw a mark for a legend."""
    return h("svg", _mark(look, 6, 6), cls=_look(look), viewBox="0 0 12 12", width=12, height=12, aria_hidden="true")


@dataclass(frozen=True)
class _Scale:
    """Maps values to positions in a drawing."""

    low: float
    high: float

    @classmethod
    def of(cls, figure: Figure) -> _Scale:
        places = [p.x for panel in figure.panels for series in panel.series for p in series.points]
        places += [x for x, _ in figure.ticks]
        low, high = min(places), max(places)
        room = 0.5 if figure.ticks else (high - low) * 0.04 or 0.5
        return cls(low - room, high + room)

    def x(self, value: float) -> float:
        return _LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, share: float) -> float:
        return HEIGHT - _BOTTOM - min(share, 1) * (HEIGHT - _TOP - _BOTTOM)


def _axes(figure: Figure, scale: _Scale) -> Iterator[Element]:
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = scale.y(tick)
        yield h("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, cls="base" if tick == 0 else "grid")
        yield h("text", f"{tick * 100:g}%", x=_LEFT - 6, y=y + 3.5, text_anchor="end", cls="tick")
    ticks = x_ticks(figure)
    room = max(int((WIDTH - _LEFT - _RIGHT) / len(ticks) / 5.6), 3)
    for i, (x, name) in enumerate(ticks):
        # Names that would overlap are put on two levels.
        low = 12 if len(ticks) > 3 and figure.ticks and i % 2 else 0
        shown = one_line(name, room * 2 if len(ticks) > 3 else room)
        yield h("text", h("title", one_line(name, 80)), shown, x=scale.x(x), y=HEIGHT - _BOTTOM + 14 + low,
                text_anchor="middle", cls="tick")  # fmt: skip


def _curve(series: Series, figure: Figure, scale: _Scale) -> Iterator[Element]:
    """Draw a mark and an interval for each point, and a line through a curve; curves are offset a little."""
    labels: Sequence[str] = figure.labels
    look = figure.looks[series.label]
    aside = (labels.index(series.label) - (len(labels) - 1) / 2) * min(5.0, 24 / len(labels))
    places = [(scale.x(p.x) + aside, scale.y(p.y)) for p in series.points]
    if figure.kind == "curve":
        yield h("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), cls="curve")
    for p, (x, y) in zip(series.points, places, strict=True):
        if p.low is not None and p.high is not None:
            yield h("line", x1=x, x2=x, y1=scale.y(p.low), y2=scale.y(p.high), cls="interval")
        yield _mark(look, x, y, h("title", _said(p, series.label, figure)))


def _mark(look: int, x: float, y: float, title: Element | None = None) -> Element:
    """Draw a mark. Shapes differ as well as colours, so that neither is needed."""
    shape = (look + look // len(COLOURS)) % _SHAPES
    if shape == 0:
        return h("circle", title, cx=x, cy=y, r=3.5, cls="point")
    if shape == 1:
        return h("rect", title, x=x - 3.2, y=y - 3.2, width=6.4, height=6.4, cls="point")
    corners = f"{x:.1f},{y - 4.5:.1f} {x + 4.5:.1f},{y:.1f} {x:.1f},{y + 4.5:.1f} {x - 4.5:.1f},{y:.1f}"
    if shape == 3:
        corners = f"{x:.1f},{y - 4.2:.1f} {x + 4.2:.1f},{y + 3.4:.1f} {x - 4.2:.1f},{y + 3.4:.1f}"
    return h("polyline", title, points=corners, cls="point")


def _look(look: int) -> str:
    return f"series-{look % len(COLOURS)}"


def _said(point: Point, label: str, figure: Figure) -> str:
    where = next((name for x, name in figure.ticks if x == point.x), f"{point.x:g}")
    said = f"{one_line(label, 60)}, {one_line(where, 60)}: {decimals(point.y, 1, 100)}%"
    if point.low is None or point.high is None:
        return said
    return f"{said} [{decimals(point.low, 1, 100)}%, {decimals(point.high, 1, 100)}%]"
