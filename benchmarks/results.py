"""Ratios against targets, printed and kept as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.timing import summary

Target = tuple[str, float]  # "<=" or ">=", and the bound


@dataclass(frozen=True)
class Ratio:
    """A measured ratio.

    Attributes:
        name: what over what.
        values: one per round; a single one where nothing varies.
        targets: the target per device, `cpu` or `cuda`; none where it is only reported.
        note: what one needs to know to read it.
    """

    name: str
    values: tuple[float, ...]
    targets: dict[str, Target] = field(default_factory=dict)
    note: str = ""

    def met(self, device: str) -> bool | None:
        """True if the median meets the target; None without a target."""
        if device not in self.targets:
            return None
        sign, bound = self.targets[device]
        middle = summary(self.values)["median"]
        return middle <= bound if sign == "<=" else middle >= bound

    def as_dict(self, device: str) -> dict[str, Any]:
        """Return the ratio in JSON's types."""
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
    """Return the ratio, after printing its name, median and note to standard error as progress."""
    note = f" ({ratio.note})" if ratio.note else ""
    print(f"  {ratio.name}: {summary(ratio.values)['median']:.3f}{note}", file=sys.stderr, flush=True)
    return ratio


_VERDICT = {True: "met", False: "MISSED", None: "report"}


def as_table(ratios: Sequence[Ratio], device: str) -> str:
    """Return one line per ratio: median, extremes, target, verdict."""
    lines = [f"{'ratio':<58}{'median':>9}{'min':>9}{'max':>9}  {'target':<11}verdict"]
    for ratio in ratios:
        found = ratio.as_dict(device)
        numbers = "".join(f"{found[key]:>9.3f}" for key in ("median", "min", "max"))
        lines.append(f"{ratio.name:<58}{numbers}  {found['target'] or '':<11}{_VERDICT[ratio.met(device)]}")
    return "\n".join(lines)
