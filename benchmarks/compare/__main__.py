"""`python -m benchmarks.compare`: see the package."""

from __future__ import annotations

import argparse
import sys

import benchmarks.compare
from benchmarks.compare.confidence import confidence
from benchmarks.compare.paired import compare, comparisons_table
from robustrag_integrations.cli import main as robustrag
from robustrag_integrations.evaluation.score.rows import read_run


def main(arguments: list[str]) -> int:
    """Run a command of `robustrag` with the baselines, or print what a run's rows tell."""
    if arguments[:1] not in (["paired"], ["confidence"]):
        return robustrag(arguments) if arguments else robustrag(["--help"])
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=benchmarks.compare.__doc__)
    parser.add_argument("what", choices=("paired", "confidence"))
    parser.add_argument("run", help="the file that robustrag eval wrote")
    args = parser.parse_args(arguments)
    rows = read_run(args.run).rows
    if args.what == "paired":
        print(comparisons_table(compare(rows)).as_text())
    else:
        print("\n".join(found.in_words() for found in confidence(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
