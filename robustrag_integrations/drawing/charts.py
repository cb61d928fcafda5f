"""Figures of curves and bars: what they hold, and how they are drawn, on a page and (by `files`) in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from robustrag_integrations.drawing.elements import Element, h
from robustrag_integrations.drawing.styles import Style, styles_of
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.drawing.ticks import round_ticks, ticks_at
from robustrag_integrations.rounding import decimals, significant

WIDTH, HEIGHT = 360, 220  # of a panel's drawing
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 40
_SHAPES = 4
_SHADES = 3
_TITLE = 160  # letters of a panel's title


@dataclass(frozen=True)
class Point:
    """One value of a curve.

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
    """One curve, or the bars of one kind.

    Attributes:
        label: its name in the legend.
        points: from left to right.
        of: what has its colour, a defence; empty for the label itself.
    """

    label: str
    points: tuple[Point, ...]
    of: str = ""


@dataclass(frozen=True)
class Panel:
    """One system of axes."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Figure:
    """One figure of one or several panels that share their axes.

    Attributes:
        name: of its file.
        title: what it shows.
        x_label: what is on the x axis.
        y_label: what is on the y axis.
        panels: at least one, each with at least one point.
        ticks: places on the x axis with their names; empty for an axis of numbers.
        kind: curves, points where nothing is in between, a cloud where x is measured as well, or bars side by side.
        percent: whether y is a share, to be shown in percent.
        note: what else a reader should know; empty for nothing.
        about: what was measured: the model, how many questions and passages, the seed; empty for nothing.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...] = ()
    kind: Literal["curve", "point", "cloud", "bar"] = "curve"
    percent: bool = True
    note: str = ""
    about: str = ""


def labels_of(figure: Figure) -> list[str]:
    """The labels of a figure's curves, in the order of their appearance."""
    return list(dict.fromkeys(series.label for panel in figure.panels for series in panel.series))


def figure_styles(figure: Figure, known: Mapping[str, Style] | None = None) -> dict[str, Style]:
    """The style of each label of a figure."""
    return styles_of(((s.label, s.of or s.label) for panel in figure.panels for s in panel.series), known)


def y_ticks(figure: Figure) -> tuple[float, ...]:
    """Round numbers on the y axis, the same in all panels: the last one is above all bars, points and intervals."""
    if figure.percent:
        return (0, 0.25, 0.5, 0.75, 1)
    points = [p for panel in figure.panels for series in panel.series for p in series.points]
    return round_ticks(0.0, max(max(p.y if p.high is None else p.high for p in points), 1e-9))


def x_ticks(figure: Figure) -> tuple[tuple[float, str], ...]:
    """Places on the x axis with their names."""
    if figure.ticks:
        return figure.ticks
    places = (p.x for panel in figure.panels for series in panel.series for p in series.points)
    return tuple((x, f"{x:g}") for x in ticks_at(places))


@dataclass(frozen=True)
class _Scale:
    """From values to places in a drawing."""

    low: float
    high: float
    top: float

    def x(self, value: float) -> float:
        return _LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - min(value / self.top, 1) * (HEIGHT - _TOP - _BOTTOM)


def chart(figure: Figure, known: Mapping[str, Style] | None = None) -> Element:
    """A figure with its caption, its legend and one drawing per panel.

    Args:
        figure: what to draw.
        known: the styles of known labels, so that a setup looks the same in every figure.
    """
    labels = labels_of(figure)
    styles = figure_styles(figure, known)
    keys = [h("li", key(styles[label]), " ", one_line(label, 60)) for label in labels]
    return h(
        "figure",
        h(
            "figcaption",
            h("b", figure.title),
            f". {axes_in_words(figure)}",
            h("span", one_line(figure.about, 300), cls="about") if figure.about else None,
        ),
        h("ul", *keys, cls="keys"),
        h("div", *(_panel(panel, figure, styles) for panel in figure.panels), cls="panels"),
        cls="chart",
    )


def axes_in_words(figure: Figure) -> str:
    """What is drawn over what, and what else a reader should know."""
    said = f"{figure.y_label[:1].upper()}{figure.y_label[1:]} by {figure.x_label}."
    return f"{said} {figure.note}" if figure.note else said


def panel_drawing(panel: Panel, figure: Figure, styles: Mapping[str, Style]) -> Element:
    """The drawing of one panel, without its title."""
    scale = _scale(figure)
    draw = _bars if figure.kind == "bar" else _curve
    marks = [h("g", *draw(series, styles, figure, scale), cls=_look(styles[series.label])) for series in panel.series]
    name = f"{figure.title}{', ' + one_line(panel.title, _TITLE) if panel.title else ''}"
    size = f"0 0 {WIDTH} {HEIGHT}"
    return h("svg", *_axes(figure, scale), *marks, role="img", aria_label=name, viewBox=size, cls="plot")


def _panel(panel: Panel, figure: Figure, styles: Mapping[str, Style]) -> Element:
    drawing = panel_drawing(panel, figure, styles)
    return h(
        "div", h("p", one_line(panel.title, _TITLE), cls="panel-title") if panel.title else None, drawing, cls="panel"
    )


def _scale(figure: Figure) -> _Scale:
    points = [p for panel in figure.panels for series in panel.series for p in series.points]
    places = [p.x for p in points] + [x for x, _ in figure.ticks]
    low, high = min(places), max(places)
    room = 0.5 if named_places(figure) else (high - low) * 0.04 or 0.5
    return _Scale(low - room, high + room, y_ticks(figure)[-1])


