"""Pictures as files (PNG, PDF, SVG), drawn with matplotlib from the same data as the pages; the only module that does.

A certificate's decoding tree or keyword tally, and the figures of an evaluation. Needs the `eval` extra.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from robustrag_integrations.display import printable
from robustrag_integrations.drawing import charts
from robustrag_integrations.drawing.branches import END, MEANINGS, branches_of
from robustrag_integrations.drawing.styles import COLOURS, Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KEPT, _CONTESTED, _LOST, _OPEN = "#1b7f5c", "#d98a00", "#8a8f98", "#c0392b"
_COLOURS = {"top": _KEPT, "fallback": "#3f74c4", "either": _CONTESTED, "open": _OPEN, None: _LOST}  # of nodes, by kind
_MOST_WORDS = 25

FORMATS = ("png", "svg", "pdf")
_MARKS, _LINES = "osD^vP", ("-", "--", "-.", ":")
_SHADES = (1.0, 0.6, 0.35)  # of variants of one colour
_IN_A_ROW = 3
_TITLE_LINE, _TITLE_LINES = 36, 4  # of a panel's title: letters of a line, and lines
_INK, _RULE = "#14191d", "#cfd7dc"


class AsData(Protocol):
    """Anything that can be written as a dictionary, such as a `Certification`."""

    def to_dict(self) -> dict[str, Any]:
        """Its content in JSON's types."""
        ...


def check_drawing() -> None:
    """Raise now what the first figure would raise after a long run.

    Raises:
        ImportError: matplotlib is missing.
    """
    import matplotlib  # noqa: F401


def save_picture(found: AsData | Mapping[str, Any], path: str | Path) -> Path:
    """Draw a certificate's evidence to an SVG, PNG or PDF file.

    Args:
        found: a `Certification`, or what its `to_dict()` gives.
        path: the file; its ending is the format.

    Raises:
        ValueError: the certificate holds nothing to draw, since no step was analysed.
        ImportError: matplotlib is missing.
    """
    drawn = draw(found)
    target = Path(path)
    drawn.savefig(target, bbox_inches="tight", dpi=150)
    return target


def draw(found: AsData | Mapping[str, Any]) -> Figure:
    """The picture of a certificate as a matplotlib figure; see `save_picture`."""
    data = found if isinstance(found, Mapping) else found.to_dict()
    if data["evidence"].get("tree"):
        return _tree(data)
    if data["evidence"].get("counts"):
        return _tally(data)
    raise ValueError(
        f"this certificate has nothing to draw: {data['stopped'] or 'no group said anything'}. Pictures are made of "
        "keyword counts, votes and decoding trees"
    )


def save_figure(
    figure: charts.Figure, paths: Sequence[Path], styles: Mapping[str, Style] | None = None
) -> tuple[Path, ...]:
    """Draw a figure of curves or bars to files, each at once or not at all; the same data give the same bytes.

    Args:
        figure: what to draw.
        paths: the files; their endings are the formats, of `FORMATS`.
        styles: those of known labels, so that a setup looks the same in every figure.

    Raises:
        OSError: a file cannot be written.
        ImportError: matplotlib is missing.
    """
    drawing = draw_figure(figure, styles)
    return tuple(_save(drawing, path) for path in paths)


