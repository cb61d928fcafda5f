"""The paper's figures (section V and its appendix) as PNG and SVG files. Needs the `eval` extra."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustrag_integrations.display import printable
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.summary import Line
from robustrag_integrations.evaluation.show.figures import Figure, Panel, Series, setup_labels
from robustrag_integrations.evaluation.show.parts import drawable_figures, labels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FORMATS = ("png", "svg", "pdf")
_COLOURS = ("#c23b22", "#0f7a68", "#3f74c4", "#b27a12", "#8d58ad", "#5c7080", "#2f97b3", "#a6567a")
_MARKS, _LINES = "osD^v", ("-", "--", "-.", ":")
_IN_A_ROW = 3
_INK, _RULE = "#14191d", "#cfd7dc"


class PlotError(RobustRAGError):
    """The figures cannot be written; the message says where and why."""


def save_plots(
    lines: Sequence[Line], folder: str | Path, *, formats: Sequence[str] = ("png", "svg")
) -> tuple[Path, ...]:
    """Draw every figure that a run has the data for.

    Args:
        lines: of `summarise`.
        folder: where the files go, made when it is not there; a file of the same name is replaced.
        formats: of `FORMATS`.

    Returns:
        The files, in the order of the figures; none when there is nothing to compare.

    Raises:
        ValueError: a format is not known.
        PlotError: a file cannot be written.
        ImportError: matplotlib is missing.
    """
    if unknown := [f for f in formats if f not in FORMATS]:
        raise ValueError(f"format {unknown[0]!r:.40} must be one of {', '.join(FORMATS)}")
    vanilla_first = sorted(lines, key=lambda line: line.defense != "vanilla")
    styles = {label: i for i, label in enumerate(setup_labels(vanilla_first).values())}
    written: list[Path] = []
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for figure in drawable_figures(lines):
            drawing = draw(figure, styles)
            written += [_save(drawing, target / f"{figure.name}.{form}") for form in formats]
    except OSError as error:
        raise PlotError(f"cannot write figures to {str(folder)!r}: {error.strerror}") from error
    return tuple(written)


def draw(figure: Figure, styles: Mapping[str, int] | None = None) -> Drawing:
    """A figure as a matplotlib figure, without a window.

    Args:
        figure: what to draw.
        styles: the numbers of the colours of known labels, so that a setup looks the same in every figure.

    Raises:
        ImportError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure as Drawing
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'robustrag-integrations[eval]'") from error
    panels = figure.panels
    columns = min(len(panels), _IN_A_ROW)
    grid = -(-len(panels) // columns)
    drawing = Drawing(figsize=(max(3.6 * columns, 5.4), 2.9 * grid + 1.2), layout="constrained")
    axes = drawing.subplots(grid, columns, sharey=True, squeeze=False).ravel()
    used = _styles(figure, styles or {})
    for place, panel in zip(axes, panels, strict=False):
        _panel(place, panel, figure, used)
    for empty in axes[len(panels) :]:
        empty.set_axis_off()
    drawing.suptitle(_literal(" ".join(filter(None, (figure.title, figure.note))), 160), fontsize=11, color=_INK)
    handles, labels = _handles(axes)
    if len(labels) > 1 or figure.kind == "curve":
        drawing.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 3), fontsize=8, frameon=False
        )
    return drawing


def _panel(axes: Any, panel: Panel, figure: Figure, styles: Mapping[str, int]) -> None:
    if panel.title:
        axes.set_title(_literal(panel.title, 36), fontsize=9, color=_INK)
    for series in panel.series:
        (_bars if figure.kind == "bar" else _curve)(axes, series, figure, styles)
    if figure.ticks:
        names = [_literal(name, 16) for _, name in figure.ticks]
        crowded = sum(map(len, names)) > 30
        places = [x for x, _ in figure.ticks]
        axes.set_xticks(places, names, rotation=30 if crowded else 0, ha="right" if crowded else "center")
        axes.set_xlim(min(places) - 0.5, max(places) + 0.5)  # the same in every panel
    elif (places := sorted({p.x for s in panel.series for p in s.points})) and len(places) <= 10:
        axes.set_xticks(places, [f"{x:g}" for x in places])
    if figure.percent:
        axes.set_ylim(-0.03, 1.03)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(_literal(figure.x_label, 50), fontsize=9)
    axes.set_ylabel(_literal(figure.y_label, 40) if axes.get_subplotspec().is_first_col() else "", fontsize=9)
    axes.tick_params(labelsize=8, colors=_INK)
    axes.grid(axis="y", color=_RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _curve(axes: Any, series: Series, figure: Figure, styles: Mapping[str, int]) -> None:
    number = styles[series.label]
    aside = (list(styles).index(series.label) - (len(styles) - 1) / 2) * 0.012 * _width(figure)
    axes.errorbar(
        [p.x + aside for p in series.points],
        [p.y for p in series.points],
        yerr=_errors(series),
        color=_COLOURS[number % len(_COLOURS)],
        marker=_MARKS[number % len(_MARKS)],
        linestyle=_LINES[number // len(_COLOURS) % len(_LINES)],
        markersize=4,
        linewidth=1.4,
        elinewidth=0.8,
        label=_literal(series.label, 40),
    )


def _bars(axes: Any, series: Series, figure: Figure, styles: Mapping[str, int]) -> None:
    """Columns side by side; where every series has a place of its own, in the middle of it."""
    alone = all(len(s.points) == 1 for panel in figure.panels for s in panel.series) and len(figure.ticks) > 1
    together, place = (1, 0) if alone else (len(styles), list(styles).index(series.label))
    width = 0.8 / together
    axes.bar(
        [p.x + (place - (together - 1) / 2) * width for p in series.points],
        [p.y for p in series.points],
        width=width * 0.92,
        yerr=_errors(series),
        color=_COLOURS[styles[series.label] % len(_COLOURS)],
        error_kw={"elinewidth": 0.8, "ecolor": _INK},
        label=_literal(series.label, 40),
    )


def _errors(series: Series) -> list[list[float]] | None:
    """The distances to both ends of the intervals; None where there are none."""
    if all(p.low is None or p.high is None for p in series.points):
        return None
    below = [max(p.y - p.low, 0) if p.low is not None else 0 for p in series.points]
    return [below, [max(p.high - p.y, 0) if p.high is not None else 0 for p in series.points]]


def _width(figure: Figure) -> float:
    places = [p.x for panel in figure.panels for s in panel.series for p in s.points]
    return (max(places) - min(places)) or 1.0


def _styles(figure: Figure, known: Mapping[str, int]) -> dict[str, int]:
    return {label: known.get(label, len(known) + i) for i, label in enumerate(labels_of(figure))}


def _handles(axes: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """One handle per label over all panels."""
    found: dict[str, Any] = {}
    for place in axes:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def _save(drawing: Drawing, path: Path) -> Path:
    """Write the file at once or not at all; the same rows give the same bytes."""
    import matplotlib

    draft = path.with_name(f".{path.name}.part")
    form = path.suffix[1:]
    dateless: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with matplotlib.rc_context({"svg.hashsalt": "robustrag", "svg.fonttype": "path"}):
        drawing.savefig(draft, format=form, dpi=160, metadata=dateless or None)
    os.replace(draft, path)
    return path


def _literal(text: str, limit: int) -> str:
    """Text that matplotlib shows as it is: a dollar sign would start a formula, an underscore first hide it."""
    shown = printable(text, limit).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
