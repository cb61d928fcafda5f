"""Curves and bars: nothing is cut off, ticks are round, and a defence has one colour."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.drawing.charts import (
    WIDTH,
    Figure,
    Panel,
    Point,
    Series,
    chart,
    figure_styles,
    panel_drawing,
    steps_aside,
    x_ticks,
    y_ticks,
)
from robustrag_integrations.drawing.elements import to_html
from robustrag_integrations.drawing.files import figure_svg
from robustrag_integrations.drawing.styles import COLOURS, Style, colour_of, styles_of
from robustrag_integrations.drawing.ticks import round_ticks, ticks_at


def bars(*heights: float, high: float | None = None) -> Figure:
    """A panel per height, the lowest bar first."""
    panels = [Panel(f"p{i}", (Series("a", (Point(0, y, None if high is None else 0.0, high),)),))
              for i, y in enumerate(heights)]  # fmt: skip
    return Figure("f", "T", "x", "seconds", tuple(panels), ((0.0, "a"),), "bar", percent=False)


def test_no_bar_of_any_panel_is_cut_off() -> None:
    for figure in (bars(0.3, 2.9, 1.0), bars(0.3, 0.5, high=7.7), bars(0.0)):
        tallest = max(max(p.y, p.high or 0) for panel in figure.panels for s in panel.series for p in s.points)
        assert y_ticks(figure)[-1] >= tallest
        for place, size in (("y", "height"), ("x", "width")):
            for tag in re.findall(r"<rect[^>]*class=.column.[^>]*>", figure_svg(figure)):
                named = dict(re.findall(r'(\w+)="([-\d.]+)"', tag))
                assert 0 <= float(named[place]) <= float(named[place]) + float(named[size]) <= WIDTH


def test_the_page_draws_bars_of_their_height_under_a_round_axis() -> None:
    shown = to_html(chart(bars(0.37, 2.93)))
    heights = [float(h) for h in re.findall(r'<rect[^>]* height="([\d.]+)"', shown)]
    assert heights[1] / heights[0] == pytest.approx(2.93 / 0.37, rel=0.01)
    assert re.findall(r">([\d.]+)</text>", shown)[:4] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("count", [2, 5, 12])
@pytest.mark.parametrize("length", [3, 40, 300])
def test_legends_titles_and_panels_are_inside_their_pictures(count: int, length: int) -> None:
    series = [Series(f"{i} " + "W" * length, (Point(1, 0.5), Point(2, 0.6))) for i in range(count)]
    panels = tuple(Panel("W" * length, tuple(series)) for _ in range(count))
    figure = Figure("f", "T" * length, "x", "y", panels, about="model " * length)
    picture = ET.fromstring(figure_svg(figure))
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    assert len(picture) > 2 * count
    for part in picture:
        if part.tag.endswith("style"):
            continue
        x, y = float(part.attrib.get("x", 0)), float(part.attrib.get("y", 0))
        wide = 6.0 * len(part.text or "") if part.tag.endswith("text") else float(part.attrib["width"])
        tall = 0 if part.tag.endswith("text") else float(part.attrib["height"])
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + tall <= height


def test_a_defence_has_its_colour_whatever_else_is_drawn() -> None:
    names = ["vanilla", "no-rag", *METHODS]
    assert len({colour_of(name) for name in names[:6]}) == 6
    for some in (names, names[::-1], names[2:3]):
        styles = styles_of((name, name) for name in some)
        assert {name: style.colour for name, style in styles.items()} == {name: colour_of(name) for name in some}
    assert colour_of("somebody elses") == colour_of("somebody elses") < len(COLOURS)


def test_setups_of_one_defence_share_its_colour_and_differ_in_their_marks() -> None:
    styles = styles_of([("keyword a", "keyword"), ("vanilla", "vanilla"), ("keyword b", "keyword")])
    assert styles["keyword a"] == Style(colour_of("keyword"), 0)
    assert styles["keyword b"] == Style(colour_of("keyword"), 1)
    later = styles_of([("keyword c", "keyword"), ("keyword b", "keyword")], known=styles)
    assert later == {"keyword c": Style(colour_of("keyword"), 2), "keyword b": styles["keyword b"]}


def test_points_have_no_line_between_them() -> None:
    panel = Panel("", (Series("keyword", (Point(0, 0.9), Point(1, 0.5), Point(2, 0.1))),))
    for kind, lines in (("point", 0), ("curve", 1)):
        figure = Figure("f", "T", "k'", "certified", (panel,), kind=kind)
        assert to_html(chart(figure)).count('class="curve"') == lines
        assert figure_svg(figure).count('class="curve"') == lines


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.booleans())
def test_ticks_are_round_numbers_around_all_values(first: float, second: float, whole: bool) -> None:
    low, high = sorted((first, second))
    ticks = round_ticks(low, high, whole=whole)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] <= low * (1 + 1e-9) + 1e-9
    assert ticks[-1] >= high * (1 - 1e-9) - 1e-9
    steps = {f"{(b - a):.3g}" for a, b in pairwise(ticks)}
    assert len(steps) == 1
    assert next(iter(steps)).strip("0.").split("e")[0].rstrip("0.") in ("1", "2", "5")
    assert not whole or all(float(t).is_integer() for t in ticks)


def test_ticks_stand_at_the_points_where_these_are_few_and_short() -> None:
    assert ticks_at([0.2, 0.5, 0.3]) == (0.2, 0.3, 0.5)
    assert ticks_at([0, 1, 2, 3, 4, 5]) == (0, 1, 2, 3, 4, 5)
    assert ticks_at(range(1, 21)) == (5, 10, 15, 20)
    assert ticks_at([0.1234567, 0.9]) == (0.2, 0.4, 0.6, 0.8)
    assert ticks_at([3]) == (3,)


def test_what_was_measured_stands_on_page_and_picture() -> None:
    figure = Figure("f", "T", "x", "y", (Panel("", (Series("a", (Point(1, 1),)),)),), about="m <1>; n = 5; seed 3")
    assert "m &lt;1&gt;; n = 5; seed 3" in to_html(chart(figure))
    assert "m &lt;1&gt;; n = 5; seed 3" in figure_svg(figure)
    assert x_ticks(figure) == ((1, "1"),)
    assert figure_styles(figure).keys() == {"a"}


def test_in_a_cloud_only_points_at_the_same_place_stand_side_by_side() -> None:
    at = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (90.0, 1.0)}
    panel = Panel("", tuple(Series(label, (Point(x, y),)) for label, (x, y) in at.items()))
    cloud = Figure("f", "t", "x", "y", (panel,), kind="cloud")
    shown = dict.fromkeys(at, Style(0))
    assert [steps_aside(series, cloud, shown) for series in panel.series] == [-0.5, 0.5, 0]
    points = Figure("f", "t", "x", "y", (panel,), kind="point")
    assert [steps_aside(series, points, shown) for series in panel.series] == [-1, 0, 1]


def test_in_a_cloud_each_panel_sets_its_own_points_aside() -> None:
    def at(label: str, x: float) -> Series:
        return Series(label, (Point(x, 1.0),))

    panels = (
        Panel("", (at("one", 0.0), at("two", 0.0), at("three", 0.0))),
        Panel("", (at("one", 0.0), at("three", 0.0))),
    )
    cloud = Figure("f", "t", "x", "y", panels, kind="cloud")
    shown = dict.fromkeys(("one", "two", "three"), Style(0))
    assert [steps_aside(series, cloud, shown) for series in panels[1].series] == [-0.5, 0.5]


def test_a_clouds_axis_has_its_own_numbers_in_page_and_picture_and_no_point_is_cut_off() -> None:
    ticks = tuple((float(x), str(x)) for x in (0, 25, 50, 75, 100))
    series = tuple(Series(str(i), (Point(0.0, 1.0),)) for i in range(7))
    cloud = Figure("f", "t", "x", "y", (Panel("", series),), ticks, "cloud")
    shown = to_html(chart(cloud))
    assert [shown.count(f">{x}</text>") for x in (25, 50, 75, 100)] == [1] * 4
    places = [
        float(x)
        for x in re.findall(
            r'<circle[^>]* cx="([-\d.]+)"|$', to_html(panel_drawing(cloud.panels[0], cloud, figure_styles(cloud)))
        )
        if x
    ]
    assert all(0 < x < WIDTH for x in places)


def test_panels_of_long_names_are_told_apart() -> None:
    titles = [
        f"a data set, of some length, python:module:{model}, pia at rank {rank}" for model in "ab" for rank in (1, 10)
    ]
    panels = tuple(Panel(title, (Series("s", (Point(1, 1),)),)) for title in (*titles, "W" * 400))
    figure = Figure("f", "t", "x", "y", panels)
    heads = " ".join(
        part.text or "" for part in ET.fromstring(figure_svg(figure)) if part.attrib.get("class") == "head"
    )
    assert all(title in to_html(chart(figure)) for title in titles)
    for model in "ab":
        assert heads.count(f"python:module:{model}") == 2
    assert heads.count("at rank 10") == 2
