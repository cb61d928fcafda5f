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

from benchmarks import certification, exactness, inference, keyword, orchestration, real, startup, trusted
from benchmarks.arguments import count, make_folder
from benchmarks.inference import Bench
from benchmarks.results import Ratio, as_table
from benchmarks.timing import Clock
from benchmarks.workload import SIZES, Scene, random_llama, word_tokenizer
from robustrag_integrations.cli.options import whole_number

PARTS: dict[str, Callable[[Bench], Iterable[Ratio]]] = {
    "inference": inference.ratios,
    "keyword": keyword.ratios,
    "exactness": exactness.ratios,
    "certification": certification.ratios,
    "orchestration": orchestration.ratios,
    "trusted": trusted.ratios,
    "startup": startup.ratios,
    "real": real.ratios,
}
ABOUT = {
    "inference": "reading prompts and decoding: ours, vanilla RAG, naive isolation",
    "keyword": "isolated replies and final answers of keyword aggregation",
    "exactness": "benign rows that an attacker's passage moves: none",
    "certification": "certificates in trees and packs (slow)",
    "orchestration": "what the core, LangChain and LlamaIndex add to a model that answers at once",
    "trusted": "trusted answers beside the stock chain and engine; --model FOLDER: on a real model",
    "startup": "imports and first answers of fresh processes",
    "real": "all goals on a real model; with --model FOLDER, and not without it",
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
    for name in options.only or [name for name in PARTS if name != "real" or bench.folder is not None]:
        print(f"{name}:", file=sys.stderr, flush=True)
        for ratio in PARTS[name](bench):
            found.append(ratio)
            # Written each time, so that a run that is stopped leaves its figures.
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
    parser.add_argument(
        "--model",
        type=_size_or_folder,
        help=f"random weights ({', '.join(SIZES)}; default 125m on the CPU, 7b on CUDA), or the folder of a model",
    )
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of a folder's model")
    parser.add_argument("--data", default="demo", help="the questions for a folder's model (default demo)")
    parser.add_argument("--paper", type=Path, metavar="CHECKOUT", help="part real: the paper's code, to compare with")
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


def _size_or_folder(text: str) -> str:
    if text not in SIZES and not (Path(text) / "config.json").is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is neither {', '.join(SIZES)} nor the folder of a model")
    return text


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _bench(options: argparse.Namespace, device: str) -> Bench:
    import torch

    torch.set_num_threads(options.threads)
    size = options.model or ("tiny" if options.quick else "7b" if device == "cuda" else "125m")
    folder = None if size in SIZES else Path(size)
    network, tokenizer = (random_llama(size, device), word_tokenizer()) if folder is None else _loaded(folder, options)
    return Bench(
        network=network,
        tokenizer=tokenizer,
        scene=Scene() if folder is None else real.RealScene.of(options.data),
        folder=folder,
        data=options.data,
        paper=options.paper,
        clock=Clock(device),
        repeats=options.repeats or (2 if options.quick else 5),
        long_tokens=options.long if options.long is not None else (0 if options.quick else 200),
    )


def _loaded(folder: Path, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return a folder's model and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    network = AutoModelForCausalLM.from_pretrained(folder, dtype=options.dtype).eval()
    ends = network.generation_config.eos_token_id  # all else there is about sampling
    network.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=network.generation_config.pad_token_id)
    return network, AutoTokenizer.from_pretrained(folder)


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
        "model": str(bench.folder or "random weights"),
        "scene": {k: v for k, v in vars(bench.scene).items() if k != "questions"},
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


if __name__ == "__main__":
    sys.exit(main())
