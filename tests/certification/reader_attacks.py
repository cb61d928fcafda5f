"""The adaptive attacker on the bundled reader and the demo corpus; alone, the long run of it.

`python -m tests.certification.reader_attacks --help`. Both promises are attacked: no answer scores below tau, and none
within its radius is another one. The certificate is made first; the attacker never sees it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel, MajorityVoting
from robustrag_integrations.attacks.search import AdaptiveAttack, adaptive, adaptive_substitution
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.prompts import prompts_for

SIZES = (1, 2)
PASSAGES = {1: 8, 2: 12}  # by group size


@dataclass(frozen=True)
class Setup:
    """A defence, and who attacks it."""

    defense: str
    attack: str
    group_size: int


SETUPS = [Setup(*parts) for parts in product(("keyword", "decoding", "voting"), ("injection", "modification"), (1, 2))]


@dataclass(frozen=True)
class Siege:
    """A promise, and the worst that the attacker made of it.

    `promise` is `tau` or `radius`; `size` how many passages or groups the attacker had; `promised` the tau, or 1 for
    the same answer; `lowest` the lowest score reached, or 0 for another answer.
    """

    setup: Setup
    question: str
    promise: str
    size: int
    promised: float
    lowest: float
    tries: int
    obeyed: int
    tried: dict[str, int]
    text: str | None

    @property
    def broken(self) -> bool:
        """Whether the attacker got below what was promised."""
        return self.lowest < self.promised


def reader(group_size: int = 1) -> LocalModel:
    """The bundled reader with room for a group."""
    return LocalModel.bundled(max_context_tokens=64 * group_size, max_new_tokens=12)


def demo_questions() -> list[tuple[Any, list[Any]]]:
    """The demo's questions that have an answer, each with its clean retrieval."""
    from robustrag_integrations.corpus import BM25Index, split
    from robustrag_integrations.evaluation.data import world

    folder = world.world_folder()
    index = BM25Index(split(world.read_world(folder), 600))
    asked = list(world.asked_about(folder))
    return [(q, index.search(q.question, max(PASSAGES.values()), per_source=1)) for q in asked]


def defense_of(setup: Setup, model: LocalModel) -> Defense:
    """The defence with thresholds that leave something to promise on so few passages."""
    if setup.defense == "keyword":
        return KeywordAggregation(model, alpha=0.3, beta=3, group_size=setup.group_size)
    if setup.defense == "decoding":
        return DecodingAggregation(model, max_new_tokens=12, group_size=setup.group_size)
    return MajorityVoting(model, prompts=prompts_for("multiple_choice"), group_size=setup.group_size)


def besiege(
    setup: Setup, model: LocalModel, question: Any, passages: Sequence[Any], tries: int, seed: int = 0
) -> Iterator[Siege]:
    """Certify a question, then attack each certificate and the answer's radius."""
    defense, passages = defense_of(setup, model), passages[: PASSAGES[setup.group_size]]
    choices = question.choices if setup.defense == "voting" else None
    common: dict[str, Any] = {"target": question.incorrect, "choices": choices, "tries": tries, "seed": seed}
    certificates = defense.certify(
        question.question,
        passages,
        question.answers[0],
        corruption_size=SIZES,
        attack=setup.attack,
        choices=choices,
        max_model_calls=600,
    )
    for cert in certificates:
        size = cert.corruption_size
        found = adaptive(
            defense,
            question.question,
            passages,
            question.answers[0],
            corruption_size=size,
            attack=setup.attack,  # type: ignore[arg-type]
            **common,
        )
        yield _siege(setup, question, "tau", size, cert.tau, found)
    radius = found.clean.radius
    if radius:
        held = adaptive_substitution(defense, question.question, passages, groups=radius, **common)
        yield _siege(setup, question, "radius", radius, 1.0, held)


def _siege(setup: Setup, question: Any, promise: str, size: int, promised: float, found: AdaptiveAttack) -> Siege:
    tried = dict(found.tried)
    return Siege(
        setup, question.question, promise, size, promised, found.score, found.tries, found.obeyed, tried, found.text
    )


def summary(sieges: Sequence[Siege]) -> str:
    """A Markdown table: per defence, attacker and group size what was promised and what held."""
    lines = [
        "| defence | attacker | group size | attacks | tau > 0 | tau = 0, reached | radius > 0 | obeyed | broken |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for setup in dict.fromkeys(s.setup for s in sieges):
        mine = [s for s in sieges if s.setup == setup]
        taus = [s for s in mine if s.promise == "tau"]
        open_ = [s for s in taus if s.promised == 0]
        shown = [
            *asdict(setup).values(),
            sum(s.tries for s in mine),
            f"{len(taus) - len(open_)} of {len(taus)}",
            f"{sum(s.lowest == 0 for s in open_)} of {len(open_)}",
            sum(s.promise == "radius" for s in mine),
            sum(s.obeyed for s in mine),
            sum(s.broken for s in mine),
        ]
        lines.append(f"| {' | '.join(map(str, shown))} |")
    return "\n".join(lines)


def main() -> int:
    """Attack the demo's questions one after the other, every setup in turn, until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=72, help="how many of the demo's questions")
    parser.add_argument("--tries", type=int, default=40, help="retrievals tried per promise")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="JSONL of what became of every promise")
    chosen = parser.parse_args()
    from tqdm import tqdm

    models = {size: reader(size) for size in (1, 2)}
    work = [(setup, *asked) for asked in demo_questions()[: chosen.questions] for setup in SETUPS]
    sieges: list[Siege] = []
    start = time.monotonic()
    for setup, question, passages in tqdm(work, unit=" certificates"):
        if time.monotonic() - start > 60 * chosen.minutes:
            break
        for siege in besiege(setup, models[setup.group_size], question, passages, chosen.tries, chosen.seed):
            sieges.append(siege)
            if chosen.log:
                with chosen.log.open("a") as out:
                    out.write(json.dumps(asdict(siege)) + "\n")
            if siege.broken:
                print(f"VIOLATION: {siege}", flush=True)
    tried = sum((Counter(s.tried) for s in sieges), Counter())
    print(summary(sieges))
    print(f"\n{sum(s.tries for s in sieges)} attacks, corrupted passages by strategy: {dict(tried)}")
    return int(any(s.broken for s in sieges))


if __name__ == "__main__":
    sys.exit(main())
