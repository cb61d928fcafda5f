"""Tails: how long answers take where one request in a hundred takes twenty times as long, decided early or not.

    python -m benchmarks.load_tails --questions 300 --concurrency 8 --wait 0.4 --out docs/load

Few questions are in flight, so that the server's latency is what is waited for and not this process.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.arguments import number, spread_over
from benchmarks.folders import make_folder
from benchmarks.load import fetched, load_server, measure
from benchmarks.load_askers import core_asker

CASES: dict[str, dict[str, Any]] = {
    "consensus, all": {"method": "consensus"},
    "consensus, at once": {"method": "consensus", "early": True},
    "consensus, waves of 6": {"method": "consensus", "early": True, "wave": 6},
    "voting, all": {"method": "voting"},
    "voting, at once": {"method": "voting", "early": True},
    "keyword, all": {"method": "keyword"},
}


_WARM = 8  # questions before the clock starts
_KEPT = ("questions", "concurrency", "documents", "lost", "another question's answer")


def measure_tail(
    case: str, questions: int, concurrency: int, documents: int, wait: float, spread: float, slow: float
) -> dict[str, Any]:
    """One run of one case.

    Args:
        case: one of `CASES`.
        questions: how many are asked.
        concurrency: how many at a time.
        documents: per question.
        wait, spread, slow: of the server's latency; see `load_server`.
    """
    asker_of = partial(core_asker, **CASES[case])
    with load_server(wait, spread, slow) as address:
        load = measure(
            "core async", questions, concurrency, wait, documents, address=address, asker_of=asker_of, warm=_WARM
        )
        counts = fetched(address, "counts")
    found = load.figures()
    return {
        "case": case,
        **{name: found[name] for name in _KEPT},
        "p50 s": found["p50 s"],
        "p99 s": found["p99 s"],
        "p99 / p50": round(found["p99 s"] / found["p50 s"], 2) if found["p50 s"] else None,
        "model calls per answer": round(sum(load.calls) / len(load.calls), 2),
        "requests at the server per answer": round(counts["requests"] / (questions + _WARM), 2),
        "of them hung up on": round(counts["hung up"] / (questions + _WARM), 2),
        "radius": sorted(set(load.radii)),
    }


def main(arguments: list[str] | None = None) -> None:
    """Run all cases, print the figures and write them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load_tails", description=__doc__.splitlines()[0])
    spread_over(parser, 400, 4, "the server's median, in seconds", 0.1)
    parser.add_argument(
        "--spread", type=number(0, 5), default=0.3, help="standard deviation of its logarithm (default 0.3)"
    )
    parser.add_argument(
        "--slow",
        type=number(0, 1),
        default=0.01,
        help="share of requests that take twenty times as long (default 0.01)",
    )
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help=f"of {'; '.join(CASES)}; quoted"
    )
    parser.add_argument("--out", type=Path, default=Path("load"), help="folder for tails.json")
    args = parser.parse_args(arguments)
    make_folder(parser, "--out", args.out)
    sizes = args.questions, args.concurrency, args.documents, args.wait, args.spread, args.slow
    found = []
    for case in args.cases:
        found.append(measure_tail(case, *sizes))
        print(json.dumps(found[-1], indent=2), flush=True)
    (args.out / "tails.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
