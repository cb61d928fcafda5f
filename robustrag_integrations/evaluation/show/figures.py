"""The paper's figures as data: which lines make which curve. `drawing.charts` draws them.

Section V and its appendix: attack success by rank; effect of the corruption size k', of the number of passages k, of
the group size omega, of the thresholds alpha, beta and eta; and besides the distribution of the radius, and the
runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from robustrag_integrations.drawing.charts import Figure, Panel, Point, Series
from robustrag_integrations.drawing.styles import Style, styles_of
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.evaluation.score.intervals import EMPTY, Interval
from robustrag_integrations.evaluation.score.summary import Line
from robustrag_integrations.rounding import decimals

_LARGEST_RADIUS = 200  # on an axis
_FEWEST_IN_A_CLOUD = 3  # points; two are a sentence
_RANKS = {"first": -4, "middle": -3, "last": -2, "random": -1}


def all_figures(lines: Sequence[Line], seed: int | None = None) -> tuple[Figure, ...]:
    """Every figure that these lines have the data for.

    Args:
        lines: of `summarise`.
        seed: of the run, for the titles of figures without an attack; None where it is not known.
    """
    candidates = (
        _by_rank(lines, "asr-by-rank", "Attack success by rank of the planted passage", "ASR", lambda line: line.asr),
        _by_rank(lines, "accuracy-by-rank", "Accuracy under attack by rank", "accuracy", _accuracy),
        _by_attack(lines),
        _accuracy_against_success(lines),
        _by_size(lines, "asr-by-corruption-size", "Attack success by corruption size", "ASR", lambda line: line.asr),
        _by_size(lines, "accuracy-by-corruption-size", "Accuracy by corruption size", "accuracy", _accuracy),
        _certified_by_size(lines),
        _expected_by_size(lines),
        _sweep(lines, "top-k", "Effect of the number of passages k", "passages k", lambda line: line.top_k),
        _sweep(lines, "group-size", "Effect of the group size ω", "passages per group ω", _setting("group_size")),
        _sweep(lines, "alpha", "Effect of the keyword threshold α", "α", _setting("alpha")),
        _sweep(lines, "beta", "Effect of the keyword threshold β", "β", _setting("beta")),
        _sweep(lines, "eta", "Effect of the probability threshold η", "η", _setting("eta")),
        _radii(lines),
        _runtime(lines),
    )
    about = _measured(lines, seed) if lines else ""
    labels = setup_labels(lines)
    of = {labels[line.setup, line.top_k]: line.defense for line in lines}
    return tuple(replace(_coloured(figure, of), about=about) for figure in candidates if figure is not None)


def setup_labels(lines: Iterable[Line]) -> dict[tuple[str, int | None], str]:
    """A label per setup and number of passages; the number is in it where a setup has several."""
    found = dict.fromkeys((line.setup, line.top_k) for line in lines)
    setups = [setup for setup, _ in found]
    return {(setup, k): setup if setups.count(setup) == 1 else f"{setup} k={k}" for setup, k in found}


def _coloured(figure: Figure, of: Mapping[str, str]) -> Figure:
    """The figure with the defence that each curve is of; labels that are not a setup's begin with it."""
    panels = (
        replace(panel, series=tuple(replace(s, of=of.get(s.label, s.label.partition(" ")[0])) for s in panel.series))
        for panel in figure.panels
    )
    return replace(figure, panels=tuple(panels))


def setup_styles(lines: Iterable[Line]) -> dict[str, Style]:
    """The style of each setup in all figures of a run."""
    listed = list(lines)
    labels = setup_labels(listed)
    return styles_of((labels[line.setup, line.top_k], line.defense) for line in listed)


def _measured(lines: Sequence[Line], seed: int | None) -> str:
    """What all figures of a run are about: models, questions, passages, seeds."""
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


def _by_rank(
    lines: Sequence[Line], name: str, title: str, measure: str, value: Callable[[Line], Interval]
) -> Figure | None:
    """A panel per attack at its smallest corruption size; needs two ranks."""
    attacked = _smallest(line for line in lines if not line.clean)
    ranks = sorted({line.attack.rank for line in attacked}, key=_rank_order)
    if len(ranks) < 2:
        return None
    panels = _panels(
        attacked,
        lambda line: (line.attack.name,),
        _setup_of(lines),
        lambda line: (float(ranks.index(line.attack.rank)), value(line)),
    )
    ticks = tuple((float(i), _rank_name(rank)) for i, rank in enumerate(ranks))
    return _figure(name, title, "rank of the planted passages", measure, panels, ticks=ticks)


def _by_attack(lines: Sequence[Line]) -> Figure | None:
    """The success of each attack at the rank where it succeeds most."""
    worst: dict[tuple[object, ...], Line] = {}
    for line in _smallest(line for line in lines if not line.clean):
        key = (*_asked(line), line.attack.name)
        if line.asr.mean is not None and (key not in worst or line.asr.mean > (worst[key].asr.mean or 0)):
            worst[key] = line
    names = list(dict.fromkeys(line.attack.name for line in worst.values()))
    panels = _panels(
        worst.values(),
        lambda _: (),
        _setup_of(lines),
        lambda line: (float(names.index(line.attack.name)), line.asr),
    )
    ticks = tuple((float(i), name) for i, name in enumerate(names))
    title = "Attack success, each attack at its best rank"
    return _figure("asr-by-attack", title, "attack", "ASR", panels, ticks=ticks, kind="bar")


