"""Keyword aggregation next to vanilla RAG: its isolated replies and its final answer.

By default the model is asked for a final answer only where several kept words have to be put together; the replies
alone are what the other questions cost.
"""

from __future__ import annotations

from benchmarks.inference import Bench, ratio_of, vanilla
from benchmarks.results import Ratio, Target
from robustrag_integrations import LocalModel

_TOKENS = 20


def ratios(bench: Bench) -> list[Ratio]:
    """Measure with T=20 for the isolated and for the final answer."""
    scene, prompts = bench.scene, bench.scene.prompts()
    assert prompts.keyword is not None  # noqa: S101
    plain, warm = bench.model(tokens=_TOKENS, share=False), bench.model(tokens=_TOKENS)
    cold = bench.model(tokens=_TOKENS, keep=False)
    isolated = [prompts.isolated.render(context=p, query=scene.question()) for p in scene.passages()]
    final = prompts.keyword.render(keywords="w1, w2, w3", query=scene.question())

    def answer(model: LocalModel) -> None:
        model.generate(isolated, "isolated")
        model.generate([final], "final")

    seconds = bench.time(
        {
            "vanilla cold": vanilla(plain, scene, prompts),
            "vanilla warm": vanilla(warm, scene, prompts),
            "ours cold": lambda: answer(cold),
            "ours warm": lambda: answer(warm),
            "replies cold": lambda: cold.generate(isolated, "isolated"),
            "replies warm": lambda: warm.generate(isolated, "isolated"),
        }
    )
    name = f"keyword T={_TOKENS}:"
    goal: dict[str, Target] = {"cuda": ("<=", 1.2)}
    return [
        ratio_of(seconds, f"{name} cold / vanilla cold", "ours cold", "vanilla cold"),
        ratio_of(seconds, f"{name} warm / vanilla cold", "ours warm", "vanilla cold", {"cuda": ("<=", 1.9)}),
        ratio_of(seconds, f"{name} warm / vanilla warm", "ours warm", "vanilla warm"),
        ratio_of(seconds, f"{name} replies alone, cold / vanilla cold", "replies cold", "vanilla cold", goal),
        ratio_of(seconds, f"{name} replies alone, warm / vanilla cold", "replies warm", "vanilla cold", goal),
    ]
