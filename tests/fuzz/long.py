"""The long run: `python -m tests.fuzz.long --rounds 1000`; `--replay TARGET:KEY`, as reported, runs a failure again."""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tests.fuzz.source import Source, Target

# Each module of targets, and what it needs besides the package itself.
_MODULES = {
    "text": (),
    "answers": (),
    "keywords": (),
    "pages": (),
    "plans": (),
    "encoding": ("torch", "transformers"),
    "files": ("bm25s", "pypdf", "langchain_text_splitters"),
    "stored": (),
    "reports": (),
    "runs": ("yaml",),
    "served": ("httpx",),
    "langchain": ("langchain",),  # the oldest splitters bring a langchain_core of their time
    "llamaindex": ("llama_index.core",),
}


class Endless(Exception):
    """An input took longer than any input may."""


@cache
def targets() -> tuple[Target, ...]:
    """Every target that can run here, by name."""
    found: list[Target] = []
    for name, needs in _MODULES.items():
        if all(find_spec(need.partition(".")[0]) and find_spec(need) for need in needs):
            found += import_module(f"tests.fuzz.targets.{name}").TARGETS
    return tuple(sorted(found, key=lambda target: target.name))


def attempt(target: Target, key: str) -> str | None:
    """Give one target the input of this key; return what broke, with the traceback and what was drawn."""
    source = Source(f"{target.name}:{key}")
    try:
        target.attack(source)
    except Exception:
        drawn = [ascii(d)[:2000] for d in source.drawn[:50]]
        return "\n".join([f"--replay {target.name}:{key}", traceback.format_exc(), *drawn])
    return None


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Raise Endless in the block once it has used this much CPU time."""

    def stop(*_: Any) -> None:
        raise Endless(f"no end after {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def main(argv: list[str] | None = None) -> int:
    """Run and report; the exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.long", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000, help="times each target's share of inputs (default 1000)")
    parser.add_argument("--seed", default="0", help="another seed, other inputs")
    parser.add_argument("--targets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--replay", metavar="TARGET:KEY", help="one input again")
    args = parser.parse_args(argv)
    if args.replay:
        name, _, key = args.replay.partition(":")
        failures = [attempt(target, key) for target in targets() if target.name == name]
    else:
        chosen = [target for target in targets() if not args.targets or target.name in args.targets]
        failures = [_first_failure(target, args.seed, args.rounds) for target in chosen]
    found = list(filter(None, failures))
    print("\n\n".join(found) or "nothing found")
    return 1 if found else 0


def _first_failure(target: Target, seed: str, rounds: int) -> str | None:
    print(target.name, file=sys.stderr)
    for number in range(rounds * target.share):
        with watched(60):
            if (failure := attempt(target, f"{seed}:{number}")) is not None:
                return failure
    return None


if __name__ == "__main__":
    sys.exit(main())
