"""`robustrag report`: presents a run as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from robustrag_integrations._util.display import printable
from robustrag_integrations.cli.output import EXIT_ANSWERED, UsageError, complain

DESCRIPTION = """\
Show a run of `robustrag eval` as one page: tables, and for each question what
was retrieved, said, counted and outvoted. The page is one file that needs no network.
"""

EPILOG = """\
Passages and answers are shown as text, whatever is in them; hidden characters are named.

exit codes: 0 done, 1 failure (the file is not a run), 2 wrong usage
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("data", metavar="RUN", help="the file that robustrag eval wrote")
    parser.add_argument("-o", "--output", metavar="FILE", help="the page (default: RUN with .html)")


def run(args: argparse.Namespace) -> int:
    """Write the page, and print its path and what it leaves out."""
    from robustrag_integrations.evaluation.score.rows import read_run
    from robustrag_integrations.evaluation.show.report import write_report

    found = read_run(args.data)
    target = Path(args.data).with_suffix(".html") if args.output is None else Path(args.output)
    if target.exists() and target.samefile(args.data):
        raise UsageError(f"--output {str(target)!r} is the run itself; give another file")
    written = write_report(found, target)
    if found.bad:
        complain(f"{args.data}: {len(found.bad):,} lines that cannot be read are left out; {found.bad[0]}")
    print(printable(f"{written}: {len(found.rows):,} rows, {written.stat().st_size / 1e6:.1f} MB"))
    return EXIT_ANSWERED
