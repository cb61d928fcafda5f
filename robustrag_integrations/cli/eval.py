"""`robustrag eval`: data sets x models x defences x attacks, as one run that can be interrupted."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.usage import prices_of
from robustrag_integrations.cli.eval_options import EPILOG, given_config
from robustrag_integrations.cli.eval_options import add_options as add
from robustrag_integrations.cli.output import (
    EXIT_ANSWERED,
    UsageError,
    check_result,
    complain,
    show,
    show_json,
    terminal_width,
    write_result,
)
from robustrag_integrations.cli.running import exit_code, run_evaluation
from robustrag_integrations.evaluation.run.presets import PRESETS

_MOST_COMPARISONS = 20  # on a terminal

__all__ = ["DESCRIPTION", "EPILOG", "add", "run"]

DESCRIPTION = """\
Evaluate defences: ask every question of a data set, cleanly and under attack, score the
answers, and certify the clean ones. Every row is on disk as soon as it is made; run the
same command again to resume after a crash or Ctrl-C.
"""


def run(args: argparse.Namespace) -> int:
    """Run the evaluation and print its summary."""
    from robustrag_integrations.evaluation.run.config import ConfigError

    try:
        mapping = given_config(args)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    if args.show_config:
        show(_as_yaml(mapping))
        return EXIT_ANSWERED
    check_result("--csv", args.csv)
    check_result("--latex", args.latex)
    output = args.output or f"{_stem(args)}.jsonl"
    cached = args.preset is None or PRESETS[args.preset].cached
    done = run_evaluation(args, mapping, output, cached=cached)
    _report(args, mapping, done.rows)
    complain(f"{output} holds {count_of(len(done.rows), 'row')}, {done.made} of them new")
    return exit_code(done)


def _stem(args: argparse.Namespace) -> str:
    if args.config:
        return Path(args.config).stem
    return str(args.preset or "eval")


def _as_yaml(mapping: Mapping[str, Any]) -> str:
    """Return the configuration as YAML."""
    import yaml

    plain = json.loads(json.dumps(mapping))
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)).rstrip()


def _report(args: argparse.Namespace, config: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the summary to standard output, and to the files that were asked for."""
    from dataclasses import asdict

    from robustrag_integrations.evaluation.score.paired import compare
    from robustrag_integrations.evaluation.score.summary import summarise
    from robustrag_integrations.evaluation.score.sureness import sureness
    from robustrag_integrations.evaluation.show.lines import (
        comparisons_table,
        lines_csv,
        lines_table,
        summary_table,
        warnings_in_sum,
    )
    from robustrag_integrations.evaluation.show.tables import latex, text_table

    lines = summarise(rows, None if config["prices"] is None else prices_of(config["prices"]))
    compared = compare(rows)
    sure = sureness(rows)
    if args.csv:
        write_result("--csv", args.csv, lines_csv(lines))
    written = latex(filter(None, [summary_table(lines), comparisons_table(compared)]))
    if args.latex == "-":
        show(written)
    elif args.latex:
        write_result("--latex", args.latex, written)
    complain(*warnings_in_sum(lines))
    if args.json:
        show_json(
            {
                "schema": "robustrag/eval-summary/1",
                "lines": [asdict(line) for line in lines],
                "differences": [asdict(c) for c in compared],
                "confidence": [asdict(found) for found in sure],
            }
        )
        return
    show(lines_table(lines, terminal_width()))
    for found in sure:
        show(found.in_words())
    if (beside := comparisons_table(compared, _MOST_COMPARISONS)) is not None:
        show("\n" + text_table(beside, terminal_width()))
