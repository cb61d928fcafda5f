"""The documents that a command answers from: selection, retrieval, and the units that vote."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from robustrag_integrations.cli.arguments import (
    existing,
    least_radius,
    origin_tier,
    origin_votes,
    some_text,
    whole_number,
)
from robustrag_integrations.cli.output import Progress, complain
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE

if TYPE_CHECKING:
    from robustrag_integrations.corpus import BM25Index
    from robustrag_integrations.corpus.documents import Skipped


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Add --docs."""
    parser.add_argument(
        "--docs", nargs="+", required=True, type=existing, metavar="PATH", help="files and folders to read"
    )


def add_retrieval(parser: argparse.ArgumentParser) -> None:
    """Add the options for how many sources are asked, what has a vote, and how votes are counted."""
    group = parser.add_argument_group("retrieval")
    group.add_argument(
        "--top-k",
        type=whole_number(1, 1000),
        default=10,
        metavar="K",
        help="how many sources are asked; with --group-by passage, how many passages (default 10)",
    )
    group.add_argument(
        "--per-source",
        type=whole_number(1, 100),
        default=2,
        metavar="N",
        help="how many passages of one source are read at most (default 2)",
    )
    group.add_argument(
        "--group-by",
        type=some_text,
        default=ORIGIN,
        metavar="WHAT",
        help="what has one vote: origin (default: a file or page), site, passage, or an entry of JSONL rows such as "
        "author",
    )
    group.add_argument(
        "--copies",
        choices=("report", "one_vote"),
        default="report",
        help="sources with the same text: report them (default), or count those that answer alike once",
    )
    group.add_argument(
        "--weights",
        nargs="+",
        type=origin_votes,
        metavar="ORIGIN=N",
        help="votes of a source, folder, host or site in place of one, 0 to leave it out: handbook.pdf=3 x.com=0; or "
        "newest:ENTRY for votes by the date in an entry of JSONL rows; the radius then counts votes",
    )
    group.add_argument(
        "--tiers",
        nargs="+",
        type=origin_tier,
        metavar="ORIGIN=LABEL",
        help="how far a source, folder, host or site is trusted, the most trusted first: wiki/=internal; others are "
        "other; or an entry of JSONL rows. The answer tells how many sources of each can be replaced",
    )
    group.add_argument(
        "--min-groups", type=whole_number(0, 1000), default=0, metavar="N", help="abstain with fewer sources"
    )
    group.add_argument(
        "--min-radius",
        type=least_radius,
        default=0,
        metavar="N",
        help="abstain below this radius; with --tiers also by label, such as other=9",
    )
    group.add_argument(
        "--stop-when-decided",
        action="store_true",
        help="consensus, voting: ask no longer than the answer, and --min-radius, can still change",
    )
    group.add_argument(
        "--wave-size",
        type=whole_number(1, 1000),
        metavar="N",
        help="with --stop-when-decided: how many sources are asked at once (default all)",
    )
    group.add_argument(
        "--chunk-size",
        type=whole_number(50, 100_000),
        default=600,
        metavar="N",
        help="the longest passage, in characters (default 600)",
    )


def read_index(args: argparse.Namespace, progress: Progress) -> tuple[BM25Index, tuple[Skipped, ...]]:
    """Read the documents of --docs and index their passages. Reports what was skipped, and returns it.

    Raises:
        CorpusError: a path or a named file cannot be read, or there is no text at all.
        ImportError: the extra `cli` is missing.
    """
    from robustrag_integrations.corpus import BM25Index, read_documents, split

    reading = read_documents(args.docs, on_file=lambda done, total: progress.count("files read", done, total))
    for skipped in reading.skipped:
        complain(f"skipped: {skipped.reason}")
    chunks = split(reading.documents, args.chunk_size)
    progress.step(f"searching {len(chunks):,} passages of {len(reading.documents):,} documents")
    return BM25Index(chunks), reading.skipped


def per_source(args: argparse.Namespace) -> int | None:
    """Return the maximum number of passages per source; None where each passage is a source."""
    most: int = args.per_source
    return None if args.group_by == PASSAGE else most