def draw_figure(figure: charts.Figure, styles: Mapping[str, Style] | None = None) -> Figure:
    """A figure as a matplotlib figure, without a window.

    Args:
        figure: what to draw.
        styles: those of known labels, so that a setup looks the same in every figure.

    Raises:
        ImportError: matplotlib is missing.
    """
    panels = figure.panels
    columns = min(len(panels), _IN_A_ROW)
    grid = -(-len(panels) // columns)
    used = charts.figure_styles(figure, styles)
    width = max(3.6 * columns, 5.4)
    title = _title_lines(figure, width)
    tall = max(len(_panel_title(panel)) for panel in panels)
    drawing = _canvas(
        width, (2.75 + 0.15 * tall) * grid + 0.2 * len(title) + 0.2 * -(-len(used) // 2) + 0.3, layout="constrained"
    )
    axes = drawing.subplots(grid, columns, sharey=True, squeeze=False).ravel()
    for place, panel in zip(axes, panels, strict=False):
        _panel(place, panel, figure, used)
    for empty in axes[len(panels) :]:
        empty.set_axis_off()
    heading = drawing.suptitle("\n".join(title), fontsize=10, color=_INK)
    drawn, room = heading.get_window_extent(_renderer(drawing)).width, _room(drawing)
    heading.set_fontsize(10 * min(1.0, room / drawn))
    _legend(drawing, *_handles(axes))
    return drawing


def _title_lines(figure: charts.Figure, width: float) -> list[str]:
    """The title, and below it what was measured, in lines that fit a picture of so many inches."""
    letters = int(width * 72 / 10 / 0.62)
    found = []
    for text in (" ".join(filter(None, (figure.title, figure.note))), figure.about):
        found += textwrap.wrap(printable(text, 3 * letters), letters)
    return [_literal(line, letters) for line in found]


def _panel_title(panel: charts.Panel) -> list[str]:
    """What tells a panel from the others, in at most four lines: broken at commas first."""
    found = [""]
    for part in printable(panel.title, _TITLE_LINES * _TITLE_LINE).split(", "):
        joined = f"{found[-1]}, {part}" if found[-1] else part
        found[-1:] = [joined] if len(joined) <= _TITLE_LINE else [found[-1], *textwrap.wrap(part, _TITLE_LINE)]
    return [_literal(line, _TITLE_LINE) for line in found if line][:_TITLE_LINES]


def _legend(drawing: Figure, handles: list[Any], labels: list[str]) -> None:
    """Below the panels, in as many columns as the picture has room for."""
    renderer, room = _renderer(drawing), _room(drawing)
    for columns in range(min(len(labels), 3), 0, -1):
        legend = drawing.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
        if columns == 1 or legend.get_window_extent(renderer).width <= room:
            return
        legend.remove()


def _axes(width: float, height: float) -> tuple[Figure, Any]:
    figure = _canvas(width, height)
    return figure, figure.add_subplot()


def _canvas(width: float, height: float, **more: Any) -> Figure:
    """An empty picture of this many inches, without a window."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'robustrag-integrations[eval]'") from error
    return Figure(figsize=(width, height), **more)


def _tally(found: Mapping[str, Any]) -> Figure:
    """Counts over the untouched groups, what the attacker can add to each, and the threshold."""
    evidence = found["evidence"]
    counts = list(evidence["counts"].items())[:_MOST_WORDS]
    corrupted = evidence.get("corrupted_groups", 0)
    always, contested = set(evidence.get("always_retained", ())), set(evidence.get("contested", ()))
    figure, axes = _axes(7.5, 1.4 + 0.3 * len(counts))
    names = [_literal(word, 28) for word, _ in counts]
    rows = list(range(len(counts)))[::-1]
    if "threshold" in evidence:
        colours = [_KEPT if w in always else _CONTESTED if w in contested else _LOST for w, _ in counts]
        axes.axvline(evidence["threshold"], color=_OPEN, linestyle="--", label="threshold with the attacker's groups")
    else:
        colours = [_KEPT] * len(counts)
    axes.barh(rows, [c for _, c in counts], color=colours)
    axes.barh(
        rows,
        [corrupted] * len(counts),
        left=[c for _, c in counts],
        color="none",
        edgecolor=_OPEN,
        hatch="///",
        linewidth=0.6,
        label=f"what {corrupted} corrupted group{'s' * (corrupted != 1)} can add",
    )
    axes.set_yticks(rows, names)
    axes.set_xlabel("untouched groups that say it")
    for label, colour in (("always retained", _KEPT), ("the attacker decides", _CONTESTED), ("never retained", _LOST)):
        if "threshold" in evidence:
            axes.barh([0], [0], color=colour, label=label)
    axes.legend(loc="lower right", fontsize=8)
    axes.set_title(_title(found), fontsize=9)
    return figure


def _tree(found: Mapping[str, Any]) -> Figure:
    """Prefixes from left to right; a branch is what the attacker can choose between, a red node leaves them free."""
    tree = branches_of(found["evidence"]["tree"])
    leaves = max(tree.heights.values()) + 1
    figure, axes = _axes(2.0 + 1.1 * (tree.depth or 1), 1.4 + 0.45 * leaves)
    for prefix, following in tree.children.items():
        for child, word in following:
            (x0, y0), (x1, y1) = (len(prefix), -tree.heights[prefix]), (len(child), -tree.heights[child])
            axes.plot([x0, x1], [y0, y1], color="#555", linewidth=0.9, zorder=1)
            shown = _literal(word, 14) or "␣"
            axes.annotate(shown, ((x0 + x1) / 2, (y0 + y1) / 2), fontsize=7, ha="center", va="bottom")
    for kind, label in (*MEANINGS.items(), (None, END)):
        at = [prefix for prefix in tree.heights if tree.kind(prefix) == kind]
        if at:
            colour, heights = _COLOURS[kind], [-tree.heights[prefix] for prefix in at]
            axes.scatter([len(prefix) for prefix in at], heights, color=colour, s=28, zorder=2, label=label)
    axes.set_axis_off()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), fontsize=7, ncol=2, frameon=False)
    axes.set_title(_title(found), fontsize=9)
    return figure


def _title(found: Mapping[str, Any]) -> str:
    attacker = f"{found['attack']}({found['corruption_size']})"
    return f"{_literal(found['query'], 70)}\n{found['defense']}, {attacker}: tau = {found['tau']:g}"


def _renderer(drawing: Figure) -> Any:
    """What measures texts."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer: Any = FigureCanvasAgg(drawing).get_renderer()
    return renderer


def _room(drawing: Figure) -> float:
    """How wide a text may be."""
    return float(drawing.get_figwidth() * drawing.dpi - 8)


def _panel(axes: Any, panel: charts.Panel, figure: charts.Figure, styles: Mapping[str, Style]) -> None:
    if panel.title:
        axes.set_title("\n".join(_panel_title(panel)), fontsize=9, color=_INK)
    for series in panel.series:
        (_bars if figure.kind == "bar" else _curve)(axes, series, figure, styles)
    if charts.named_places(figure):
        names = [_literal(name, 16) for _, name in figure.ticks]
        crowded = sum(map(len, names)) > 30
        places = [x for x, _ in figure.ticks]
        axes.set_xticks(places, names, rotation=30 if crowded else 0, ha="right" if crowded else "center")
        axes.set_xlim(min(places) - 0.5, max(places) + 0.5)  # the same in every panel
    else:
        axes.set_xticks(*zip(*charts.x_ticks(figure), strict=True))
        if figure.ticks:
            room = 0.1 * _width(figure)
            axes.set_xlim(figure.ticks[0][0] - room, figure.ticks[-1][0] + room)
    ticks = charts.y_ticks(figure)
    axes.set_ylim(-0.03 * ticks[-1] if figure.percent else 0, 1.03 * ticks[-1])
    axes.set_yticks(ticks, [f"{100 * y:g}%" if figure.percent else f"{y:g}" for y in ticks])
    axes.set_xlabel(_literal(figure.x_label, 50), fontsize=9)
    axes.set_ylabel(_literal(figure.y_label, 40) if axes.get_subplotspec().is_first_col() else "", fontsize=9)
    axes.tick_params(labelsize=8, colors=_INK)
    axes.grid(axis="y", color=_RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _curve(axes: Any, series: charts.Series, figure: charts.Figure, styles: Mapping[str, Style]) -> None:
    style = styles[series.label]
    shade = _SHADES[style.variant % len(_SHADES)]
    step = {"curve": 0.012, "cloud": min(0.02, 0.16 / len(styles))}.get(figure.kind, 0.02)
    aside = charts.steps_aside(series, figure, styles) * step * _width(figure)
    axes.errorbar(
        [p.x + aside for p in series.points],
        [p.y for p in series.points],
        yerr=_errors(series),
        color=_shaded(COLOURS[style.colour], shade),
        marker=_MARKS[(style.colour + style.variant) % len(_MARKS)],
        linestyle=_LINES[style.variant % len(_LINES)] if figure.kind == "curve" else "none",
        markersize=4,
        linewidth=1.4,
        elinewidth=0.8,
        label=_literal(series.label, 40),
    )


def _bars(axes: Any, series: charts.Series, figure: charts.Figure, styles: Mapping[str, Style]) -> None:
    """Columns side by side; where each series has its own place, in the middle of it."""
    alone = all(len(s.points) == 1 for panel in figure.panels for s in panel.series) and len(figure.ticks) > 1
    together, place = (1, 0) if alone else (len(styles), list(styles).index(series.label))
    width, style = 0.8 / together, styles[series.label]
    axes.bar(
        [p.x + (place - (together - 1) / 2) * width for p in series.points],
        [p.y for p in series.points],
        width=width * 0.92,
        yerr=_errors(series),
        color=_shaded(COLOURS[style.colour], _SHADES[style.variant % len(_SHADES)]),
        error_kw={"elinewidth": 0.8, "ecolor": _INK},
        label=_literal(series.label, 40),
    )


def _errors(series: charts.Series) -> list[list[float]] | None:
    """The distances to both ends of the intervals; None where there are none."""
    if all(p.low is None or p.high is None for p in series.points):
        return None
    below = [max(p.y - p.low, 0) if p.low is not None else 0 for p in series.points]
    return [below, [max(p.high - p.y, 0) if p.high is not None else 0 for p in series.points]]


def _width(figure: charts.Figure) -> float:
    """Of the x axis, in its own units; 1 where all points have one place."""
    places = [p.x for panel in figure.panels for s in panel.series for p in s.points] + [x for x, _ in figure.ticks]
    return (max(places) - min(places)) or 1.0


def _shaded(colour: str, share: float) -> str:
    """A colour, mixed with white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * share):02x}" for part in parts)


def _handles(axes: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """One handle per label over all panels."""
    found: dict[str, Any] = {}
    for place in axes:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def _save(drawing: Figure, path: Path) -> Path:
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
