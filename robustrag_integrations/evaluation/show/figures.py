"""The paper's figures as data: the lines behind each curve. `drawing.charts` draws them.

Section V and its appendix: attack success by rank; effect of the corruption size k', of the number of passages k, of
the group size omega, and of the thresholds alpha, beta and eta. Besides, the success of each attack, and the radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from robustrag_integrations.drawing.charts import Figure, Panel, Point, Series
from robustrag_integrations.drawing.files import save_figure
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.intervals import EMPTY, Interval
from robustrag_integrations.evaluation.score.summary import Line

MOST_CURVES = 12  # that colours and marks tell apart
MOST_PANELS = 12
_FEWEST_POINTS = 3  # of a figure's longest curve
_LARGEST_RADIUS = 200  # on an axis
_RANKS = {"first": -4, "middle": -3, "last": -2, "random": -1}


class PlotError(RobustRAGError):
    """Figures that cannot be written; the message says where and why."""


def save_plots(lines: Sequence[Line], folder: str | Path, *, seed: int | None = None) -> tuple[Path, ...]:
    """Draw every figure that a run has the data for, as SVG files.

    Args:
        lines: of `summarise`.
        folder: where the files go, made when it is not there; a file of the same name is replaced.
        seed: of the run, for the titles; None where it is not known.

    Returns:
        The files, in the order of the figures; none when there is nothing to compare.

    Raises:
        PlotError: a file cannot be written.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        return tuple(save_figure(figure, target / f"{figure.name}.svg") for figure in all_figures(lines, seed))
    except OSError as error:
        raise PlotError(f"cannot write figures to {str(folder)!r}: {error.strerror}") from error


def all_figures(lines: Sequence[Line], seed: int | None = None) -> tuple[Figure, ...]:
    """Every figure that these lines have three points of a curve for, each of at most 12 curves and 12 panels.

    Args:
        lines: of `summarise`.
        seed: of the run, for the titles of figures without an attack; None where it is not known.
    """
    candidates = (
        _by_rank(lines),
        _by_attack(lines),
        _by_size(lines),
        _certified_by_size(lines),
        _sweep(lines, "top-k", "Effect of the number of passages k", "passages k", lambda line: line.top_k),
        _sweep(lines, "group-size", "Effect of the group size ω", "passages per group ω", _setting("group_size")),
        _sweep(lines, "alpha", "Effect of the keyword threshold α", "α", _setting("alpha")),
        _sweep(lines, "beta", "Effect of the keyword threshold β", "β", _setting("beta")),
        _sweep(lines, "eta", "Effect of the probability threshold η", "η", _setting("eta")),
        _radii(lines),
    )
    about = _measured(lines, seed) if lines else ""
    labels = setup_labels(sorted(lines, key=lambda line: line.defense != "vanilla"))
    order = tuple(labels.values())
    kept = [figure for figure in candidates if figure is not None and _says_more_than_a_table(figure)]
    return tuple(_cut(replace(figure, about=about, order=order)) for figure in kept)


def _says_more_than_a_table(figure: Figure) -> bool:
    """True if a curve has three points; two are two cells of the table."""
    return any(len(series.points) >= _FEWEST_POINTS for panel in figure.panels for series in panel.series)


def setup_labels(lines: Iterable[Line]) -> dict[tuple[str, int | None], str]:
    """A label per setup and number of passages; the number is in it where a setup has several."""
    found = dict.fromkeys((line.setup, line.top_k) for line in lines)
    setups = [setup for setup, _ in found]
    return {(setup, k): setup if setups.count(setup) == 1 else f"{setup} k={k}" for setup, k in found}


def _cut(figure: Figure) -> Figure:
    """Cut a figure to the curves and panels that can be told apart, vanilla RAG first, and note what is left out."""
    labels = list(figure.looks)
    kept = sorted(labels, key=figure.order.index if set(labels) <= set(figure.order) else labels.index)[:MOST_CURVES]
    panels = [replace(p, series=tuple(s for s in p.series if s.label in kept)) for p in figure.panels]
    shown = tuple(panel for panel in panels if panel.series)[:MOST_PANELS]
    left = {"curves": len(labels) - len(kept), "panels": len(figure.panels) - len(shown)}
    said = " and ".join(f"{count} {name}" for name, count in left.items() if count > 0)
    return replace(figure, panels=shown, note=f"Left out: {said}; the tables have all." if said else "")


def _measured(lines: Sequence[Line], seed: int | None) -> str:
    """Describe what all figures of a run are about: models, questions, passages, seeds."""
    models = list(dict.fromkeys(line.model for line in lines))
    counts = sorted({line.n for line in lines})
    passages = sorted({line.top_k or 0 for line in lines})
    seeds = sorted({line.attack.seed for line in lines if not line.clean}) or ([] if seed is None else [seed])
    parts = [", ".join(one_line(m, 40) for m in models) if len(models) < 4 else f"{len(models)} models"]
    parts.append(f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}")
    parts.append(f"k = {_few([str(k or 'all') for k in passages])}")
    return "; ".join([*parts, *([f"seed {_few(list(map(str, seeds)))}"] if seeds else [])])


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 8 else f"{names[0]} to {names[-1]}"


