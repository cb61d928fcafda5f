"""Pictures of a certificate: a decoding tree, and a keyword tally with its threshold. Needs the `eval` extra."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from robustrag_integrations.display import printable
from robustrag_integrations.drawing.branches import END, MEANINGS, branches_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KEPT, _CONTESTED, _LOST, _OPEN = "#1b7f5c", "#d98a00", "#8a8f98", "#c0392b"
_COLOURS = {"top": _KEPT, "fallback": "#3f74c4", "either": _CONTESTED, "open": _OPEN, None: _LOST}  # of nodes, by kind
_MOST_WORDS = 25


class AsData(Protocol):
    """Anything that can be written as a dictionary, such as a `Certification`."""

    def to_dict(self) -> dict[str, Any]:
        """Its content in JSON's types."""
        ...


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


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'robustrag-integrations[eval]'") from error
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def _tally(found: Mapping[str, Any]) -> Figure:
    """Counts over the untouched groups, what the attacker can add to each, and the threshold."""
    evidence = found["evidence"]
    counts = list(evidence["counts"].items())[:_MOST_WORDS]
    corrupted = evidence.get("corrupted_groups", 0)
    always, contested = set(evidence.get("always_retained", ())), set(evidence.get("contested", ()))
    figure, axes = _figure(7.5, 1.4 + 0.3 * len(counts))
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
    figure, axes = _figure(2.0 + 1.1 * (tree.depth or 1), 1.4 + 0.45 * leaves)
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


def _literal(text: str, limit: int) -> str:
    """Text that matplotlib shows as it is: dollar signs would start a formula."""
    return printable(text, limit).replace("$", r"\$")
