"""How clearly each token was decided: the lead of the best token's summed probability, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustrag_integrations.drawing.elements import Element, h

_STEP, _HEIGHT = 8, 48


def gaps_chart(evidence: Mapping[str, Any], settings: Mapping[str, Any], most: int) -> Element | None:
    """One bar per decoding step and eta as a line; None when nothing was decoded.

    Args:
        evidence: `gaps` in units of probability summed over groups, `indecisive_steps`, `answering`.
        settings: `eta`, where the defence has one.
        most: steps that are shown.
    """
    gaps = evidence.get("gaps", ())
    if not gaps:
        return None
    eta = settings.get("eta", 0)
    full = max(evidence.get("answering", 0), *gaps, eta, 1e-9)
    bars = [_bar(i, gap, gap / full, gap <= eta) for i, gap in enumerate(gaps[:most])]
    line = h("line", x1=0, x2=_STEP * len(bars), y1=_at(eta / full), y2=_at(eta / full), cls="threshold")
    said = _in_words(evidence, gaps, eta, most)
    size = {"viewBox": f"0 0 {_STEP * len(bars)} {_HEIGHT}", "preserveAspectRatio": "none"}
    width = min(12 * len(bars), 960)
    drawing = h("svg", *bars, line, role="img", aria_label=said, width=width, height=64, cls="gaps-drawing", **size)
    return h("div", h("p", said, cls="caption"), drawing, cls="gaps")


def _bar(step: int, gap: float, share: float, indecisive: bool) -> Element:
    height = max(share * _HEIGHT, 0.5)
    label = h("title", f"token {step + 1}: gap {gap:.3g}{', no-retrieval token taken' if indecisive else ''}")
    shape = {"x": step * _STEP + 1, "y": _HEIGHT - height, "width": _STEP - 2, "height": height}
    return h("rect", label, cls=f"mark {'lost' if indecisive else 'kept'}", **shape)


def _at(share: float) -> float:
    return _HEIGHT * (1 - share)


def _in_words(evidence: Mapping[str, Any], gaps: Any, eta: float, most: int) -> str:
    said = f"Decoding: lead of the chosen token, in probability summed over {evidence.get('answering', 0)} groups"
    said += f"; smallest {min(gaps):.3g} in {len(gaps)} tokens; eta {eta:g} (the line)"
    if indecisive := evidence.get("indecisive_steps"):
        said += f"; {indecisive} undecided, where the no-retrieval token was taken"
    return said + (f"; the first {most} are shown" if len(gaps) > most else "")
