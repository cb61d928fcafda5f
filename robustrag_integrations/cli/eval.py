"""`robustrag eval`: data sets x models x defences x attacks, as one run that can be interrupted."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustrag_integrations.cli.arguments import add_command
from robustrag_integrations.cli.eval_options import EPILOG, add_options, given_config
from robustrag_integrations.cli.exits import EXIT_ANSWERED, EXIT_FAILURE, UsageError
from robustrag_integrations.cli.output import complain, show, show_json, terminal_width
from robustrag_integrations.display import printable
from robustrag_integrations.evaluation.run.presets import PRESETS

_DESCRIPTION = """\
Evaluate defences: ask every question of a data set, cleanly and under attack, score the
answers, and certify the clean ones. Every row is on disk as soon as it is made; run the
same command again to go on after a crash or Ctrl-C.
"""

INTERRUPTED = 130


def add(commands: Any) -> None:
    """Add the command to the parser."""
    about = "the paper's evaluation on your data and model: attacks, certificates, tables"
    parser = add_command(commands, "eval", run, about, _DESCRIPTION, EPILOG)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the evaluation and print its summary."""
    from robustrag_integrations.evaluation.data.datasets import DatasetError
    from robustrag_integrations.evaluation.run.cache import CacheError
    from robustrag_integrations.evaluation.run.config import ConfigError, read_config
    from robustrag_integrations.evaluation.run.journal import JournalError
    from robustrag_integrations.evaluation.run.runner import evaluate

    try:
        mapping = given_config(args)
        if args.show_config:
            show(_as_yaml(mapping))
            return EXIT_ANSWERED
        config = read_config(mapping)
        output = args.output or f"{_stem(args)}.jsonl"
        watcher = _Bar(output)
        try:
            done = evaluate(config, output=output, engine=_engine(args), watcher=watcher)
        finally:
            watcher.close()
    except (CacheError, ConfigError, DatasetError, JournalError) as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        complain(f"interrupted; {watcher.standing()}. Run the same command again to go on")
        return INTERRUPTED
    _report(args, config, done.rows)
    complain(f"{len(done.rows)} rows are in {output}, {done.made} of them new")
    if done.failed:
        complain(f"{done.failed} rows failed; run the same command again to try these once more")
        return EXIT_FAILURE
    return EXIT_ANSWERED


def _stem(args: argparse.Namespace) -> str:
    if args.config:
        return Path(args.config).stem
    return str(args.preset or "eval")


def _engine(args: argparse.Namespace) -> Any:
    cached = args.cache or args.preset is None or PRESETS[args.preset].cached
    cache = None if args.no_cache or not cached else args.cache or default_cache()
    if args.engine == "ray":
        from robustrag_integrations.evaluation.run.engines.ray import RayEngine

        return RayEngine(cache=cache, workers=args.workers, address=args.ray_address)
    for flag, value in (("--workers", args.workers), ("--ray-address", args.ray_address)):
        if value is not None:
            raise UsageError(f"{flag} goes with --engine ray")
    from robustrag_integrations.evaluation.run.engines.local import LocalEngine

    return LocalEngine(cache=cache, concurrency=args.concurrency)


def default_cache() -> str:
    """The user's cache folder for model calls."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "robustrag", "calls")


def _as_yaml(mapping: Mapping[str, Any]) -> str:
    """The configuration as YAML; without pyyaml as JSON, which is YAML as well."""
    plain = json.loads(json.dumps(mapping))
    try:
        import yaml
    except ImportError:
        return json.dumps(plain, indent=2)
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)).rstrip()


def _report(args: argparse.Namespace, config: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """The summary: on standard output, and into the files that were asked for."""
    from dataclasses import asdict

    from robustrag_integrations.evaluation.score.summary import summarise
    from robustrag_integrations.evaluation.show.lines import lines_csv, lines_table
    from robustrag_integrations.evaluation.show.paper import layout_table

    lines = summarise(rows)
    if args.csv:
        try:
            Path(args.csv).write_text(lines_csv(lines), encoding="utf-8", newline="")
        except OSError as error:
            raise UsageError(f"cannot write --csv {args.csv!r}: {error.strerror}") from error
    if args.plots:
        from robustrag_integrations.evaluation.show.plots import save_plots

        for path in save_plots(lines, args.plots):
            complain(f"plot: {path}")
    if args.json:
        show_json({"schema": "robustrag/eval-summary/1", "lines": [asdict(line) for line in lines]})
        return
    if config.layout:
        show(layout_table(config.layout, lines, terminal_width()) + "\n")
    show(lines_table(lines, terminal_width()))


class _Bar:
    """Tells on standard error how far a run is and how long it will take."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._bar: Any = None
        self._total = self._done = self._failed = 0

    def start(self, total: int, known: int, notes: Sequence[str]) -> None:
        """The run has so many rows, of which some are known."""
        complain(*notes)
        if known:
            complain(f"{known} of {total} rows are in {printable(self._output, 200)} already")
        self._total, self._done = total, known
        if total == known:
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        patience = 0.2 if sys.stderr.isatty() else 30.0  # a log file needs few lines
        self._bar = tqdm(
            total=total, initial=known, unit="row", file=sys.stderr, mininterval=patience, dynamic_ncols=True
        )

    def row(self, row: Mapping[str, Any]) -> None:
        """A row is made."""
        failed = row["error"] is not None
        self._done += not failed
        self._failed += failed
        if self._bar is not None:
            if self._failed:
                self._bar.set_postfix(failed=self._failed, refresh=False)
            self._bar.update()

    def close(self) -> None:
        """The run has ended."""
        if self._bar is not None:
            self._bar.close()

    def standing(self) -> str:
        """How far the run has come, in words."""
        return f"{self._done} of {self._total} rows are in {printable(self._output, 200)}"
