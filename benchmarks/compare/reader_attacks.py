"""The adaptive attacker on the bundled reader and the demo corpus; alone, the long run of it.

`python -m benchmarks.compare.reader_attacks [TRIES]`. Both promises are attacked: no answer scores below tau, and none
within its radius is another one. The certificate is made first; the attacker never sees it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.compare.search import AdaptiveAttack, adaptive, adaptive_substitution
from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel, MajorityVoting
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.text.prompts import prompts_for

SIZES = (1, 2)
PASSAGES = {1: 8, 2: 12}  # by source size


@dataclass(frozen=True)
class Setup:
    """A defence, and who attacks it."""

    method: str
    attack: str
    passages_per_source: int


SETUPS = [Setup(*parts) for parts in product(("keyword", "decoding", "voting"), ("injection", "modification"), (1, 2))]


@dataclass(frozen=True)
class Siege:
    """A promise, and the worst that the attacker made of it.

    `promise` is `tau` or `radius`; `size` how many passages or sources the attacker had; `promised` the tau, or 1 for
    the same answer, of which another one scores 0.
    """

    setup: Setup
    promise: str
    size: int
    promised: float
    found: AdaptiveAttack

    @property
    def broken(self) -> bool:
        """Whether the attacker got below what was promised."""
        return self.found.score < self.promised


def reader(passages_per_source: int = 1) -> LocalModel:
    """The bundled reader with room for a source."""
    return LocalModel.bundled(max_context_tokens=64 * passages_per_source, max_new_tokens=12)


def demo_questions() -> list[tuple[Any, list[Any]]]:
    """The demo's questions that have an answer, each with its clean retrieval."""
    from robustrag_integrations.evaluation.data import world

    index, asked = world.world_index(), world.world_questions()
    return [(q, index.search(q.question, max(PASSAGES.values()), per_source=1)) for q in asked]


def defense_of(setup: Setup, model: LocalModel) -> Defense:
    """The defence with thresholds that leave something to promise on so few passages."""
    if setup.method == "keyword":
        return KeywordAggregation(model, alpha=0.3, beta=3, passages_per_source=setup.passages_per_source)
    if setup.method == "decoding":
        return DecodingAggregation(model, max_new_tokens=12, passages_per_source=setup.passages_per_source)
    return MajorityVoting(model, prompts=prompts_for("multiple_choice"), passages_per_source=setup.passages_per_source)


def besiege(
    setup: Setup, model: LocalModel, question: Any, passages: Sequence[Any], tries: int, seed: int = 0
) -> Iterator[Siege]:
    """Certify a question, then attack each certificate and the answer's radius."""
    defense, passages = defense_of(setup, model), passages[: PASSAGES[setup.passages_per_source]]
    choices = question.choices if setup.method == "voting" else None
    asked: Any = (defense, question.question, passages)
    common: dict[str, Any] = {"target": question.incorrect, "choices": choices, "tries": tries, "seed": seed}
    kind: dict[str, Any] = {"attack": setup.attack}
    limits: Any = {"corruption_size": SIZES, "choices": choices, "max_model_calls": 600}
    for cert in defense.certify(question.question, passages, question.answers[0], **limits, **kind):
        size = cert.corruption_size
        found = adaptive(*asked, question.answers[0], corruption_size=size, **kind, **common)
        yield Siege(setup, "tau", size, cert.tau, found)
    if radius := found.clean.radius:
        yield Siege(setup, "radius", radius, 1.0, adaptive_substitution(*asked, sources=radius, **common))


def summary(sieges: Sequence[Siege]) -> str:
    """A line per setup: what was promised, and what held."""
    lines = []
    for setup in dict.fromkeys(s.setup for s in sieges):
        mine = [s for s in sieges if s.setup == setup]
        tries, obeyed = (sum(getattr(s.found, name) for s in mine) for name in ("tries", "obeyed"))
        promised, broken = sum(s.promised > 0 for s in mine), sum(s.broken for s in mine)
        lines.append(f"{setup}: {tries} attacks, {promised} promises, {obeyed} obeyed, {broken} broken")
    return "\n".join(lines)


def main() -> int:
    """Attack all of the demo's questions one after the other, every setup in turn."""
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    models = {size: reader(size) for size in (1, 2)}
    sieges: list[Siege] = []
    for question, passages in demo_questions():
        for setup in SETUPS:
            sieges += besiege(setup, models[setup.passages_per_source], question, passages, tries)
            if sieges[-1].broken:
                print(f"VIOLATION: {sieges[-1]}", flush=True)
        print(summary(sieges), flush=True)
    return int(any(s.broken for s in sieges))


if __name__ == "__main__":
    sys.exit(main())
