"""`robustrag report`: presents a run as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from robustrag_integrations._util.display import printable
from robustrag_integrations.cli.arguments import existing
from robustrag_integrations.cli.output import (
    EXIT_ANSWERED,
    Progress,
    UsageError,
    complain,
    show,
)

DESCRIPTION = """\
Show a run of `robustrag eval` as one page: tables, and for each question what
was retrieved, said, counted and outvoted. The page is one file that needs no network.
"""

EPILOG = """\
The page takes what it shows from the run's file alone. Passages and answers are shown as
text, whatever is in them; hidden characters are named. Rows that cannot be read are left
out, and the page says so.

examples:
  robustrag report run.jsonl                    writes run.html
  robustrag report run.jsonl -o report.html

exit codes: 0 done, 1 failure (the file is not a run), 2 wrong usage
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("data", metavar="RUN", type=existing, help="the file that robustrag eval wrote")
    parser.add_argument("-o", "--output", metavar="FILE", help="the page (default: RUN with .html)")


def run(args: argparse.Namespace) -> int:
    """Write the page, and print its path and what it leaves out."""
    from robustrag_integrations.evaluation.score.run_file import read_run
    from robustrag_integrations.evaluation.show.report import write_report

    target = _target(args.data, args.output)
    progress = Progress()
    progress.step(f"reading {args.data}")
    found = read_run(args.data)
    progress.step(f"drawing {len(found.rows):,} rows")
    written = write_report(found, target)
    if found.torn:
        complain(f"{args.data}: the last line is torn and was left out")
    if found.bad:
        first, plural = found.bad[0], "s" * (len(found.bad) > 1)
        complain(f"{args.data}: {len(found.bad):,} bad line{plural} left out; {first}")
    show(printable(f"{written}: {len(found.rows):,} rows, {written.stat().st_size / 1e6:.1f} MB"))
    return EXIT_ANSWERED


def _target(source: str, output: str | None) -> Path:
    """Return the page's path, which is never the run's."""
    beside = Path(source) if Path(source).name else Path(source, "report")  # "." and "/" have no name
    target = beside.with_suffix(".html") if output is None else Path(output)
    if target.is_dir():
        raise UsageError(f"--output {str(target)!r} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise UsageError(f"--output {str(target)!r}: there is no folder {str(target.parent)!r}")
    if target.exists() and target.samefile(source):
        raise UsageError(f"--output {str(target)!r} is the run itself; give another file")
    return target