def _by_rank(lines: Sequence[Line]) -> Figure | None:
    """A panel per attack at its smallest corruption size; needs two ranks."""
    attacked = _smallest(line for line in lines if not line.clean)
    ranks = sorted({line.attack.rank for line in attacked}, key=_rank_order)
    if len(ranks) < 2:
        return None
    panels = _panels(
        attacked,
        lambda line: (line.attack.name,),
        _setup_of(lines),
        lambda line: (float(ranks.index(line.attack.rank)), line.asr),
    )
    ticks = tuple((float(i), _rank_name(rank)) for i, rank in enumerate(ranks))
    title = "Attack success by rank of the planted passage"
    return _figure("asr-by-rank", title, "rank of the planted passages", "ASR", panels, ticks=ticks)


def _by_attack(lines: Sequence[Line]) -> Figure | None:
    """The success of each attack at the rank where it succeeds most; needs two attacks."""
    worst: dict[tuple[object, ...], Line] = {}
    for line in _smallest(line for line in lines if not line.clean):
        key = (line.dataset, line.task, line.model, line.setup, line.top_k, line.attack.name)
        if line.asr.mean is not None and (key not in worst or line.asr.mean > (worst[key].asr.mean or 0)):
            worst[key] = line
    names = list(dict.fromkeys(line.attack.name for line in worst.values()))
    if len(names) < 2:
        return None
    panels = _panels(
        worst.values(),
        lambda _: (),
        _setup_of(lines),
        lambda line: (float(names.index(line.attack.name)), line.asr),
    )
    ticks = tuple((float(i), name) for i, name in enumerate(names))
    title = "Attack success, each attack at its best rank"
    return _figure("asr-by-attack", title, "attack", "ASR", panels, ticks=ticks, kind="point")


def _by_size(lines: Sequence[Line]) -> Figure | None:
    """A panel per attack, at the first of its ranks; needs two corruption sizes."""
    attacked = [line for line in lines if not line.clean]
    if len({line.attack.corruption_size for line in attacked}) < 2:
        return None
    first = min((line.attack.rank for line in attacked), key=_rank_order)
    panels = _panels(
        (line for line in attacked if line.attack.rank == first),
        lambda line: (line.attack.name,),
        _setup_of(lines),
        lambda line: (float(line.attack.corruption_size), line.asr),
    )
    title = f"Attack success by corruption size, rank: {_rank_name(first)}"
    return _figure("asr-by-corruption-size", title, "planted passages k′", "ASR", panels, kind="point")


def _certified_by_size(lines: Sequence[Line]) -> Figure | None:
    """Certified accuracy against k', from the accuracy at k' = 0 on; a panel per kind of attacker."""
    found: dict[tuple[str, str], dict[str, list[Point]]] = {}
    label = _setup_of(lines)
    for line in lines:
        start = _accuracy(line)
        for score in line.certified:
            panel = found.setdefault((_about(line, lines), score.attack), {})
            points = panel.setdefault(label(line), [] if start.mean is None else [_point(0, start)])
            points.append(_point(score.corruption_size, _as_share(line, score.score)))
    panels = [
        Panel(_title(about, attack), tuple(Series(label, tuple(points)) for label, points in curves.items()))
        for (about, attack), curves in found.items()
    ]
    x_label = "corrupted passages k′ among the retrieved"
    title = "Certified accuracy by corruption size"
    return _figure("certified-by-corruption-size", title, x_label, "certified accuracy", panels, kind="point")


def _sweep(
    lines: Sequence[Line], name: str, title: str, x_label: str, x: Callable[[Line], float | None]
) -> Figure | None:
    """Accuracy without an attacker and certified against one passage, over a setting; needs two values of it."""
    clean = [line for line in lines if line.clean and x(line) is not None]
    if len({x(line) for line in clean}) < 2:
        return None

    def measured(measure: str, value: Callable[[Line], Interval]) -> list[Panel]:
        return _panels(
            clean,
            lambda _: (measure,),
            lambda line: _rest(line, clean, name),
            lambda line: (float(x(line) or 0), value(line)),
        )

    panels = [*measured("benign accuracy", _accuracy), *measured("certified accuracy, k′ = 1", _certified_once)]
    return _figure(name, title, x_label, "accuracy", panels)


