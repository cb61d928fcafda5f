"""The runner of an evaluation: it makes missing rows and keeps existing ones, and an interruption loses nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol

from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations.evaluation.run.bench import LocalEngine
from robustrag_integrations.evaluation.run.config import EvalConfig
from robustrag_integrations.evaluation.run.journal import Journal, JournalError
from robustrag_integrations.evaluation.run.planning import Job, make_plan
from robustrag_integrations.evaluation.score.rows import HEADER_SCHEMA, latest_rows, misfit

MOST_FAILURES = 20  # rows failed one after the other, after which a run stops

Row = dict[str, Any]


class RunStopped(RobustRAGError):
    """A run stopped since all recent rows failed; the message says why. Finished rows are kept."""


class Watcher(Protocol):
    """A listener to the progress of a run."""

    def start(self, total: int, known: int, notes: Sequence[str]) -> None:
        """Note that the run has so many rows, of which some are known already."""

    def row(self, row: Row) -> None:
        """Note that a row is made and kept."""


class Engine(Protocol):
    """What makes rows: `LocalEngine` in this process, or anything that hands jobs to others."""

    def run(self, jobs: Sequence[Job], on_row: Callable[[Row], None]) -> None:
        """Make the rows, and hand over each as soon as it is made."""


@dataclass(frozen=True)
class Finished:
    """A finished run."""

    rows: tuple[Row, ...]
    made: int
    failed: int


def evaluate(
    config: EvalConfig,
    *,
    output: str | None = None,
    engine: Engine | None = None,
    watcher: Watcher | None = None,
) -> Finished:
    """Run an evaluation.

    Rows are appended to `output`, JSON lines, as they are made; those that are in it already are not made again. At the
    end it is put into canonical order, so that an interrupted run that was resumed leaves the same file as one that was
    not, up to `timing`. Without it rows are kept in memory only.

    Raises:
        ConfigError, DatasetError, ModelError, JournalError: something cannot be used.
        RunStopped: the last 20 rows have all failed.
        KeyboardInterrupt: raised as it is; all rows made so far are on disk.
    """
    plan, engine = make_plan(config), engine or LocalEngine()
    with contextlib.ExitStack() as stack:
        journal = None if output is None else stack.enter_context(Journal(output))
        known = {} if journal is None else known_rows(journal)
        todo = [job for job in plan.jobs if job.key not in known or known[job.key]["error"] is not None]
        if watcher is not None:
            watcher.start(len(plan.jobs), len(plan.jobs) - len(todo), plan.notes)
        mine = {job.key for job in plan.jobs}
        others = [row for key, row in known.items() if key not in mine]  # of earlier configurations: they stay, behind
        header = {
            "schema": HEADER_SCHEMA,
            "config": dict(config.given),
            "version": metadata.version("robustrag-integrations"),
        }
        if journal is not None and not journal.rows:
            journal.append(header)
        made = failures = 0

        def keep(row: Row) -> None:
            """Take a row: to disk first, then into memory."""
            nonlocal made, failures
            if journal is not None:
                journal.append(row)
            known[row["key"]] = row
            made += 1
            if watcher is not None:
                watcher.row(row)
            failures = 0 if row["error"] is None else failures + 1
            if failures >= MOST_FAILURES:
                said = f"{row['error']['type']}: {row['error']['message']}"
                raise RunStopped(f"the last {MOST_FAILURES} rows have all failed; the latest said: {said}")

        if todo:
            engine.run(todo, keep)
        # In the plan's order, under the labels that this run's setups have.
        rows = [{**known[job.key], "setup": job.setup.label} for job in plan.jobs if job.key in known]
        if journal is not None and (made or [header, *rows, *others] != list(journal.rows)):
            journal.replace([header, *rows, *others])
    return Finished(tuple(rows), made, sum(row["error"] is not None for row in rows))


def known_rows(journal: Journal) -> dict[str, Row]:
    """The rows of a journal by key; the last one counts, but an error never takes the place of an answer."""
    if journal.rows and journal.rows[0].get("schema") != HEADER_SCHEMA:
        raise JournalError(
            f"{str(journal.path)!r} does not begin like a run of robustrag eval; it is left as it is, give another file"
        )
    rows = []
    for number, row in enumerate(journal.rows, 1):
        if row.get("schema") == HEADER_SCHEMA:
            continue
        if problem := misfit(row):
            raise JournalError(
                f"{journal.path}, line {number} is not an evaluation row ({problem}); give another file, or delete "
                "that line to make the row again"
            )
        rows.append(row)
    return {row["key"]: dict(row) for row in latest_rows(rows)}
