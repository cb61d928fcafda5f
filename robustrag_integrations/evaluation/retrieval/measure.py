"""Making the rows of a measurement: each is on disk before the next one is begun."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass

from robustrag_integrations.evaluation.retrieval.bench import Bench, RetrievalError
from robustrag_integrations.evaluation.retrieval.rows import HEADER_SCHEMA, Row, latest, misfit_in_row
from robustrag_integrations.evaluation.retrieval.spec import RetrievalSpec
from robustrag_integrations.evaluation.run.config import EvalConfig
from robustrag_integrations.evaluation.run.journal import Journal, JournalError
from robustrag_integrations.evaluation.run.runner import MOST_FAILURES, RunStopped, Watcher

__all__ = ["Measured", "RetrievalError", "measure_retrieval"]


@dataclass(frozen=True)
class Measured:
    """A measurement that has come to its end.

    Attributes:
        rows: in canonical order: data set, retriever, attack, number of passages, question.
        made: how many were made by this run.
        failed: how many rows have an error; running again tries these once more.
    """

    rows: tuple[Row, ...]
    made: int
    failed: int


def measure_retrieval(config: EvalConfig, *, output: str | None = None, watcher: Watcher | None = None) -> Measured:
    """Measure how many of the top k an attacker owns who plants m documents.

    Args:
        config: its data sets, attacks (with `repeat` and `seed`), `top_k`, and `retrieve`; see `RetrievalSpec`.
        output: the JSONL file of the rows. Rows that are in it are not made again; None keeps them in memory only.
        watcher: is told about progress.

    Raises:
        RetrievalError: nothing can be measured, or a corpus or retriever cannot be used.
        DatasetError: a data set cannot be read.
        JournalError: the output cannot be used.
        RunStopped: the last 20 rows have all failed.
        KeyboardInterrupt: raised as it is; all rows made so far are on disk.
    """
    spec = config.retrieve or RetrievalSpec()
    bench = Bench(config, spec)
    jobs, notes = bench.jobs()
    with contextlib.ExitStack() as stack:
        journal = None if output is None else stack.enter_context(Journal(output))
        header = {"schema": HEADER_SCHEMA, "config": dict(config.given), "spec": asdict(spec)}
        known = _known(journal)
        todo = [job for job in jobs if job.key not in known or known[job.key]["error"] is not None]
        if watcher is not None:
            watcher.start(len(jobs), len(jobs) - len(todo), notes)
        if journal is not None and not journal.rows:
            journal.append(header)
        failures = 0
        for job in todo:
            row = bench.row(job)
            if journal is not None:
                journal.append(row)
            known[job.key] = row
            if watcher is not None:
                watcher.row(dict(row))
            failures = failures + 1 if row["error"] else 0
            if failures >= MOST_FAILURES:
                raise RunStopped(f"the last {failures} rows have all failed: {row['error']['message']}")
        rows = [known[job.key] for job in jobs]
        if journal is not None and todo:
            mine = {job.key for job in jobs}
            journal.replace([header, *rows, *(row for key, row in known.items() if key not in mine)])
    return Measured(tuple(rows), len(todo), sum(row["error"] is not None for row in rows))


def _known(journal: Journal | None) -> dict[str, Row]:
    if journal is None or not journal.rows:
        return {}
    if journal.rows[0].get("schema") != HEADER_SCHEMA:
        raise JournalError(
            f"{str(journal.path)!r} does not begin like a measurement of retrieval; it is left as it is, give another "
            "--output"
        )
    for number, row in enumerate(journal.rows[1:], 2):
        if problem := misfit_in_row(row):
            raise JournalError(
                f"{journal.path}, line {number} is not a row ({problem}); delete it, or give another file"
            )
    return {row["key"]: row for row in latest(journal.rows[1:])}
