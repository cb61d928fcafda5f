"""`python -m benchmarks`: what this project costs next to vanilla RAG, naive isolation and what others take, as ratios.

Each part says on standard error what it finds. The table in the end has median, extremes, target and verdict.

    python -m benchmarks --quick                       a small model and two rounds: minutes
    python -m benchmarks --only keyword --repeats 9    one part, more rounds
    python -m benchmarks --dry-run                     no GPU: what a 7B model would take on an H200, derived
    python -m benchmarks --quick --repeats 5 --check   beside the last figures that were recorded (make bench-check)
    python -m benchmarks --only reference --reference RobustRAG   the paper's code, from your checkout, beside ours
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import (
    batching,
    beside,
    certification,
    exactness,
    extraction,
    inference,
    keyword,
    orchestration,
    products,
    remote,
    startup,
    yardstick,
)
from benchmarks.arguments import count
from benchmarks.dry_run import DerivedClock, small_network
from benchmarks.folders import make_folder
from benchmarks.history import (
    HISTORY,
    TOLERANCE,
    Change,
    HistoryError,
    Part,
    again,
    append,
    compare,
    in_doubt,
    read,
    records_of,
)
from benchmarks.history import as_table as comparison
from benchmarks.inference import Bench
from benchmarks.paper_code import HOW, sources
from benchmarks.results import Ratio, as_table, draw
from benchmarks.scaling import curves
from benchmarks.timing import Clock
from benchmarks.workload import Scene, random_llama, word_tokenizer
from robustrag_integrations.cli.arguments import whole_number

PARTS: dict[str, Callable[[Bench], list[Ratio]]] = {
    "inference": inference.ratios,
    "keyword": keyword.ratios,
    "exactness": exactness.ratios,
    "certification": certification.ratios,
    "orchestration": orchestration.ratios,
    "extraction": extraction.ratios,
    "batching": batching.ratios,
    "startup": startup.ratios,
    "products": products.ratios,
    "remote": remote.ratios,
}
DRY_PARTS = ["inference", "keyword", "exactness", "certification", "batching"]
CHECKED = ["startup", "extraction", "orchestration", "products", "inference", "keyword", "exactness"]
"""What `make bench-check` compares with the history: minutes."""
MORE_TIMES = 2
"""How often a part is measured once more that has a figure which became worse."""
SCALING = "scaling"
REFERENCE = "reference"
ABOUT = {
    "inference": "reading prompts and decoding: ours, vanilla RAG, naive isolation",
    "keyword": "final answers of keyword aggregation, plain and from drafts",
    "exactness": "benign rows that an attacker's passage moves: none",
    "certification": "certificates in trees and packs (slow)",
    "orchestration": "what the core, LangChain and LlamaIndex add to a model that answers at once",
    "extraction": "reading ten replies: keywords and abstentions",
    "batching": "questions that share decoding steps",
    "startup": "imports and first answers of fresh processes",
    "products": "products with weights: the kernel that is taken, next to the fastest one here",
    "remote": "rounds of decoding on a simulated server",
    SCALING: "curves over passages, lengths and groups, for the picture (slow)",
    REFERENCE: "the paper's code beside ours on the bundled reader; needs --reference",
}
"""What each part measures, for --help."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `benchmarks.json` and `benchmarks.png`."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check_reference(parser, options)
    if options.dry_run and (options.check or options.record):
        parser.error("--dry-run derives its figures: it goes with neither --check nor --record")
    if options.dry_run and (live := [name for name in options.only or [] if name not in DRY_PARTS]):
        parser.error(f"--dry-run derives {', '.join(DRY_PARTS)}, not {', '.join(live)}: measure that without --dry-run")
    if options.device == "cuda" and not options.dry_run and _device() != "cuda":
        parser.error("--device cuda: torch finds no CUDA device here; --dry-run derives what one would take")
    device = "cuda" if options.dry_run else _device() if options.device == "auto" else options.device
    try:
        history = None if options.check is None else read(options.check)
        if options.record is not None and options.record.is_dir():
            raise HistoryError(f"--record {options.record} is a folder; name a file, such as {HISTORY.name} in it")
    except HistoryError as error:
        parser.error(str(error))
    make_folder(parser, "--out", Path(options.out))
    _threads(options.threads)
    bench = _dry_bench(options, DRY_PARTS[0]) if options.dry_run else _bench(options, device)
    found: dict[str, Part] = {}
    drawn: list[dict[str, Any]] = []
    everything = [*PARTS, SCALING, REFERENCE] if options.reference else [*PARTS, SCALING]
    whole = CHECKED if options.check or options.record else everything
    for name in options.only or (DRY_PARTS if options.dry_run else whole):
        part_bench = _dry_bench(options, name) if options.dry_run else bench
        if name == SCALING:
            _begin(name)
            drawn = curves(bench, quick=options.quick)
        else:
            found[name] = _measured(name, part_bench, options)
        if isinstance(part_bench.clock, DerivedClock):
            print(f"{name}: {part_bench.clock.in_words()}", file=sys.stderr)
        _write(Path(options.out), _all(found), drawn, _machine(bench, options, device), device)
    print(as_table(_all(found), device))
    if options.dry_run:
        return 0
    setting = f"{device}, {_size(options, device)}, threads: {options.threads}"
    records = records_of(found, device, setting)
    changes: list[Change] = []
    if history is not None:
        changes = compare(records, history)
        for _ in range(MORE_TIMES):
            once_more = {name: _measured(name, bench, options) for name in in_doubt(changes)}
            changes = again(changes, compare(records_of(once_more, device, setting), history))
        print(f"\n{comparison(changes)}")
    if options.record is not None:
        append(records, options.record)
    return 1 if in_doubt(changes) else 0


