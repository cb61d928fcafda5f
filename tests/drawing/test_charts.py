"""Curves: nothing is cut off, and no two look alike."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from robustrag_integrations.drawing.charts import (
    COLOURS,
    WIDTH,
    Figure,
    Panel,
    Point,
    Series,
    chart,
    panel_drawing,
    x_ticks,
)
from robustrag_integrations.drawing.elements import to_html
from robustrag_integrations.drawing.files import figure_svg


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


def test_a_setup_looks_alike_in_every_figure_and_no_two_of_a_run_do() -> None:
    order = tuple(f"s{i}" for i in range(20))

    def drawn(*labels: str) -> dict[str, int]:
        series = tuple(Series(label, (Point(1, 0.5),)) for label in labels)
        return Figure("f", "T", "x", "y", (Panel("", series),), order=order).looks

    assert drawn("s3", "s14") == {"s3": 3, "s14": 14}
    assert drawn("s14")["s14"] == 14
    figure = Figure("f", "T", "x", "y", (Panel("", tuple(Series(s, (Point(1, 0.5),)) for s in order)),), order=order)
    marks = re.findall(r"<li>(<svg.*?</svg>)", to_html(chart(figure)))
    assert len(set(marks)) == 20
    assert {int(*re.findall(r"series-(\d+)", mark)) for mark in marks} == set(range(len(COLOURS)))


def test_points_have_no_line_between_them() -> None:
    panel = Panel("", (Series("keyword", (Point(0, 0.9), Point(1, 0.5), Point(2, 0.1))),))
    for kind, lines in (("point", 0), ("curve", 1)):
        figure = Figure("f", "T", "k'", "certified", (panel,), kind=kind)
        assert to_html(chart(figure)).count('class="curve"') == lines
        assert figure_svg(figure).count('class="curve"') == lines


def test_no_point_and_no_interval_is_cut_off_and_ticks_stand_at_points() -> None:
    series = tuple(Series(str(i), tuple(Point(x, 1.0, 0.0, 1.0) for x in range(30))) for i in range(12))
    figure = Figure("f", "t", "x", "y", (Panel("", series),), kind="point")
    shown = to_html(panel_drawing(figure.panels[0], figure))
    assert all(0 < float(x) < WIDTH for x in re.findall(r'\bc?x[12]?="([-\d.]+)"', shown))
    assert all(float(y) >= 0 for y in re.findall(r'\bc?y[12]?="([-\d.]+)"', shown))
    assert [name for _, name in x_ticks(figure)] == ["0", "4", "8", "12", "16", "20", "24", "28"]


def test_what_was_measured_stands_on_page_and_picture() -> None:
    figure = Figure("f", "T", "x", "y", (Panel("", (Series("a", (Point(1, 1),)),)),), about="m <1>; n = 5; seed 3")
    assert "m &lt;1&gt;; n = 5; seed 3" in to_html(chart(figure))
    assert "m &lt;1&gt;; n = 5; seed 3" in figure_svg(figure)
    assert x_ticks(figure) == ((1, "1"),)


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
