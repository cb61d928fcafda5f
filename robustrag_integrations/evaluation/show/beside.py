"""A table of the differences between setups that are more than chance."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations._util.rounding import decimals
from robustrag_integrations.evaluation.score.paired import Comparison
from robustrag_integrations.evaluation.show.lines import with_ends
from robustrag_integrations.evaluation.show.tables import Table

_TESTS = (
    "Paired by question; of more than four setups, each is set against the first and no other. alone: questions of "
    "which it holds for that setup and not for the other. difference: in percentage points, with its paired 95% "
    "interval. p: exact two-sided McNemar test; p (Holm): corrected for all {count} tests here. They were not planned "
    "beforehand: take them as exploratory."
)


def comparisons_table(found: Sequence[Comparison], most: int | None = None) -> Table | None:
    """Every two setups side by side; None for no comparison.

    Args:
        found: of `paired.compare`.
        most: how many lines; those with the smallest p come first where there are more. None for all.
    """
    if not found:
        return None
    listed = list(found)
    notes = [_TESTS.format(count=sum(c.p is not None for c in found))]
    if most is not None and len(listed) > most:
        listed = sorted(listed, key=lambda c: 2.0 if c.p is None else c.p)[:most]
        notes.append(f"{len(found) - most} of {len(found)} lines, with larger p, are left out here.")
    several_data = len({(c.dataset, c.task) for c in found}) > 1
    several_models = len({c.model for c in found}) > 1
    header = [*(["data"] if several_data else []), *(["model"] if several_models else [])]
    rows = [
        [
            *([f"{c.dataset} ({c.task})"] if several_data else []),
            *([c.model] if several_models else []),
            *(str(c.attack), c.measure, c.setup, c.against, str(c.n)),
            *("-" if count is None else str(count) for count in (c.alone, c.other_alone)),
            *(with_ends(c.difference, 100), _p(c.p), _p(c.p_holm)),
        ]
        for c in listed
    ]
    names = ("attack", "measure", "setup", "against", "n", "alone", "other alone", "difference", "p", "p (Holm)")
    keys = len(header) + 4
    return Table("Differences between setups on the same questions", [*header, *names], rows, keys, notes)


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else decimals(value, 4 if value < 0.01 else 3)
