"""Runs an evaluation from the command line: `robustrag eval`, and `robustrag certify`, which is a part of it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.cli.arguments import whole_number
from robustrag_integrations.cli.output import EXIT_ANSWERED, EXIT_FAILURE, UsageError, complain, progress_bar

if TYPE_CHECKING:
    from robustrag_integrations.evaluation.run.planning import Job
    from robustrag_integrations.evaluation.run.runner import Finished


def add_how(group: Any) -> None:
    """Add the options that change how rows are computed, and no row."""
    group.add_argument(
        "--concurrency",
        type=whole_number(1, 1000),
        default=1,
        metavar="N",
        help="rows at a time (default 1); a model in this process still makes one row at a time",
    )
    group.add_argument(
        "--cache", metavar="DIR", help="folder of the cache of model calls (default ~/.cache/robustrag/calls)"
    )
    group.add_argument("--no-cache", action="store_true", help="keep no model calls")
    group.add_argument(
        "--threads", type=whole_number(1, 1024), metavar="N", help="of the processor, for a model in this process"
    )


def run_evaluation(
    args: argparse.Namespace, mapping: Mapping[str, Any], output: str | None, *, cached: bool = True
) -> Finished:
    """Compute the rows of a configuration, with progress on standard error.

    Args:
        args: with the options of `add_how`.
        mapping: the configuration; see `evaluation.run.config`.
        output: the file of the rows; None for none.
        cached: True if model calls are kept where nothing is said about it.

    Raises:
        UsageError: something that was typed, or a file, cannot be used.
        KeyboardInterrupt: Ctrl-C; the message tells the progress and how to resume.
    """
    from robustrag_integrations.evaluation.data.datasets import DatasetError
    from robustrag_integrations.evaluation.run.bench import LocalEngine
    from robustrag_integrations.evaluation.run.cache import CacheError
    from robustrag_integrations.evaluation.run.config import ConfigError, read_config
    from robustrag_integrations.evaluation.run.journal import JournalError
    from robustrag_integrations.evaluation.run.runner import evaluate

    bar = Bar(output)
    try:
        config = read_config(mapping)
        if args.threads is not None:
            import torch

            torch.set_num_threads(args.threads)
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        cache = args.cache or (os.path.join(home, "robustrag", "calls") if cached else None)
        engine = LocalEngine(cache=None if args.no_cache else cache, concurrency=args.concurrency)
        return evaluate(config, output=output, engine=engine, watcher=bar)
    except (CacheError, ConfigError, DatasetError, JournalError) as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(bar.standing()) from error
    finally:
        bar.close()


def exit_code(done: Finished) -> int:
    """Return the exit code of a run; failed rows are reported."""
    if not done.failed:
        return EXIT_ANSWERED
    complain(f"{count_of(done.failed, 'row')} failed; run the same command again to retry them")
    return EXIT_FAILURE


class Bar:
    """Shows on standard error the progress of a run and the time left.

    Args:
        output: the file of the rows; None for none.
    """

    def __init__(self, output: str | None) -> None:
        self._where = "done" if output is None else f"in {printable(output, 200)}"
        self._bar: Any = None
        self._total = self._done = self._failed = 0

    def start(self, total: int, known: int, notes: Sequence[str]) -> None:
        """Begin a run with this many rows, of which some are known."""
        complain(*notes)
        if known:
            complain(f"{known} of {total} rows are {self._where} already")
        self._total, self._done = total, known
        if total > known:
            self._bar = progress_bar(total, "row", known)

    def job(self, job: Job) -> None:
        """Begin a row: the bar shows its setup, attack and model."""
        if self._bar is not None:
            about = [job.setup.label, *([] if job.attack.name == "none" else [job.attack.name]), job.setup.model.label]
            self._bar.set_description_str(printable(", ".join(about), 60), refresh=False)

    def row(self, row: Mapping[str, Any]) -> None:
        """Count a finished row."""
        failed = row["error"] is not None
        self._done += not failed
        self._failed += failed
        if self._bar is not None:
            if self._failed:
                self._bar.set_postfix(failed=self._failed, refresh=False)
            self._bar.update()

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()

    def standing(self) -> str:
        """Return the run's progress in words."""
        rows = f"{self._done} of {self._total} rows are {self._where}"
        return f"interrupted; {rows}. Run the same command again to resume"
