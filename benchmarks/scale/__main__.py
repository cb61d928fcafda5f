"""The tables of docs/scale.md: `python -m benchmarks.scale`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from benchmarks.scale.demand import A_DAY, WAYS, Demand, demand, spent_table
from benchmarks.scale.queues import queued
from benchmarks.scale.world import Scene

SECOND_PER_CALL = 0.8  # a median call of a small hosted model
PEAK = 3.0  # the busiest minutes over the mean of the day
LOADS = (0.7, 0.9, 0.97)
_FLEET = ("vanilla", "keyword", "consensus", "consensus, early")


def main(arguments: list[str] | None = None) -> int:
    """Print what a day asks for, what the parts of a deployment must hold, and what waiting for places does."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--questions", type=int, default=1000, help="questions that the means are taken over")
    parser.add_argument("--arrivals", type=int, default=30_000, help="questions of each simulated queue")
    options = parser.parse_args(arguments)
    if options.questions < 2 or options.arrivals < 2:
        parser.error("--questions and --arrivals must be at least 2")
    found = []
    for way in WAYS:
        print(f"{way.title} ...", file=sys.stderr, flush=True)
        found.append(demand(way, options.questions))
    print(f"\n{spent_table(found)}\n\nOn a server that keeps every beginning:\n")
    kept = [
        demand(way, options.questions, cache_from=1) for way in WAYS if way.title in _FLEET or "worked" in way.title
    ]
    print(spent_table(kept))
    chosen = [one for one in found if one.title in _FLEET]
    print(f"\n{fleet_table(chosen)}\n")
    print(queue_table([one for one in chosen if one.title != "vanilla"], options.arrivals))
    return 0


def per_second(*, peak: bool = True) -> float:
    """Questions per second."""
    return A_DAY / 86_400 * (PEAK if peak else 1.0)


def fleet_table(found: Sequence[Demand]) -> str:
    """What the parts must hold in the busiest minutes, as Markdown."""
    lines = [
        "| in the busiest minutes | " + " | ".join(one.title for one in found) + " |",
        "|---|" + "---:|" * len(found),
    ]
    lines += [f"| {name} | {' | '.join(values)} |" for name, values in _fleet(found)]
    return "\n".join(lines)


def _fleet(found: Sequence[Demand]) -> Iterator[tuple[str, list[str]]]:
    rate = per_second()
    yield "calls a second", [f"{rate * one.calls:,.0f}" for one in found]
    yield "calls under way", [f"{rate * one.busy * SECOND_PER_CALL:,.0f}" for one in found]
    yield "million tokens in a minute", [f"{rate * 60 * one.usage[0] / 1e6:,.0f}" for one in found]
    yield "million tokens out a minute", [f"{rate * 60 * one.usage[2] / 1e6:,.1f}" for one in found]
    yield "GB of reports a day", [f"{A_DAY * one.report / 1e9:,.0f}" for one in found]


def queue_table(found: Sequence[Demand], arrivals: int) -> str:
    """What share of the places in use does to a user's wait, as Markdown; times in median calls."""
    lines = [
        "| way | places in use | places | p50 | p99 | calls that waited at most |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        for load in LOADS:
            seen = queued(
                per_second() * SECOND_PER_CALL,
                Scene().passages,
                one.decided_after,
                final=one.title == "keyword",
                load=load,
                questions=arrivals,
                scene=Scene(),
            )
            lines.append(
                f"| {one.title} | {load:.0%} | {seen.places:,} | {seen.p50:.1f} | {seen.p99:.1f} | {seen.longest:,} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
