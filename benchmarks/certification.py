"""Benchmarks of certificates: five corruption sizes in one walk over a decoding tree.

The random model is made sure of itself for these runs (its embeddings and last layer are scaled up, and down again), so
that sources agree and answers repeat as those of a trained model do; an untrained one has ties everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from benchmarks.inference import Bench
from benchmarks.results import Ratio, Target
from benchmarks.timing import per_round
from benchmarks.workload import random_llama
from robustrag_integrations import DecodingAggregation
from robustrag_integrations.certification.result import Certification

_SIZES = (1, 2, 3, 4, 5)


def ratios(bench: Bench) -> list[Ratio]:
    """Return all ratios of certification, in float32."""
    if next(bench.network.parameters()).dtype != torch.float32:
        bench = replace(bench, network=random_llama("125m", bench.clock.device))
    with _sure_of_itself(bench):
        return _sizes(bench)


@contextmanager
def _sure_of_itself(bench: Bench) -> Iterator[None]:
    """Make the model confident while the block runs, by powers of two, which divide out exactly."""
    weights = (bench.network.get_input_embeddings().weight, bench.network.get_output_embeddings().weight)
    for weight, factor in zip(weights, (64.0, 32.0), strict=True):
        weight.data.mul_(factor)
    yield
    for weight, factor in zip(weights, (64.0, 32.0), strict=True):
        weight.data.div_(factor)


def _never_zero(response: str, references: Sequence[str]) -> float:
    return 1.0


def _sizes(bench: Bench) -> list[Ratio]:
    scene = bench.scene.smaller(sources=12)
    defense = DecodingAggregation(bench.model(), prompts=scene.prompts(), max_new_tokens=bench.tokens, stop=())

    def certified(*sizes: int) -> tuple[Certification, ...]:
        return defense.certify(scene.question(), scene.passages(), "w1", corruption_size=sizes, metric=_never_zero)

    found = certified(*_SIZES)
    seconds = bench.time(
        {
            "five runs": lambda: [certified(size) for size in _SIZES],
            "one run": lambda: certified(*_SIZES),
        }
    )
    proven = sum(c.tau > 0 for c in found)
    note = f"corruption sizes 1 to 5 of 12 passages, eta = 0, T = {bench.tokens}; {proven} of 5 proven"
    target: dict[str, Target] = {"cpu": (">=", 4), "cuda": (">=", 4)}
    values = tuple(per_round(seconds, "five runs", "one run"))
    return [Ratio("five corruption sizes: five runs / one", values, target, note)]
