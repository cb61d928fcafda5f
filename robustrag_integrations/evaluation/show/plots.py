"""The paper's figures (section V and its appendix) as SVG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robustrag_integrations.drawing.files import save_figure
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.summary import Line
from robustrag_integrations.evaluation.show.figures import setup_styles
from robustrag_integrations.evaluation.show.parts import drawable_figures


class PlotError(RobustRAGError):
    """The figures cannot be written; the message says where and why."""


def save_plots(lines: Sequence[Line], folder: str | Path, *, seed: int | None = None) -> tuple[Path, ...]:
    """Draw every figure that a run has the data for.

    Args:
        lines: of `summarise`.
        folder: where the files go, made when it is not there; a file of the same name is replaced.
        seed: of the run, for the titles; None where it is not known.

    Returns:
        The files, in the order of the figures; none when there is nothing to compare.

    Raises:
        PlotError: a file cannot be written.
    """
    styles, target = setup_styles(lines), Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        figures = drawable_figures(lines, seed)
        return tuple(save_figure(figure, target / f"{figure.name}.svg", styles) for figure in figures)
    except OSError as error:
        raise PlotError(f"cannot write figures to {str(folder)!r}: {error.strerror}") from error
