"""`python -m benchmarks`: the cost of this project as ratios to vanilla RAG, naive isolation and other code.

Each part says on standard error what it finds. The table in the end has median, extremes, target and verdict.

    python -m benchmarks --quick                       a small model and two rounds: minutes
    python -m benchmarks --only keyword --repeats 9    one part, more rounds
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import certification, exactness, inference, keyword, orchestration, startup
from benchmarks.arguments import count, make_folder
from benchmarks.inference import Bench
from benchmarks.results import Ratio, as_table
from benchmarks.timing import Clock
from benchmarks.workload import Scene, random_llama, word_tokenizer
from robustrag_integrations.cli.arguments import whole_number

PARTS: dict[str, Callable[[Bench], Iterable[Ratio]]] = {
    "inference": inference.ratios,
    "keyword": keyword.ratios,
    "exactness": exactness.ratios,
    "certification": certification.ratios,
    "orchestration": orchestration.ratios,
    "startup": startup.ratios,
}
ABOUT = {
    "inference": "reading prompts and decoding: ours, vanilla RAG, naive isolation",
    "keyword": "isolated replies and final answers of keyword aggregation",
    "exactness": "benign rows that an attacker's passage moves: none",
    "certification": "certificates in trees and packs (slow)",
    "orchestration": "what the core, LangChain and LlamaIndex add to a model that answers at once",
    "startup": "imports and first answers of fresh processes",
}
"""What each part measures, for --help."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `benchmarks.json`."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.device == "cuda" and _device() != "cuda":
        parser.error("--device cuda: torch finds no CUDA device here")
    device = _device() if options.device == "auto" else options.device
    make_folder(parser, "--out", options.out)
    bench = _bench(options, device)
    found: list[Ratio] = []
    for name in options.only or PARTS:
        print(f"{name}:", file=sys.stderr, flush=True)
        found += PARTS[name](bench)
        # Written after each part, so that a run that is stopped leaves its figures.
        report = {"machine": _machine(bench, options, device), "ratios": [r.as_dict(device) for r in found]}
        (options.out / "benchmarks.json").write_text(json.dumps(report, indent=1) + "\n")
    print(as_table(found, device))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="parts:\n" + "\n".join(f"  {name:<15}{about}" for name, about in ABOUT.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a small model, two rounds, no long answers")
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda"), help="default: CUDA if it is there"
    )
    parser.add_argument("--model", choices=("tiny", "125m", "7b"), help="default 125m on the CPU, 7b on CUDA")
    parser.add_argument("--repeats", type=count, help="rounds; default 5, with --quick 2")
    parser.add_argument("--threads", type=count, default=1, help="CPU threads (default 1)")
    parser.add_argument(
        "--long",
        type=whole_number(0, 4096),
        metavar="T",
        help="tokens of long answers (default 200, with --quick 0: none)",
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help="measure these alone (see below)")
    parser.add_argument(
        "--out", type=Path, default=Path("benchmark-results"), help="folder for benchmarks.json (default %(default)s)"
    )
    return parser


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _bench(options: argparse.Namespace, device: str) -> Bench:
    import torch

    torch.set_num_threads(options.threads)
    size = options.model or ("tiny" if options.quick else "7b" if device == "cuda" else "125m")
    return Bench(
        network=random_llama(size, device),
        tokenizer=word_tokenizer(),
        scene=Scene(),
        clock=Clock(device),
        repeats=options.repeats or (2 if options.quick else 5),
        long_tokens=options.long if options.long is not None else (0 if options.quick else 200),
    )


def _machine(bench: Bench, options: argparse.Namespace, device: str) -> dict[str, Any]:
    import torch
    import transformers

    weights = bench.network
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": options.threads,
        "parameters": sum(p.numel() for p in weights.parameters()),
        "dtype": str(weights.dtype),
        "repeats": bench.repeats,
        "scene": vars(bench.scene),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


if __name__ == "__main__":
    sys.exit(main())