def _radii(lines: Sequence[Line]) -> Figure | None:
    """For every r, the share of the right answers whose radius is at least r."""
    guarded = [line for line in lines if line.clean and set(line.radii) - {0}]
    largest = min(max((r for line in guarded for r in line.radii), default=0) + 1, _LARGEST_RADIUS)
    panels: dict[str, list[Series]] = {}
    label = _setup_of(lines)
    for line in guarded:
        total = sum(line.radii.values())
        points = tuple(
            Point(float(r), sum(count for radius, count in line.radii.items() if radius >= r) / total)
            for r in range(largest + 1)
        )
        panels.setdefault(_about(line, lines), []).append(Series(label(line), points))
    made = [Panel(about, tuple(series)) for about, series in panels.items()]
    return _figure("radius", "Radius of the right answers, no attack", "radius r", "of radius ≥ r", made, kind="point")


def _figure(
    name: str,
    title: str,
    x_label: str,
    y_label: str,
    panels: Sequence[Panel],
    *,
    ticks: tuple[tuple[float, str], ...] = (),
    kind: Literal["curve", "point"] = "curve",
) -> Figure | None:
    kept = tuple(panel for panel in panels if panel.series)
    return Figure(name, title, x_label, y_label, kept, ticks, kind) if kept else None


def _panels(
    lines: Iterable[Line],
    facet: Callable[[Line], tuple[str, ...]],
    label: Callable[[Line], str],
    place: Callable[[Line], tuple[float, Interval]],
) -> list[Panel]:
    """Lines by data set, model and facet, and within by label; unknown values are left out."""
    listed = list(lines)
    found: dict[str, dict[str, list[Point]]] = {}
    for line in listed:
        x, interval = place(line)
        if interval.mean is not None:
            panel = found.setdefault(_title(_about(line, listed), *facet(line)), {})
            panel.setdefault(label(line), []).append(_point(x, interval))
    return [
        Panel(title, tuple(Series(name, tuple(sorted(points, key=lambda p: p.x))) for name, points in curves.items()))
        for title, curves in found.items()
    ]


def _point(x: float, interval: Interval) -> Point:
    return Point(float(x), interval.mean or 0.0, interval.low, interval.high)


def _as_share(line: Line, score: Interval) -> Interval:
    """A judge's score of a long answer as a share of 100; any other score as it is."""
    if line.task != "long" or score.mean is None:
        return score
    low, high = (None if end is None else end / 100 for end in (score.low, score.high))
    return Interval(score.mean / 100, low, high, score.n)


def _about(line: Line, lines: Sequence[Line]) -> str:
    """Data set, task and model, where there are several."""
    data = f"{line.dataset} ({line.task})" if len({a.task for a in lines}) > 1 else line.dataset
    parts = (data, {(a.dataset, a.task) for a in lines}), (line.model, {a.model for a in lines})
    return _title(*(own for own, all_of_them in parts if len(all_of_them) > 1))


def _setup_of(lines: Iterable[Line]) -> Callable[[Line], str]:
    labels = setup_labels(lines)
    return lambda line: labels[line.setup, line.top_k]


def _title(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _accuracy(line: Line) -> Interval:
    return _as_share(line, line.judge) if line.task == "long" else line.accuracy


def _certified_once(line: Line) -> Interval:
    found = line.certified_against("injection", 1)
    return _as_share(line, found.score) if found else EMPTY


def _setting(name: str) -> Callable[[Line], float | None]:
    """A numeric setting, which may be written as a fraction; None for anything else."""

    def read(line: Line) -> float | None:
        value = line.settings.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            return None
        try:
            above, _, below = str(value)[:40].partition("/")
            number = float(above) / float(below or 1)
        except (ValueError, ZeroDivisionError):
            return None
        return number if math.isfinite(number) else None

    return read


def _rest(line: Line, lines: Sequence[Line], swept: str) -> str:
    """The defence with every setting that tells its lines apart, but for the one on the axis."""
    others = [other for other in lines if other.defense == line.defense]
    settings = {"top_k": line.top_k, **line.settings}
    varying = [
        f"{name}={value}"
        for name, value in settings.items()
        if name.replace("_", "-") != swept
        and len({str({"top_k": o.top_k, **o.settings}.get(name)) for o in others}) > 1
    ]
    return " ".join([line.defense, *varying])


def _smallest(lines: Iterable[Line]) -> list[Line]:
    """The attacks at the smallest corruption size there is."""
    listed = list(lines)
    least = min((line.attack.corruption_size for line in listed), default=0)
    return [line for line in listed if line.attack.corruption_size == least]


def _rank_order(rank: str | int) -> tuple[int, str]:
    rank = str(rank)
    first = rank.partition("+")[0]
    return (_RANKS.get(rank, int(first) if first.isdecimal() and len(first) < 9 else 10**9), rank)


def _rank_name(rank: str | int) -> str:
    rank = str(rank)
    return str(int(rank)) if rank.isdecimal() and len(rank) < 9 else rank
