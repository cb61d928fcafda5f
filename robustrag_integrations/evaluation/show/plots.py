"""The paper's figures (section V and its appendix) as files. Needs the `eval` extra."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robustrag_integrations.drawing.files import FORMATS, save_figure
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.summary import Line
from robustrag_integrations.evaluation.show.figures import setup_styles
from robustrag_integrations.evaluation.show.parts import drawable_figures


class PlotError(RobustRAGError):
    """The figures cannot be written; the message says where and why."""


def save_plots(
    lines: Sequence[Line], folder: str | Path, *, formats: Sequence[str] = ("png", "svg"), seed: int | None = None
) -> tuple[Path, ...]:
    """Draw every figure that a run has the data for.

    Args:
        lines: of `summarise`.
        folder: where the files go, made when it is not there; a file of the same name is replaced.
        formats: of `FORMATS`.
        seed: of the run, for the titles; None where it is not known.

    Returns:
        The files, in the order of the figures; none when there is nothing to compare.

    Raises:
        ValueError: a format is not known.
        PlotError: a file cannot be written.
        ImportError: matplotlib is missing.
    """
    if unknown := [f for f in formats if f not in FORMATS]:
        raise ValueError(f"format {unknown[0]!r:.40} must be one of {', '.join(FORMATS)}")
    styles = setup_styles(lines)
    written: list[Path] = []
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for figure in drawable_figures(lines, seed):
            written += save_figure(figure, [target / f"{figure.name}.{form}" for form in formats], styles)
    except OSError as error:
        raise PlotError(f"cannot write figures to {str(folder)!r}: {error.strerror}") from error
    return tuple(written)
