"""What the paper's code costs beside ours: the same reader, questions and passages, one question by both in turn.

Run: `python -m benchmarks --only reference --reference PATH`, where PATH is a checkout of
github.com/inspire-group/RobustRAG (`paper_code`). Both have their default settings and one passage per group. A ratio
is the computing time of the paper's code over ours for all questions of a round; below it stands how many answers are
right, ours over theirs, and how many corruption sizes are certified. Each pair is measured in a process of its own
(`in_turn`): memory that earlier work gave back makes the paper's code faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fresh import figures
from benchmarks.results import Ratio, Target

QUESTIONS = 30


@dataclass(frozen=True)
class Pair:
    """The same piece of work, done by both.

    Attributes:
        part: what `--reference-parts` calls it.
        method: of `GOALS`.
        name: what is compared.
        goal: the smallest ratio of computing time that is good.
        attacked: whether one injected instruction is in place of the last passage.
        sizes: the corruption sizes that are certified after the answer; none for an answer alone.
    """

    part: str
    method: str
    name: str
    goal: float
    attacked: bool = False
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What came of a pair.

    Attributes:
        ratios: computing time, reference / ours, one per round.
        questions: how many were asked.
        right: how many answers hold the right one, by "reference" and "ours".
        certified: how many corruption sizes are certified, in the same way.
    """

    ratios: Sequence[float]
    questions: int
    right: Mapping[str, int]
    certified: Mapping[str, int]


GOALS = {"vanilla": 1.0, "keyword": 1.2, "decoding": 2.0, "voting": 1.2}
_CERTIFICATES = "certificates"
_CERTIFICATE_GOAL = 2.0


def _pairs() -> Iterator[Pair]:
    for method, goal in GOALS.items():
        yield Pair(method, method, f"{method}, clean", goal)
        yield Pair(method, method, f"{method}, attacked", goal, attacked=True)
    for method in ("keyword", "voting", "decoding"):
        for sizes in ((1,), (1, 2, 3)):
            name = f"{method}, answer and certificate, k' = {', '.join(map(str, sizes))}"
            yield Pair(_CERTIFICATES, method, name, _CERTIFICATE_GOAL, sizes=sizes)


PAIRS = {pair.name: pair for pair in _pairs()}
PARTS = (*GOALS, _CERTIFICATES)


def ratios(
    path: Path,
    rounds: int,
    device: str,
    *,
    threads: int = 1,
    parts: Sequence[str] = PARTS,
    questions: int = QUESTIONS,
) -> list[Ratio]:
    """All ratios of computing time, reference / ours, each followed by the right answers, ours / reference.

    Args:
        path: the checkout.
        rounds: how often all questions are asked.
        device: whose clock is read, `cpu` or `cuda`.
        threads: of each process.
        parts: which of `PARTS`.
        questions: how many of the demo questions are asked.

    Raises:
        subprocess.CalledProcessError: a process failed; it has said why on standard error.
    """
    given = {"--rounds": rounds, "--questions": questions, "--threads": threads, "--device": device}
    options = [str(word) for option in given.items() for word in option]
    found: list[Ratio] = []
    for pair in PAIRS.values():
        if pair.part in parts:
            measured = figures("-m", "benchmarks.in_turn", str(path.resolve()), pair.name, *options)
            found += judged(pair, Measured(**measured))
    return found


def judged(pair: Pair, measured: Measured) -> Iterator[Ratio]:
    """The ratio of computing time, and how many answers are right, and certified, by ours over the reference."""
    yield Ratio(f"{pair.name}: reference / ours", tuple(measured.ratios), {"cpu": (">=", pair.goal)})
    for what, found in (("right", measured.right), ("certified", measured.certified)):
        paper, ours = found["reference"], found["ours"]
        if paper or ours:
            note = f"ours {ours}, reference {paper}, of {measured.questions} questions"
            print(f"  {pair.name}: {what}: {note}", file=sys.stderr, flush=True)
            value = ours / paper if paper else float(ours)
            target: dict[str, Target] = {"cpu": (">=", 1.0)} if what == "right" else {}
            yield Ratio(f"{pair.name}: {what}, ours / reference", (value,), target, note)
