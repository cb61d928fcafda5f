"""Figures of a measurement: what an attacker owns, and what stays certified, by the number of planted documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from robustrag_integrations.drawing.charts import Figure, Panel, Point, Series
from robustrag_integrations.drawing.files import save_figure
from robustrag_integrations.evaluation.retrieval.summary import RetrievalLine
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.show.parts import in_parts
from robustrag_integrations.evaluation.show.plots import PlotError

_PLANTED = "documents planted m"


def retrieval_figures(lines: Sequence[RetrievalLine]) -> tuple[Figure, ...]:
    """Every figure that these lines have the data for, in parts where there is too much."""
    owned = _panels(lines, lambda line: [(line.rule, line.rho)], lambda line: (line.attack,))
    certified = _panels(
        lines, lambda line: list(line.cacc.items()), lambda line: (line.attack, f"one vote: {line.rule}")
    )
    found = []
    if owned:
        title = "Votes owned among the retrieved, measured"
        found.append(Figure("amplification", title, _PLANTED, "votes owned rho", owned, percent=False))
    if certified:
        title = "Certified against what was planted among the retrieved"
        found.append(Figure("certified-by-planted", title, _PLANTED, "certified accuracy", certified))
    return tuple(part for figure in found for part in in_parts(figure))


def save_retrieval_plots(
    lines: Sequence[RetrievalLine], folder: str | Path, *, formats: Sequence[str] = ("png", "svg")
) -> tuple[Path, ...]:
    """Draw the figures to files.

    Raises:
        PlotError: a file cannot be written.
        ImportError: matplotlib is missing.
    """
    target = Path(folder)
    written: list[Path] = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for figure in retrieval_figures(lines):
            written += save_figure(figure, [target / f"{figure.name}.{form}" for form in formats])
    except OSError as error:
        raise PlotError(f"cannot write figures to {str(folder)!r}: {error.strerror}") from error
    return tuple(written)


def _panels(
    lines: Iterable[RetrievalLine],
    curves: Callable[[RetrievalLine], Sequence[tuple[str, Interval]]],
    facet: Callable[[RetrievalLine], tuple[str, ...]],
) -> tuple[Panel, ...]:
    listed = list(lines)
    several = {name: len({getattr(line, name) for line in listed}) > 1 for name in ("dataset", "retriever", "top_k")}
    found: dict[str, dict[str, list[Point]]] = {}
    for line in listed:
        about = [f"{name.replace('_', ' ')} {getattr(line, name)}" for name, more in several.items() if more]
        for label, value in curves(line):
            if value.mean is not None:
                points = found.setdefault(", ".join([*about, *facet(line)]), {}).setdefault(label, [])
                points.append(Point(float(line.m), value.mean, value.low, value.high))
    return tuple(
        Panel(title, tuple(Series(label, tuple(sorted(p, key=lambda at: at.x))) for label, p in series.items()))
        for title, series in found.items()
    )
