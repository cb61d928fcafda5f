"""Numbers on the command lines of the benchmarks, checked before anything is measured."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from robustrag_integrations.cli.arguments import whole_number

MANY = 1_000_000
"""More of anything would not end."""

count = whole_number(1, MANY)


def number(smallest: float, largest: float) -> Callable[[str], float]:
    """A reader of numbers in this range; NaN is in none."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not smallest <= found <= largest:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {smallest:g} to {largest:g}")
        return found

    return read


def spread_over(parser: argparse.ArgumentParser, questions: int, concurrency: int, wait: str, seconds: float) -> None:
    """Add what both load runs take: how much is asked at a time, of what, of a server that waits so long."""
    parser.add_argument("--questions", type=count, default=questions, help=f"how many are asked (default {questions})")
    parser.add_argument(
        "--concurrency", type=count, default=concurrency, help=f"how many of them at a time (default {concurrency})"
    )
    parser.add_argument(
        "--documents", type=count, default=10, help="per question, a request each; the answer is one more (default 10)"
    )
    parser.add_argument("--wait", type=number(0, 60), default=seconds, help=f"{wait} (default {seconds})")
