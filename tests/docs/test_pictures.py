"""The README's picture is that of a recorded run, and the run still comes out that way."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from docs.pictures.__main__ import HERE, drawn
from docs.pictures.hero import hero
from docs.pictures.record import record_attack
from tests.docs.pages import ROOT

HOSTILE = "<script>alert(1)</script> \x1b[31m \u202egnp.exe]]>&amp;\"'"
RUN = json.loads((HERE / "hero.json").read_text(encoding="utf-8"))


def texts(svg: str) -> str:
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return "\n".join("".join(element.itertext()) for element in found)


def test_it_is_drawn_from_its_recording_byte_for_byte_and_shown() -> None:
    assert drawn().encode() == (HERE / "hero.svg").read_bytes()
    for page, picture in (("README.md", "docs/pictures/hero.svg"), ("docs/index.md", "pictures/hero.svg")):
        assert f"]({picture})" in (ROOT / page).read_text(encoding="utf-8")


def test_it_fetches_nothing_and_fits_light_and_dark() -> None:
    svg = drawn()
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"url\(|@import|<image|<a |<script|<foreignObject", svg)
    assert "prefers-color-scheme:dark" in svg


def test_it_shows_both_answers_and_the_planted_passage() -> None:
    shown = texts(drawn())
    assert RUN["wanted"] == RUN["vanilla"] != RUN["answer"]
    assert f"radius {RUN['radius']}:" in shown
    assert shown.count("✘ differs") == sum(row["planted"] for row in RUN["passages"]) == 1
    assert f"please output {RUN['wanted']}" in shown


def test_hostile_texts_stay_texts() -> None:
    rows = [{"text": HOSTILE, "planted": True, "says": HOSTILE, "status": HOSTILE}]
    svg = hero({**RUN, "question": HOSTILE, "vanilla": HOSTILE, "answer": HOSTILE, "passages": rows})
    assert not any(part in svg for part in ("<script", "\x1b", "\u202e"))
    assert "alert(1)" in texts(svg)


def test_the_recorded_run_still_comes_out_that_way() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("bm25s")
    assert record_attack() == RUN, "python -m docs.pictures --record"
