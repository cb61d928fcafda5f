"""`python -m benchmarks.profile`: where the computing time of one question goes, in the core, LangChain and LlamaIndex.

    python -m benchmarks.profile record after.json
    python -m benchmarks.profile record before.json --package ../another-checkout
    python -m benchmarks.profile draw before.json after.json profile.png

Recorded are asynchronous answers by keyword aggregation to questions with ten different short replies. The shares are
those of a run under cProfile, in one thread; the milliseconds are those of a run without it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.folders import make_folder

PARTS: dict[str, tuple[str, ...]] = {
    "tagging replies": ("keywords/tag", "keywords/shipped", "keywords/token", "keywords/lemma", "keywords/string"),
    "keywords of tagged words": ("keywords/",),
    "reading replies: reasoning, abstentions": ("abstention", "reply_text/", "replies/", "defenses/agreement/reader"),
    "forms in replies, who supports the answer": ("defenses/agreement/", "mentions", "normalise"),
    "counting, the list and the radius": ("defenses/keyword/", "defenses/"),
    "passages, origins and copies": ("passages", "origins/", "keys", "copies", "group_warnings", "votes", "links"),
    "model calls": ("models/", "tenacity"),
    "plans and reports": ("robustrag_integrations/",),
    "LangChain and its adapter": ("langchain", "langsmith"),
    "LlamaIndex and its adapter": ("llama",),
}
REST = "event loop, threads and the rest"
_ROUNDS, _QUESTIONS, _WARM_UP = 7, 20, 10

Question = Callable[[int], Any]  # a coroutine for the question of this number


def main(arguments: list[str] | None = None) -> int:
    """Record a profile, or draw two."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="profile the package that is here, or another checkout of it")
    record.add_argument("out", type=Path, help="JSON: milliseconds per question of each part")
    record.add_argument("--package", type=Path, help="the checkout whose packages are profiled; default this one")
    drawn = commands.add_parser("draw", help="two recorded profiles beside each other, as a PNG")
    drawn.add_argument("before", type=Path, help="what `record` wrote")
    drawn.add_argument("after", type=Path, help="the same, later")
    drawn.add_argument("out", type=Path, help="the picture")
    options = parser.parse_args(arguments)
    make_folder(parser, "out", options.out.parent)
    if options.command == "draw":
        try:
            records = [json.loads(path.read_text()) for path in (options.before, options.after)]
        except (OSError, ValueError) as error:
            parser.error(f"{error}; `python -m benchmarks.profile record FILE` writes what can be drawn")
        draw(*records, options.out)
        return 0
    if options.package:
        if not (options.package / "robustrag_integrations").is_dir():
            parser.error(f"--package {options.package} is no checkout: there is no robustrag_integrations in it")
        sys.path.insert(0, str(options.package.resolve()))
    found = {}
    for name, question in _questions():
        print(f"{name} ...", file=sys.stderr, flush=True)
        found[name] = recorded(question)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    for name, parts in found.items():
        print(f"{name}: {sum(parts.values()):.2f} ms")
    return 0


def recorded(question: Question) -> dict[str, float]:
    """The milliseconds per question of each part."""
    whole = _milliseconds(question)
    profile = cProfile.Profile()
    with patch("asyncio.to_thread", _here):
        _asked(question, _QUESTIONS, profile)
    shares = shares_of(pstats.Stats(profile).stats)  # type: ignore[attr-defined]
    return {part: whole * share for part, share in shares.items()}


def shares_of(stats: dict[Any, Any]) -> dict[str, float]:
    """Each part's share of the time; what belongs to no part counts for whoever called it.

    Args:
        stats: per function its calls, own and whole time, and the same per caller, as `pstats` has them.
    """
    known: dict[Any, Counter[str]] = {}

    def owners(function: Any, seen: frozenset[Any]) -> Counter[str]:
        if part := part_of(function[0]):
            return Counter({part: 1.0})
        if function in known:
            return known[function]
        callers = {c: took[3] for c, took in stats[function][4].items() if c not in seen and c in stats}
        total = sum(callers.values())
        found: Counter[str] = Counter()
        for caller, took in callers.items():
            for name, share in owners(caller, seen | {function}).items():
                found[name] += share * took / total if total else 0.0
        found = found or Counter({REST: 1.0})
        if not seen:
            known[function] = found
        return found

    spent: Counter[str] = Counter()
    for function, (_, _, own, _, _) in stats.items():
        for name, share in owners(function, frozenset()).items():
            spent[name] += own * share
    return {name: spent[name] / spent.total() for name in (*PARTS, REST)}


def part_of(file: str) -> str | None:
    """The part that a source file belongs to."""
    _, ours, inside = file.rpartition("robustrag_integrations/")
    for name, begins in PARTS.items():
        for begin in begins:
            if (ours and inside.startswith(begin)) or (not ours and f"/{begin}" in file):
                return name
    return "plans and reports" if ours else None


def draw(before: dict[str, Any], after: dict[str, Any], out: Path) -> None:
    """A pair of bars for each of the three, made of the parts."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [
        (f"{name}, {when}", found[name]) for name in before for when, found in (("before", before), ("after", after))
    ]
    figure, axes = pyplot.subplots(figsize=(11, 0.55 * len(rows) + 1.8))
    left = [0.0] * len(rows)
    colours = pyplot.get_cmap("tab20").colors  # type: ignore[attr-defined]
    for at, part in enumerate((*PARTS, REST)):
        widths = [found.get(part, 0.0) for _, found in rows]
        axes.barh(range(len(rows)), widths, left=left, label=part, color=colours[at], edgecolor="white", linewidth=0.4)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for at, end in enumerate(left):
        axes.text(end, at, f" {end:.1f} ms", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(right=1.12 * max(left))
    axes.set_xlabel("milliseconds of computing per question: ten different short replies, a model that answers at once")
    axes.legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    figure.savefig(out, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def _questions() -> Iterator[tuple[str, Question]]:
    """The core and both frameworks, each with replies that nobody has read before."""
    from benchmarks.extraction import names, replies_of
    from benchmarks.frameworks import langchain, llamaindex
    from benchmarks.questions import both_styles

    fresh = names()

    def asking(instant: Any, answer: Callable[[], Any]) -> Question:
        def ask(number: int) -> Any:
            instant.replies = [*(replies := replies_of(fresh)), replies[0]]
            return answer()

        return ask

    _, core = both_styles("keyword")
    yield "core", asking(core.instant, lambda: core.answer(f"Who built the bridge of {next(fresh)}?"))
    for name, framework in (("LangChain", langchain), ("LlamaIndex", llamaindex)):
        _, pair = framework.pairs("keyword", traced=False)
        yield name, asking(pair.instant, pair.ours)


def _milliseconds(question: Question) -> float:
    _asked(question, _WARM_UP)
    return statistics.median(_asked(question, _QUESTIONS) for _ in range(_ROUNDS))


def _asked(question: Question, count: int, profile: cProfile.Profile | None = None) -> float:
    """Milliseconds of computing per question, of so many in one event loop."""

    async def ask() -> float:
        start = time.process_time()
        for number in range(count):
            await question(number)
        return 1000 * (time.process_time() - start) / count

    if profile is None:
        return asyncio.run(ask())
    profile.enable()
    try:
        return asyncio.run(ask())
    finally:
        profile.disable()


async def _here(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """In place of a thread, where the profile would not see it."""
    return function(*args, **options)


if __name__ == "__main__":
    sys.exit(main())
