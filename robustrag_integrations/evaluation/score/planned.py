"""The rows that a run's header plans, and those that are missing: it was interrupted, or is still going."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.evaluation.score.rows import AttackSpec, attack_of_row
from robustrag_integrations.evaluation.score.schema import misfit_in_plan

_ABOUT = ("dataset", "task", "model", "setup", "defense", "settings", "top_k", "attack")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Missing:
    """Rows of one setup under one attack that are not in the file.

    Attributes:
        dataset: the data set's name.
        task: `qa`, `mc` or `long`.
        model: the model's name.
        setup: the label of defence and settings.
        attack: the attack.
        rows: how many are missing.
        planned: of how many.
    """

    dataset: str
    task: str
    model: str
    setup: str
    attack: AttackSpec
    rows: int
    planned: int


def planned_rows(blanks: Iterable[Row]) -> list[dict[str, Any]]:
    """Count the rows of each setup and attack that a run is to make, for its header.

    Args:
        blanks: the rows, before anything is asked.
    """
    about: dict[str, Row] = {}
    counts: Counter[str] = Counter()
    for row in blanks:
        known = _identity(row)
        about.setdefault(known, row)
        counts[known] += 1
    return [{**{name: about[known][name] for name in _ABOUT}, "rows": count} for known, count in counts.items()]


def missing_rows(header: Mapping[str, Any], rows: Sequence[Row]) -> tuple[Missing, ...]:
    """Return the rows that a header plans and its file lacks; none where the untrusted header does not say."""
    planned: Any = header.get("planned")
    if misfit_in_plan(planned):
        return ()
    there = Counter(map(_identity, rows))
    found = []
    for part in planned:
        lacking = int(part["rows"]) - there[_identity(part)]
        if lacking > 0:
            about = (part["dataset"], part["task"], part["model"], part["setup"], attack_of_row(part))
            found.append(Missing(*about, lacking, int(part["rows"])))
    return tuple(found)


def _identity(row: Row) -> str:
    """Return the key shared by the rows of one setup and attack alone; the setup's label may change between runs."""
    about = [row.get(name) for name in _ABOUT if name not in ("setup", "attack")]
    return json.dumps([*about, str(attack_of_row(row))], sort_keys=True, default=str)
