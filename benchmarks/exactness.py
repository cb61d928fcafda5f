"""Counts the benign rows that an attacker's passage changes by a bit: through its words, its length or its rank."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.inference import Bench
from benchmarks.results import Ratio
from robustrag_integrations import LocalModel

_SOURCES = 4


def ratios(bench: Bench) -> list[Ratio]:
    """Count over the first two steps and the abstention scores, in the precision of the bench's model."""
    scene = bench.scene.smaller(sources=_SOURCES)
    model, benign = bench.model(), scene.passages()
    attacks = {
        "nothing": "",
        "one word": "w1",
        "other words": scene.passages(seed=1)[0],
        "more than fits": " ".join(scene.passages(seed=2)),
    }
    before, moved = _rows(bench, model, [*benign, scene.passages(seed=3)[0]]), 0
    kept = [*range(_SOURCES), _SOURCES + 1]
    for name, attack in attacks.items():
        print(f"  the attacker says {name}", file=sys.stderr, flush=True)
        after = _rows(bench, model, [*benign, attack])
        moved += sum(not np.array_equal(before[row], after[row]) for row in kept)
    for rank in range(_SOURCES):
        print(f"  the attacker is at rank {rank + 1}", file=sys.stderr, flush=True)
        order = [*range(rank), _SOURCES, *range(rank, _SOURCES)]
        after = _rows(bench, model, [[*benign, scene.passages(seed=3)[0]][i] for i in order])
        moved += sum(not np.array_equal(before[old], after[new]) for new, old in enumerate([*order, _SOURCES + 1]))
    zero = {"cpu": ("<=", 0.0), "cuda": ("<=", 0.0)}
    said = f"isolation {model.numerics['isolation']}"
    return [Ratio("benign rows moved by content, length or rank", (float(moved),), zero, said)]


def _rows(bench: Bench, model: LocalModel, passages: Sequence[str]) -> list[np.ndarray]:
    """Return all outputs of the model, a row per passage and one for no retrieval."""
    prompts, query = bench.scene.prompts(), bench.scene.question()
    isolated = [prompts.isolated.render(context=p, query=query) for p in passages]
    session = model.open_session(isolated, prompts.no_retrieval.render(query=query), 4)
    first, second = session.opening.distributions, session.append(5)
    rows = [np.concatenate([a, b]) for a, b in zip(first.sources, second.sources, strict=True)]
    scored = [np.append(row, p) for row, p in zip(rows, session.opening.abstention, strict=True)]
    return [*scored, np.concatenate([first.no_retrieval, second.no_retrieval])]
