"""The paper's figures: which lines make which curve, and files that open whatever names are in them."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.drawing.charts import chart, figure_styles, labels_of
from robustrag_integrations.drawing.elements import DRAWN, to_html
from robustrag_integrations.evaluation.score.expected import ExpectedAccuracy
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.evaluation.score.summary import CertifiedScore, Line, summarise
from robustrag_integrations.evaluation.show.figures import all_figures, setup_labels, setup_styles
from robustrag_integrations.evaluation.show.parts import MOST_CURVES, MOST_PARTS, drawable_figures
from robustrag_integrations.evaluation.show.plots import PlotError, save_plots


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
    assert _figures(lines[:1]).keys() == {"asr-by-attack"}


def test_each_attack_is_shown_at_its_best_rank() -> None:
    lines = [_line("vanilla", AttackSpec("pia", rank=r, corruption_size=1), asr=_rate(v)) for r, v in
             (("first", 0.4), ("last", 0.9))]  # fmt: skip
    figure = _figures(lines)["asr-by-attack"]
    assert _curves(figure) == {("", "vanilla"): [(0, 0.9)]}


def test_certified_accuracy_begins_with_the_accuracy_without_an_attacker() -> None:
    certified = tuple(
        CertifiedScore(attack, size, _rate(value), 1, 0, Interval(None, None, None, 0))
        for attack, size, value in (("injection", 1, 0.6), ("injection", 2, 0.4), ("modification", 1, 0.5))
    )
    curves = _curves(_figures([_line(accuracy=_rate(0.9), certified=certified)])["certified-by-corruption-size"])
    assert curves["injection", "keyword"] == [(0, 0.9), (1, 0.6), (2, 0.4)]
    assert curves["modification", "keyword"] == [(0, 0.9), (1, 0.5)]


def test_judged_answers_are_drawn_as_shares_of_a_hundred() -> None:
    score = CertifiedScore("injection", 1, Interval(40.0, 30.0, 50.0, 9), 9, 0, Interval(None, None, None, 0))
    line = _line(task="long", judge=Interval(70.0, 60.0, 80.0, 9), certified=(score,))
    curves = _curves(_figures([line])["certified-by-corruption-size"])
    assert curves["injection", "keyword"] == [(0, 0.7), (1, 0.4)]


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
        for a in (0.2, 0.4)
        for b in (1, 3)
    ]
    curves = _curves(_figures(lines)["alpha"])
    assert set(curves) == {("benign accuracy", "keyword beta=1"), ("benign accuracy", "keyword beta=3")}


def test_the_radius_is_drawn_as_the_share_of_answers_that_reach_it() -> None:
    figure = _figures([_line(radii={0: 1, 1: 1, 3: 2})])["radius"]
    assert _curves(figure)["", "keyword"] == [(0, 1.0), (1, 0.75), (2, 0.5), (3, 0.5), (4, 0.0)]


def test_clean_accuracy_stands_against_attack_success_with_a_panel_per_attack_and_rank() -> None:
    lines = [_line(setup, accuracy=_rate(value)) for setup, value in (("vanilla", 0.9), ("mis", 0.8), ("radar", 0.8))]
    for setup, value in (("vanilla", 0.7), ("mis", 0.1), ("radar", 0.2)):
        lines += [
            _line(setup, AttackSpec("pia", rank=r, corruption_size=1), asr=_rate(value)) for r in ("first", "last")
        ]
        lines.append(_line(setup, AttackSpec("pia", rank="first", corruption_size=2), asr=_rate(1)))
    lines.append(_line("keyword", AttackSpec("pia", rank="first", corruption_size=1), asr=_rate(0)))  # never run clean
    assert _curves(_figures(lines)["accuracy-against-asr"]) == {
        (f"pia at rank {rank}", setup): [(100 * asr, accuracy)]
        for rank in ("first", "last")
        for setup, asr, accuracy in (("vanilla", 0.7, 0.9), ("mis", 0.1, 0.8), ("radar", 0.2, 0.8))
    }
    two = [line for line in lines if line.setup != "radar"]
    assert "accuracy-against-asr" not in _figures(two), "two points are a sentence"


def test_runtime_names_the_multiple_of_vanilla() -> None:
    lines = [
        _line("vanilla", seconds=1.0, latency_ratio=_rate(1.0)),
        _line("keyword", seconds=2.5, latency_ratio=Interval(2.5, 2.0, 3.0, 9)),
    ]
    figure = _figures(lines)["runtime"]
    assert [name for _, name in figure.ticks] == ["1.00×", "2.50×"]
    assert not figure.percent


def test_tasks_of_one_data_set_have_panels_of_their_own() -> None:
    attacked = AttackSpec("pia", corruption_size=1)
    lines = [_line("vanilla", attacked, task=task, asr=_rate(v)) for task, v in (("qa", 0.4), ("mc", 0.9))]
    lines += [_line("vanilla", task=task, seconds=1.0, latency_ratio=_rate(1.0)) for task in ("qa", "mc")]
    figures = _figures(lines)
    assert _curves(figures["asr-by-attack"]) == {
        ("demo (qa)", "vanilla"): [(0, 0.4)],
        ("demo (mc)", "vanilla"): [(0, 0.9)],
    }
    assert [name for _, name in figures["runtime"].ticks] == ["vanilla"]


def test_too_many_curves_are_drawn_in_parts_with_vanilla_in_each_and_none_left_out() -> None:
    setups = ["vanilla", *(f"keyword {i}" for i in range(30))]
    attacked = [AttackSpec("pia", rank=rank, corruption_size=1) for rank in ("first", "last")]
    lines = [_line(setup, attack, asr=_rate(0.5)) for setup in setups for attack in attacked]
    drawn = {figure.name: figure for figure in drawable_figures(lines)}
    parts = [drawn[name] for name in ("asr-by-rank", "asr-by-rank-2", "asr-by-rank-3")]
    assert [part.title[-8:] for part in parts] == ["(1 of 3)", "(2 of 3)", "(3 of 3)"]
    assert all("vanilla" in labels_of(part) and len(labels_of(part)) <= MOST_CURVES for part in parts)
    assert {label for part in parts for label in labels_of(part)} == set(setups)
    bars = [drawn[name] for name in ("asr-by-attack", "asr-by-attack-2")]
    assert all(part.ticks == ((0.0, "pia"),) for part in bars)


def test_places_of_other_parts_are_closed_up_and_what_is_beyond_the_last_part_is_said() -> None:
    lines = [_line(f"keyword {i}", seconds=1.0 + i) for i in range(MOST_CURVES * MOST_PARTS + 5)]
    parts = [figure for figure in drawable_figures(lines) if figure.name.startswith("runtime")]
    assert len(parts) == MOST_PARTS
    assert [x for x, _ in parts[1].ticks] == [float(i) for i in range(MOST_CURVES)]
    assert [p.x for s in parts[1].panels[0].series for p in s.points] == [float(i) for i in range(MOST_CURVES)]
    assert parts[-1].note == "The parts from 25 to 25 are left out, with 5 more curves."
    assert parts[-1].note in to_html(chart(parts[-1]))


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
    assert {p.name for p in written} >= {"asr-by-rank.svg", "radius.svg", "runtime.svg"}
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


def test_expected_certified_accuracy_falls_with_the_replaced_groups_and_starts_at_the_accuracy() -> None:
    expected = tuple(ExpectedAccuracy(k, 0, _rate(0.8 - k / 10)) for k in (1, 2))
    lines = [_line("keyword", expected=expected, accuracy=_rate(0.9)), _line("vanilla", accuracy=_rate(0.9))]
    figure = _figures(lines)["expected-by-replaced-groups"]
    assert _curves(figure) == {("", "keyword"): [(0, 0.9), (1, pytest.approx(0.7)), (2, pytest.approx(0.6))]}
    assert "expected-by-replaced-groups" not in _figures([_line("vanilla", accuracy=_rate(0.9))])


def test_titles_say_model_questions_passages_and_seed() -> None:
    attacked = AttackSpec("pia", corruption_size=1, seed=4)
    lines = [_line("vanilla", attacked, asr=_rate(0.8)), _line("keyword", attacked, asr=_rate(0.1), n=40)]
    assert _figures(lines)["asr-by-attack"].about == "m; n = 40 to 50; k = 10; seed 4"
    clean = [_line(radii={0: 1, 1: 2}, top_k=None), _line("keyword 2", radii={1: 2}, top_k=5, model="b")]
    [radius] = [figure for figure in all_figures(clean, seed=9) if figure.name == "radius"]
    assert radius.about == "m, b; n = 50; k = all, 5; seed 9"
    assert {f.about for f in all_figures(clean)} == {"m, b; n = 50; k = all, 5"}


def test_a_defence_has_its_colour_in_every_figure_of_every_run() -> None:
    attacked = AttackSpec("pia", corruption_size=1)

    def colours(setups: list[str]) -> set[tuple[str, int]]:
        lines = [_line(s, a, asr=_rate(0.5), accuracy=_rate(0.5), seconds=1.0, radii={0: 1, 1: 1},
                       settings={"alpha": i / 10}) for i, s in enumerate(setups)
                 for a in (AttackSpec(), attacked)]  # fmt: skip
        known = setup_styles(lines)
        styled = [(s.of, figure_styles(f, known)[s.label]) for f in drawable_figures(lines)
                  for p in f.panels for s in p.series]  # fmt: skip
        return {(of, style.colour) for of, style in styled}

    every = colours(["decoding", "keyword 1", "vanilla", "keyword 2"])
    assert len(every) == 3
    assert colours(["keyword 5"]) | colours(["vanilla", "decoding"]) == every


def test_what_is_counted_in_passages_is_drawn_as_points() -> None:
    certified = tuple(CertifiedScore("injection", k, _rate(0.5), 1, 0, Interval(None, None, None, 0)) for k in (1, 2))
    lines = [_line(accuracy=_rate(0.9), certified=certified, radii={0: 1, 2: 1})]
    lines += [_line(attack=AttackSpec("pia", corruption_size=k), asr=_rate(0.5), accuracy=_rate(0.5)) for k in (1, 2)]
    drawn = {name: figure.kind for name, figure in _figures(lines).items()}
    for name in ("certified-by-corruption-size", "asr-by-corruption-size", "accuracy-by-corruption-size", "radius"):
        assert drawn[name] == "point"


def test_parts_of_a_cloud_leave_its_points_where_they_were_measured() -> None:
    lines = []
    for data in range(13):
        attack = AttackSpec("pia", rank="first", corruption_size=1)
        for setup in ("vanilla", "mis", "radar"):
            lines.append(_line(setup, accuracy=_rate(0.9), dataset=f"d{data}"))
            lines.append(_line(setup, attack, asr=_rate(0.5), dataset=f"d{data}"))
    assert {figure.name for figure in drawable_figures(lines)} >= {"asr-by-attack", "asr-by-attack-2"}
    parts = [figure for figure in drawable_figures(lines) if figure.name.startswith("accuracy-against-asr")]
    assert len(parts) == 2
    assert {p.x for part in parts for panel in part.panels for s in panel.series for p in s.points} == {50.0}
    assert [x for x, _ in parts[0].ticks] == [0, 25, 50, 75, 100]
