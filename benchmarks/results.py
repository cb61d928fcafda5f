"""Ratios against targets: how they are printed, kept as JSON and drawn."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.timing import summary

Target = tuple[str, float]  # "<=" or ">=", and the bound
Better = Literal["lower", "higher"]
_AMOUNT = re.compile(r"\b(?:ms|MB|GB|seconds?|per second)\b")


@dataclass(frozen=True)
class Ratio:
    """A measured ratio.

    Attributes:
        name: what over what.
        values: one per round; a single one where nothing varies.
        targets: the target per device, `cpu` or `cuda`; none where it is only reported.
        note: what one needs to know to read it.
        better: which way is better, where neither a target nor the name says it (see `direction`).
    """

    name: str
    values: tuple[float, ...]
    targets: dict[str, Target] = field(default_factory=dict)
    note: str = ""
    better: Better | None = None

    def direction(self, device: str) -> Better:
        """Which way is better: as the target says; else "higher" where ours is what others are divided by."""
        if target := self.targets.get(device) or next(iter(self.targets.values()), None):
            return "lower" if target[0] == "<=" else "higher"
        return self.better or ("higher" if "ours" in self.name.rpartition(" / ")[2] and " / " in self.name else "lower")

    @property
    def unit(self) -> str:
        """What an amount is of, by its name ("... : ms"); "ratio" for what machines have in common."""
        found = _AMOUNT.search(self.name)
        return found[0] if found else "ratio"

    def met(self, device: str) -> bool | None:
        """Whether the median meets the target; None without one."""
        if device not in self.targets:
            return None
        sign, bound = self.targets[device]
        middle = summary(self.values)["median"]
        return middle <= bound if sign == "<=" else middle >= bound

    def as_dict(self, device: str) -> dict[str, Any]:
        """JSON-safe."""
        sign, bound = self.targets.get(device, ("", None))
        return {
            "name": self.name,
            **summary(self.values),
            "rounds": len(self.values),
            "target": f"{sign} {bound}" if sign else None,
            "met": self.met(device),
            "note": self.note,
        }


def said(ratio: Ratio) -> Ratio:
    """The ratio, once standard error has its name and median: how far a long part is."""
    print(f"  {ratio.name}: {summary(ratio.values)['median']:.3f}", file=sys.stderr, flush=True)
    return ratio


_VERDICT = {True: "met", False: "MISSED", None: "report"}


def as_table(ratios: Sequence[Ratio], device: str) -> str:
    """One line per ratio: median, extremes, target, verdict."""
    lines = [f"{'ratio':<58}{'median':>9}{'min':>9}{'max':>9}  {'target':<11}verdict"]
    for ratio in ratios:
        found = ratio.as_dict(device)
        numbers = "".join(f"{found[key]:>9.3f}" for key in ("median", "min", "max"))
        lines.append(f"{ratio.name:<58}{numbers}  {found['target'] or '':<11}{_VERDICT[ratio.met(device)]}")
    return "\n".join(lines)


def draw(ratios: Sequence[Ratio], curves: Sequence[dict[str, Any]], device: str, path: str) -> None:
    """All ratios with their targets, and the scaling curves, as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(c["over"] for c in curves))
    heights = [1.5 + 0.32 * len(ratios)] * bool(ratios) + [3.4] * bool(names)
    figure = pyplot.figure(figsize=(4.2 * max(len(names), 2), sum(heights) or 1.5))
    grid = figure.add_gridspec(len(heights) or 1, max(len(names), 1), height_ratios=heights or None)
    if ratios:
        _draw_ratios(figure.add_subplot(grid[0, :]), ratios, device)
    for at, name in enumerate(names):
        _draw_curves(figure.add_subplot(grid[-1, at]), [c for c in curves if c["over"] == name], name)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _draw_ratios(axes: Any, ratios: Sequence[Ratio], device: str) -> None:
    colours = {True: "tab:green", False: "tab:red", None: "tab:gray"}
    for at, ratio in enumerate(reversed(ratios)):
        found = summary(ratio.values)
        axes.plot([found["min"], found["max"]], [at, at], color="black", linewidth=1)
        axes.plot(found["median"], at, "o", color=colours[ratio.met(device)])
        if device in ratio.targets:
            axes.plot(ratio.targets[device][1], at, "|", color="black", markersize=12)
    axes.set_yticks(range(len(ratios)), [r.name for r in reversed(ratios)], fontsize=8)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlim(left=-0.01)
    axes.set_title(f"measured on {device}: dot = median, line = extremes, bar = target", fontsize=9)
    axes.grid(axis="x", alpha=0.3)


def _draw_curves(axes: Any, curves: Sequence[dict[str, Any]], name: str) -> None:
    for curve in curves:
        axes.plot(curve["x"], curve["seconds"], marker="o", markersize=3, label=curve["variant"])
    axes.set_xlabel(name)
    axes.set_ylabel("seconds")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