def named_places(figure: Figure) -> bool:
    """Whether the x axis has names, one unit apart, rather than numbers."""
    return bool(figure.ticks) and figure.kind != "cloud"


def _axes(figure: Figure, scale: _Scale) -> Iterator[Element]:
    for tick in y_ticks(figure):
        y = scale.y(tick)
        yield h("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, cls="base" if tick == 0 else "grid")
        value = f"{tick * 100:g}%" if figure.percent else f"{tick:g}"
        yield h("text", value, x=_LEFT - 6, y=y + 3.5, text_anchor="end", cls="tick")
    ticks = x_ticks(figure)
    room = max(int((WIDTH - _LEFT - _RIGHT) / len(ticks) / 5.6), 3)
    for i, (x, name) in enumerate(ticks):
        # Names that would run into each other stand on two levels.
        low = 12 if len(ticks) > 3 and named_places(figure) and i % 2 else 0
        shown = one_line(name, room * 2 if len(ticks) > 3 else room)
        yield h("text", h("title", one_line(name, 80)), shown, x=scale.x(x), y=HEIGHT - _BOTTOM + 14 + low,
                text_anchor="middle", cls="tick")  # fmt: skip


def steps_aside(series: Series, figure: Figure, styles: Mapping[str, Style]) -> float:
    """How many steps beside its place a series is drawn, so that none covers another; in a cloud, none at one place."""
    labels = list(styles)
    if figure.kind == "cloud":
        # By identity: a setup may have equal points in several panels.
        panel = next(panel for panel in figure.panels if any(other is series for other in panel.series))
        labels = [other.label for other in panel.series if other.points == series.points]
    return labels.index(series.label) - (len(labels) - 1) / 2


def _curve(series: Series, styles: Mapping[str, Style], figure: Figure, scale: _Scale) -> Iterator[Element]:
    """A mark for each point and its interval, and a line through a curve; curves are set side by side a little."""
    points, label, style = series.points, series.label, styles[series.label]
    aside = steps_aside(series, figure, styles) * min(5.0, 24 / len(styles))
    places = [(scale.x(p.x) + aside, scale.y(p.y)) for p in points]
    if figure.kind == "curve":
        yield h("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), cls="curve")
    for p, (x, y) in zip(points, places, strict=True):
        if p.low is not None and p.high is not None:
            yield h("line", x1=x, x2=x, y1=scale.y(p.low), y2=scale.y(p.high), cls="interval")
        yield _mark(style, x, y, h("title", _said(p, label, figure)))


def _bars(series: Series, styles: Mapping[str, Style], figure: Figure, scale: _Scale) -> Iterator[Element]:
    """Columns side by side; where each series has its own place, in the middle of it."""
    label = series.label
    alone = all(len(s.points) == 1 for panel in figure.panels for s in panel.series) and len(figure.ticks) > 1
    together, place = (1, 0) if alone else (len(styles), list(styles).index(label))
    width = min(0.8 * (scale.x(1) - scale.x(0)) / together, 40)
    for p in series.points:
        x = scale.x(p.x) + (place - together / 2) * width
        height = max(scale.y(0) - scale.y(p.y), 1)
        title = h("title", _said(p, label, figure))
        yield h("rect", title, x=x, y=scale.y(0) - height, width=max(width - 1.5, 1), height=height, cls="column")
        if p.low is not None and p.high is not None:
            middle = x + (width - 1.5) / 2
            yield h("line", x1=middle, x2=middle, y1=scale.y(p.low), y2=scale.y(p.high), cls="interval")


def _mark(style: Style, x: float, y: float, title: Element | None = None) -> Element:
    """Shapes differ as well as colours, so that neither is needed."""
    shape = (style.colour + style.variant) % _SHAPES
    if shape == 0:
        return h("circle", title, cx=x, cy=y, r=3.5, cls="point")
    if shape == 1:
        return h("rect", title, x=x - 3.2, y=y - 3.2, width=6.4, height=6.4, cls="point")
    corners = f"{x:.1f},{y - 4.5:.1f} {x + 4.5:.1f},{y:.1f} {x:.1f},{y + 4.5:.1f} {x - 4.5:.1f},{y:.1f}"
    if shape == 3:
        corners = f"{x:.1f},{y - 4.2:.1f} {x + 4.2:.1f},{y + 3.4:.1f} {x - 4.2:.1f},{y + 3.4:.1f}"
    return h("polyline", title, points=corners, cls="point")


def key(style: Style) -> Element:
    """A mark for a legend."""
    return h("svg", _mark(style, 6, 6), cls=_look(style), viewBox="0 0 12 12", width=12, height=12, aria_hidden="true")


def _look(style: Style) -> str:
    return f"series-{style.colour} shade-{style.variant % _SHADES}"


def _said(point: Point, label: str, figure: Figure) -> str:
    where = next((name for x, name in figure.ticks if x == point.x), f"{point.x:g}")
    said = f"{one_line(label, 60)}, {one_line(where, 60)}: {_value(point.y, figure)}"
    if point.low is None or point.high is None:
        return said
    return f"{said} [{_value(point.low, figure)}, {_value(point.high, figure)}]"


def _value(y: float, figure: Figure) -> str:
    return f"{decimals(y, 1, 100)}%" if figure.percent else significant(y)
