"""Keyword aggregation next to vanilla RAG: its isolated replies and its final answer."""

from __future__ import annotations

from benchmarks.inference import Bench, ratio_of, vanilla
from benchmarks.results import Ratio

_TOKENS = 20


def ratios(bench: Bench) -> list[Ratio]:
    """Measure with T=20 for the isolated and for the final answer."""
    scene, prompts = bench.scene, bench.scene.prompts()
    assert prompts.keyword is not None  # noqa: S101
    cold, warm = bench.model(tokens=_TOKENS, share=False), bench.model(tokens=_TOKENS)
    isolated = [prompts.isolated.render(context=p, query=scene.question()) for p in scene.passages()]
    final = prompts.keyword.render(keywords="w1, w2, w3", query=scene.question())

    def answer() -> None:
        warm.generate(isolated, "isolated")
        warm.generate([final], "final")

    seconds = bench.time(
        {
            "vanilla cold": vanilla(cold, scene, prompts),
            "vanilla warm": vanilla(warm, scene, prompts),
            "ours": answer,
        }
    )
    name = f"keyword T={_TOKENS}:"
    return [
        ratio_of(seconds, f"{name} warm / vanilla cold", "ours", "vanilla cold", {"cuda": ("<=", 1.9)}),
        ratio_of(seconds, f"{name} warm / vanilla warm", "ours", "vanilla warm"),
    ]