def _accuracy_against_success(lines: Sequence[Line]) -> Figure | None:
    """One point per setup: what it is worth without an attacker, and what it gives one; a panel per attack and rank."""
    clean = {_asked(line): _accuracy(line) for line in lines if line.clean}
    attacked = [line for line in _smallest(line for line in lines if not line.clean) if _asked(line) in clean]
    panels = _panels(
        (line for line in attacked if line.asr.mean is not None),
        lambda line: (f"{line.attack.name} at rank {_rank_name(line.attack.rank)}",),
        _setup_of(lines),
        lambda line: (100 * (line.asr.mean or 0), clean[_asked(line)]),
    )
    panels = [panel for panel in panels if len(panel.series) >= _FEWEST_IN_A_CLOUD]
    title = "Accuracy without attack against attack success"
    x_label, y_label = "ASR (%); best is top left", "accuracy without attack"
    ticks = tuple((float(x), str(x)) for x in range(0, 101, 25))
    return _figure("accuracy-against-asr", title, x_label, y_label, panels, ticks=ticks, kind="cloud")


def _asked(line: Line) -> tuple[object, ...]:
    """What a line is about besides the attack."""
    return line.dataset, line.task, line.model, line.setup, line.top_k


def _by_size(
    lines: Sequence[Line], name: str, title: str, measure: str, value: Callable[[Line], Interval]
) -> Figure | None:
    """A panel per attack, at the first of its ranks; needs two corruption sizes."""
    attacked = [line for line in lines if not line.clean]
    if len({line.attack.corruption_size for line in attacked}) < 2:
        return None
    first = min((line.attack.rank for line in attacked), key=_rank_order)
    panels = _panels(
        (line for line in attacked if line.attack.rank == first),
        lambda line: (line.attack.name,),
        _setup_of(lines),
        lambda line: (float(line.attack.corruption_size), value(line)),
    )
    return _figure(name, f"{title}, rank: {_rank_name(first)}", "planted passages k′", measure, panels, kind="point")


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
    title = "Certified accuracy by corruption size"
    return _figure(
        "certified-by-corruption-size",
        title,
        "corrupted passages k′ among the retrieved",
        "certified accuracy",
        panels,
        kind="point",
    )


def _expected_by_size(lines: Sequence[Line]) -> Figure | None:
    """Expected certified accuracy against k', from the accuracy at k' = 0 on."""
    found: dict[str, dict[str, list[Point]]] = {}
    label = _setup_of(lines)
    for line in lines:
        if line.expected:
            points = [_point(0, _accuracy(line)), *(_point(e.corruption_size, e.share) for e in line.expected)]
            found.setdefault(_about(line, lines), {})[label(line)] = points
    panels = [
        Panel(about, tuple(Series(label, tuple(points)) for label, points in curves.items()))
        for about, curves in found.items()
    ]
    title = "Expected certified accuracy by replaced groups"
    x_label, y_label = "replaced groups k′", "right with radius at least k′"
    return _figure("expected-by-replaced-groups", title, x_label, y_label, panels, kind="point")


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


def _runtime(lines: Sequence[Line]) -> Figure | None:
    """Seconds per question, no attack."""
    timed = [line for line in lines if line.clean and line.seconds is not None]
    label = _setup_of(lines)
    setups = list(dict.fromkeys(map(label, timed)))
    panels: dict[str, list[Series]] = {}
    for line in timed:
        point = Point(float(setups.index(label(line))), line.seconds or 0.0)
        panels.setdefault(_about(line, lines), []).append(Series(label(line), (point,)))
    made = [Panel(about, tuple(series)) for about, series in panels.items()]
    names, x_label = setups, "setup"
    if len(made) == 1:
        names = [_ratio([line for line in timed if label(line) == setup]) for setup in setups]
        x_label = "setup, as a multiple of vanilla RAG"
    ticks = tuple((float(i), name) for i, name in enumerate(names))
    return _figure("runtime", "Time per question", x_label, "seconds", made, ticks=ticks, kind="bar", percent=False)


def _figure(
    name: str,
    title: str,
    x_label: str,
    y_label: str,
    panels: Sequence[Panel],
    *,
    ticks: tuple[tuple[float, str], ...] = (),
    kind: Literal["curve", "point", "cloud", "bar"] = "curve",
    percent: bool = True,
) -> Figure | None:
    kept = tuple(panel for panel in panels if panel.series)
    return Figure(name, title, x_label, y_label, kept, ticks, kind, percent) if kept else None


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


def _ratio(lines: Sequence[Line]) -> str:
    ratios = [r for line in lines if (r := line.latency_ratio.mean) is not None]
    return f"{decimals(ratios[0], 2)}×" if ratios else "–"
