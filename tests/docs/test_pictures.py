"""The pictures of the pages are those of recorded runs, and the runs still come out that way."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from docs.pictures.__main__ import HERE, PICTURES, drawn
from docs.pictures.hero import hero
from docs.pictures.terminal import terminal
from robustrag_integrations.defenses.registry import METHODS
from tests.docs.pages import ROOT

HOSTILE = "<script>alert(1)</script> \x1b[31m \u202egnp.exe]]>&amp;\"'"


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return found


def texts(svg: str) -> str:
    return "\n".join(
        "".join(e.itertext()) for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    )


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn_from_its_recording_byte_for_byte(name: str) -> None:
    assert drawn(name).encode() == (HERE / f"{name}.svg").read_bytes()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_fetches_nothing_and_fits_light_and_dark(name: str) -> None:
    svg = (HERE / f"{name}.svg").read_text(encoding="utf-8")
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"url\(|@import|<image|<a |<script|<foreignObject", svg)
    assert "prefers-color-scheme:dark" in svg
    assert len(svg) < 40_000


def test_the_hero_shows_both_answers_and_the_planted_passage() -> None:
    run, shown = recorded("hero"), texts(drawn("hero"))
    assert run["wanted"] == run["vanilla"] != run["answer"]
    assert f"radius {run['radius']}:" in shown
    assert shown.count("✘ outvoted") == sum(row["planted"] for row in run["passages"]) == 1
    assert f"please output {run['wanted']}" in shown


def test_the_terminal_shows_every_word_of_the_run() -> None:
    run, shown = recorded("demo"), texts(drawn("demo"))
    assert " ".join(shown.split()) == " ".join(["$", run["command"], *" ".join(t for _, t in run["lines"]).split()])


def test_the_tree_names_methods_that_are_registered() -> None:
    tree = recorded("choosing")
    named = {name for _, names, _ in tree["questions"] for name in names.split(", ")} | {tree["else"][0]}
    assert named == set(METHODS)


def test_hostile_texts_stay_texts() -> None:
    run = recorded("hero")
    rows = [{"text": HOSTILE, "planted": True, "says": HOSTILE, "status": HOSTILE}]
    svg = hero({**run, "question": HOSTILE, "vanilla": HOSTILE, "answer": HOSTILE, "passages": rows})
    cast = terminal({"command": HOSTILE, "columns": 60, "lines": [[0.1, HOSTILE], [0.2, HOSTILE * 20]]})
    for drawing in (svg, cast):
        assert "<script" not in drawing
        assert "\x1b" not in drawing
        assert "\u202e" not in drawing
        assert "alert(1)" in texts(drawing)


def test_lines_appear_in_order_and_long_waits_are_cut() -> None:
    cast = terminal({"command": "x", "columns": 60, "lines": [[100.0, "first"], [100.0, "second"], [500.0, "third"]]})
    starts = [float(p) for p in re.findall(r"@keyframes l\d+\{0%\{opacity:0\}([\d.]+)%", cast)]
    assert starts == sorted(starts)
    [whole] = {float(s) for s in re.findall(r"\.line\{animation:([\d.]+)s", cast)}
    assert whole < 12


def test_the_pages_show_them() -> None:
    for page, picture in (
        ("README.md", "docs/pictures/hero.svg"),
        ("docs/index.md", "pictures/hero.svg"),
        ("docs/getting-started.md", "pictures/demo.svg"),
        ("docs/choosing.md", "pictures/choosing.svg"),
    ):
        assert f"]({picture})" in (ROOT / page).read_text(encoding="utf-8")


def test_the_recorded_runs_still_come_out_that_way() -> None:
    """All but seconds and sums of probabilities; the command is run on a terminal again."""
    pytest.importorskip("torch")
    pytest.importorskip("bm25s")
    pytest.importorskip("fcntl")
    for name, (record, _) in PICTURES.items():
        again, before = record(), recorded(name)
        if name == "demo":
            again["lines"], before["lines"] = [_timeless(run["lines"]) for run in (again, before)]
        assert again == before, "python -m docs.pictures --record"


def _timeless(lines: list[list[Any]]) -> list[str]:
    return [re.sub(r"^\[ *[\d.]+ s\]|[\d.]+ probability", "", text) for _, text in lines]


def test_everything_is_text() -> None:
    for name in PICTURES:
        root = ElementTree.fromstring((HERE / f"{name}.svg").read_text(encoding="utf-8"))
        assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {"svg", "style", "title", "rect", "line", "text", "g"}