def _measured(name: str, bench: Bench, options: argparse.Namespace) -> Part:
    """A part's figures, and the speed of the machine before and after them."""
    _begin(name)
    before = yardstick.milliseconds()
    ratios = _ratios(name, bench, options)
    return Part(ratios, (before + yardstick.milliseconds()) / 2)


def _ratios(name: str, bench: Bench, options: argparse.Namespace) -> list[Ratio]:
    if name != REFERENCE:
        return PARTS[name](bench)
    return beside.ratios(
        options.reference,
        bench.repeats,
        bench.clock.device,
        threads=options.threads,
        parts=options.reference_parts,
        questions=options.questions,
    )


def _begin(name: str) -> None:
    print(f"{name}:", file=sys.stderr, flush=True)


def _all(found: Mapping[str, Part]) -> list[Ratio]:
    return [ratio for part in found.values() for ratio in part.ratios]


def _write(folder: Path, found: list[Ratio], drawn: list[dict[str, Any]], machine: dict[str, Any], device: str) -> None:
    """Write what is known so far, so that a run that is stopped leaves its figures behind."""
    report = {"machine": machine, "ratios": [r.as_dict(device) for r in found], "scaling": drawn}
    (folder / "benchmarks.json").write_text(json.dumps(report, indent=1) + "\n")
    draw(found, drawn, device, str(folder / "benchmarks.png"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="parts:\n" + "\n".join(f"  {name:<15}{about}" for name, about in ABOUT.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a small model, two rounds, no long answers")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help=f"derive what the 7B shape would take on an H200 ({', '.join(DRY_PARTS)})",
    )
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
    parts = (*PARTS, SCALING, REFERENCE)
    parser.add_argument("--only", nargs="+", choices=parts, metavar="PART", help="measure these alone (see below)")
    parser.add_argument("--reference", type=Path, metavar="PATH", help="the paper's code, for the part reference")
    parser.add_argument(
        "--reference-parts",
        nargs="+",
        default=beside.PARTS,
        choices=beside.PARTS,
        metavar="PART",
        help=f"of the part reference: {', '.join(beside.PARTS)} (default all)",
    )
    parser.add_argument("--questions", type=count, default=beside.QUESTIONS, help="of the part reference (default 30)")
    parser.add_argument(
        "--check",
        nargs="?",
        type=Path,
        const=HISTORY,
        metavar="FILE",
        help=f"compare with a history, and exit with 1 if a figure became worse by over {TOLERANCE:.0%}%",
    )
    parser.add_argument(
        "--record",
        nargs="?",
        type=Path,
        const=HISTORY,
        metavar="FILE",
        help="append the figures to a history (default docs/benchmarks/history.jsonl)",
    )
    parser.add_argument(
        "--out",
        default="benchmark-results",
        help="folder for benchmarks.json and benchmarks.png (default benchmark-results)",
    )
    return parser


def _check_reference(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse what is not the paper's code, where a part needs it, before anything is measured."""
    if options.reference is None and REFERENCE in (options.only or []):
        parser.error(
            f"--only reference needs --reference PATH, a checkout of github.com/inspire-group/RobustRAG: {HOW}"
        )
    if options.reference is not None and REFERENCE in (options.only or [REFERENCE]):
        sources(options.reference)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _threads(count: int) -> None:
    import torch

    torch.set_num_threads(count)


def _size(options: argparse.Namespace, device: str) -> str:
    size: str = options.model or ("tiny" if options.quick else "7b" if device == "cuda" else "125m")
    return size


def _bench(options: argparse.Namespace, device: str) -> Bench:
    return Bench(
        network=random_llama(_size(options, device), device),
        tokenizer=word_tokenizer(),
        scene=Scene(),
        clock=Clock(device),
        repeats=options.repeats or (2 if options.quick else 5),
        long_tokens=options.long if options.long is not None else (0 if options.quick else 200),
    )


def _dry_bench(options: argparse.Namespace, part: str) -> Bench:
    """What a part runs on; certificates, which want single precision for trees and packs, have a model of their own."""
    single = part == "certification"
    clock = DerivedClock.in_single_precision() if single else DerivedClock("cpu")
    network = small_network(clock, "float32" if single else "bfloat16", options.model or "tiny")
    long_tokens = options.long if options.long is not None else (0 if options.quick else 200)
    rounds = options.repeats or 1
    return Bench(network, word_tokenizer(), Scene(), clock, rounds, long_tokens=long_tokens, fixed_shapes=True)


def _device_name(options: argparse.Namespace, device: str) -> str:
    import torch

    if options.dry_run:
        return "none: derived for the 7B shape on an H200"
    return str(torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine())


def _machine(bench: Bench, options: argparse.Namespace, device: str) -> dict[str, Any]:
    import torch
    import transformers

    weights = bench.network
    return {
        "device": _device_name(options, device),
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
