"""What stands beside the rates of a run, for spreadsheets: differences between setups, and where answers stand."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.evaluation.score.intervals import EMPTY
from robustrag_integrations.evaluation.score.paired import Comparison
from robustrag_integrations.evaluation.score.presence import AnswerPresence
from robustrag_integrations.evaluation.show.lines import attack_cells, csv_text, interval_cells, plain_cell


def comparisons_csv(found: Sequence[Comparison]) -> str:
    """A line per comparison, none left out; differences from -1 to 1, p-values in full."""
    rows = [
        {
            "dataset": plain_cell(c.dataset),
            "task": plain_cell(c.task),
            "model": plain_cell(c.model),
            **attack_cells(c.attack),
            "measure": c.measure,
            "setup": plain_cell(c.setup),
            "against": plain_cell(c.against),
            "alone": "" if c.alone is None else c.alone,
            "other_alone": "" if c.other_alone is None else c.other_alone,
            **interval_cells("difference", c.difference),
            "p": "" if c.p is None else c.p,
            "p_holm": "" if c.p_holm is None else c.p_holm,
        }
        for c in found
    ]
    return csv_text(list(rows[0]), rows) if rows else ""


def presence_csv(found: Sequence[AnswerPresence]) -> str:
    """A line per data set and number of passages, shares from 0 to 1; a bound of cacc per attacker."""
    against = sorted({known for one in found for known in one.bound})
    rows = [
        {
            "dataset": plain_cell(one.dataset),
            "task": plain_cell(one.task),
            "top_k": "all" if one.top_k is None else one.top_k,
            "n": one.n,
            **interval_cells("of passages", one.passages),
            **interval_cells("of questions", one.found),
            **{
                name: cell
                for attack, size in against
                for name, cell in interval_cells(
                    f"cacc bound {attack} {size}", one.bound.get((attack, size), EMPTY)
                ).items()
            },
        }
        for one in found
    ]
    return csv_text(list(rows[0]), rows) if rows else ""
