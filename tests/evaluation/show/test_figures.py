"""The paper's figures: which lines make which curve, and files that open whatever names are in them."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.drawing.charts import chart
from robustrag_integrations.drawing.elements import DRAWN, to_html
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.evaluation.score.summary import CertifiedScore, Line, summarise
from robustrag_integrations.evaluation.show.figures import (
    MOST_CURVES,
    MOST_PANELS,
    PlotError,
    all_figures,
    save_plots,
    setup_labels,
)


def _rate(mean: float) -> Interval:
    return Interval(mean, max(mean - 0.1, 0), min(mean + 0.1, 1), 50)


def _line(setup: str = "keyword", attack: AttackSpec | None = None, **given: Any) -> Line:
    known = {"dataset": "demo", "task": "qa", "model": "m", "defense": setup.split()[0], "top_k": 10, "n": 50}
    return Line(**{**known, "setup": setup, "attack": attack or AttackSpec(), **given})


def _figures(lines: list[Line]) -> dict[str, Any]:
    return {figure.name: figure for figure in all_figures(lines)}


def _curves(figure: Any) -> dict[tuple[str, str], list[tuple[float, float]]]:
    return {(p.title, s.label): [(d.x, d.y) for d in s.points] for p in figure.panels for s in p.series}


def test_attack_success_by_rank_has_a_panel_per_attack_at_the_smallest_size_with_ranks_in_order() -> None:
    lines = [
        _line(setup, AttackSpec(name, "injection", rank, size), asr=_rate(value), accuracy=_rate(1 - value))
        for setup, value in (("vanilla", 0.8), ("keyword", 0.1))
        for name in ("pia", "poison")
        for rank in ("7", "last", "2", "first")
        for size in (1, 2)
    ]
    figure = _figures(lines)["asr-by-rank"]
    assert [name for _, name in figure.ticks] == ["first", "last", "2", "7"]
    assert _curves(figure)["pia", "vanilla"] == [(0, 0.8), (1, 0.8), (2, 0.8), (3, 0.8)]
    assert len(figure.panels) == 2
    assert _figures(lines[:1]).keys() == set()


def test_each_attack_is_shown_at_its_best_rank() -> None:
    tried = (("pia", "first", 0.4), ("pia", "last", 0.9), ("poison", "last", 0.2), ("jamming", "last", 0.3))
    lines = [_line("vanilla", AttackSpec(name, rank=r, corruption_size=1), asr=_rate(v)) for name, r, v in tried]
    figure = _figures(lines)["asr-by-attack"]
    assert _curves(figure) == {("", "vanilla"): [(0, 0.9), (1, 0.2), (2, 0.3)]}
    assert [name for _, name in figure.ticks] == ["pia", "poison", "jamming"]


def test_curves_of_two_points_make_no_figure_since_a_table_has_them() -> None:
    ranks = [_line("vanilla", AttackSpec("pia", rank=r, corruption_size=1), asr=_rate(0.4)) for r in (1, 5, 10)]
    attacks = [_line("vanilla", AttackSpec(a, corruption_size=1), asr=_rate(0.4)) for a in ("pia", "poison", "jamming")]
    for lines, name in ((ranks, "asr-by-rank"), (attacks, "asr-by-attack")):
        assert _figures(lines).keys() == {name}
        assert _figures(lines[:2]).keys() == set()


def test_certified_accuracy_begins_with_the_accuracy_without_an_attacker() -> None:
    certified = tuple(
        CertifiedScore(attack, size, _rate(value), 1, 0, Interval(None, None, None, 0))
        for attack, size, value in (("injection", 1, 0.6), ("injection", 2, 0.4), ("modification", 1, 0.5))
    )
    curves = _curves(_figures([_line(accuracy=_rate(0.9), certified=certified)])["certified-by-corruption-size"])
    assert curves["injection", "keyword"] == [(0, 0.9), (1, 0.6), (2, 0.4)]
    assert curves["modification", "keyword"] == [(0, 0.9), (1, 0.5)]


def test_judged_answers_are_drawn_as_shares_of_a_hundred() -> None:
    certified = tuple(
        CertifiedScore("injection", size, Interval(mean, 30.0, 50.0, 9), 9, 0, Interval(None, None, None, 0))
        for size, mean in ((1, 40.0), (2, 35.0))
    )
    line = _line(task="long", judge=Interval(70.0, 60.0, 80.0, 9), certified=certified)
    curves = _curves(_figures([line])["certified-by-corruption-size"])
    assert curves["injection", "keyword"] == [(0, 0.7), (1, 0.4), (2, 0.35)]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("top-k", lambda v: {"top_k": v}),
        ("group-size", lambda v: {"settings": {"group_size": v}}),
        ("beta", lambda v: {"settings": {"beta": v}}),
        ("eta", lambda v: {"settings": {"eta": float(v)}}),
        ("alpha", lambda v: {"settings": {"alpha": f"{v}/1"}}),
    ],
)
def test_a_setting_with_several_values_makes_a_figure_of_benign_and_certified_accuracy(name: str, changed: Any) -> None:
    certified = (CertifiedScore("injection", 1, _rate(0.5), 1, 0, Interval(None, None, None, 0)),)
    lines = [
        _line(f"keyword {value}", accuracy=_rate(value / 10), certified=certified, **changed(value))
        for value in (5, 1, 2)
    ]
    figure = _figures(lines)[name]
    assert _curves(figure) == {
        ("benign accuracy", "keyword"): [(1, 0.1), (2, 0.2), (5, 0.5)],
        ("certified accuracy, k′ = 1", "keyword"): [(1, 0.5), (2, 0.5), (5, 0.5)],
    }
    assert name not in _figures(lines[:1])


@pytest.mark.parametrize("value", ["1e999999999", "inf", "nan", "1/0", "", "x", None, True, [1]])
def test_a_setting_that_is_no_number_makes_no_figure(value: Any) -> None:
    lines = [_line(f"keyword {v!r:.20}", accuracy=_rate(0.5), settings={"alpha": v}) for v in (0.2, value)]
    assert "alpha" not in _figures(lines)


def test_other_settings_that_vary_make_curves_of_their_own() -> None:
    lines = [
        _line(f"keyword {a} {b}", accuracy=_rate(0.5), settings={"alpha": a, "beta": b})
        for a in (0.2, 0.3, 0.4)
        for b in (1, 3)
    ]
    curves = _curves(_figures(lines)["alpha"])
    assert set(curves) == {("benign accuracy", "keyword beta=1"), ("benign accuracy", "keyword beta=3")}


def test_the_radius_is_drawn_as_the_share_of_answers_that_reach_it() -> None:
    figure = _figures([_line(radii={0: 1, 1: 1, 3: 2})])["radius"]
    assert _curves(figure)["", "keyword"] == [(0, 1.0), (1, 0.75), (2, 0.5), (3, 0.5), (4, 0.0)]


def test_tasks_of_one_data_set_have_panels_of_their_own() -> None:
    attacks = [AttackSpec(name, corruption_size=1) for name in ("pia", "poison", "jamming")]
    lines = [_line("vanilla", a, task=task, asr=_rate(v)) for task, v in (("qa", 0.4), ("mc", 0.9)) for a in attacks]
    assert _curves(_figures(lines)["asr-by-attack"]) == {
        ("demo (qa)", "vanilla"): [(0, 0.4), (1, 0.4), (2, 0.4)],
        ("demo (mc)", "vanilla"): [(0, 0.9), (1, 0.9), (2, 0.9)],
    }


def test_of_too_many_curves_and_panels_the_first_are_drawn_vanilla_among_them_and_the_rest_is_counted() -> None:
    setups = [*(f"keyword {i}" for i in range(30)), "vanilla"]
    attacked = [AttackSpec(f"a{i}", rank=r, corruption_size=1) for r in (1, 5, 10) for i in range(15)]
    figure = _figures([_line(setup, attack, asr=_rate(0.5)) for setup in setups for attack in attacked])["asr-by-rank"]
    assert len(figure.labels) == MOST_CURVES
    assert len(figure.panels) == MOST_PANELS
    assert "vanilla" in figure.labels
    assert figure.note == "Left out: 19 curves and 3 panels; the tables have all."
    assert figure.note in to_html(chart(figure))


def test_setups_with_several_numbers_of_passages_are_told_apart() -> None:
    lines = [_line("keyword", top_k=5), _line("keyword", top_k=10), _line("vanilla")]
    assert list(setup_labels(lines).values()) == ["keyword k=5", "keyword k=10", "vanilla"]


def test_files_are_written_and_open_whatever_names_are_in_them(tmp_path: Path, made_rows: list[dict[str, Any]]) -> None:
    names = {"keyword": r"_$\frac{1}{$ " + "x" * 300, "vanilla": "\x1b[31m\u202e{}%s<b>", "keyword alpha=0.6": "a$b$"}
    rows = [
        {**r, "setup": names.get(r["setup"], "$"), "model": "$\\", "attack": {**r["attack"], "name": _renamed(r)}}
        for r in made_rows
    ]
    written = save_plots(summarise(rows), tmp_path / "new" / "plots")
    assert {p.name for p in written} >= {"radius.svg"}
    for path in written:
        drawn = {element.tag.rpartition("}")[2] for element in ET.parse(path).iter()}
        assert drawn <= {*DRAWN, "style"}, "no name makes an element"
    assert sorted(os.listdir(tmp_path / "new" / "plots")) == sorted(p.name for p in written)


def _renamed(row: dict[str, Any]) -> str:
    return row["attack"]["name"] if row["attack"]["name"] == "none" else f"$\\{row['attack']['name']}_{{^ & <svg>"


def test_the_same_lines_give_the_same_bytes(tmp_path: Path) -> None:
    lines = [_line(radii={0: 1, 1: 2})]
    first, second = (save_plots(lines, tmp_path / name) for name in ("a", "b"))
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert len(first) == 1


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(PlotError, match="cannot write figures"):
        save_plots([], tmp_path / "taken")


def test_titles_say_model_questions_passages_and_seed() -> None:
    attacked = AttackSpec("pia", corruption_size=1, seed=4)
    lines = [_line("vanilla", attacked, asr=_rate(0.8)), _line("keyword", attacked, asr=_rate(0.1), n=40)]
    others = [AttackSpec(name, corruption_size=1, seed=4) for name in ("poison", "jamming")]
    lines += [_line("vanilla", attack, asr=_rate(0.5)) for attack in others]
    assert _figures(lines)["asr-by-attack"].about == "m; n = 40 to 50; k = 10; seed 4"
    clean = [_line(radii={0: 1, 1: 2}, top_k=None), _line("keyword 2", radii={1: 2}, top_k=5, model="b")]
    [radius] = [figure for figure in all_figures(clean, seed=9) if figure.name == "radius"]
    assert radius.about == "m, b; n = 50; k = all, 5; seed 9"
    assert {f.about for f in all_figures(clean)} == {"m, b; n = 50; k = all, 5"}


def test_what_is_counted_in_passages_is_drawn_as_points() -> None:
    certified = tuple(CertifiedScore("injection", k, _rate(0.5), 1, 0, Interval(None, None, None, 0)) for k in (1, 2))
    lines = [_line(accuracy=_rate(0.9), certified=certified, radii={0: 1, 2: 1})]
    lines += [
        _line(attack=AttackSpec("pia", corruption_size=k), asr=_rate(0.5), accuracy=_rate(0.5)) for k in (1, 2, 3)
    ]
    drawn = {name: figure.kind for name, figure in _figures(lines).items()}
    for name in ("certified-by-corruption-size", "asr-by-corruption-size", "radius"):
        assert drawn[name] == "point"
