"""Keyword aggregation next to vanilla RAG: decoding its final answer plainly, and verifying it from drafts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.inference import Bench, ratio_of, vanilla
from benchmarks.results import Ratio
from benchmarks.timing import Case
from robustrag_integrations import LocalModel
from robustrag_integrations.models.base import Response
from robustrag_integrations.prompts import Prompt

_TOKENS = 20
_TRIES = 5  # questions, until one has an answer without a token in doubt


@dataclass(frozen=True)
class _Calls:
    """The two calls of keyword aggregation."""

    model: LocalModel
    isolated: tuple[Prompt, ...]
    final: Prompt

    def run(self) -> Response:
        self.model.generate(self.isolated, "isolated")
        return self.model.generate([self.final], "final")[0]


def ratios(bench: Bench) -> list[Ratio]:
    """T=20 for the isolated and for the final answer.

    The random model's isolated answers are nothing like its final one, as a trained model's are. So the final answer
    itself is among the drafts: what is measured is the cost of an answer that some group has given.
    """
    scene, prompts = bench.scene, bench.scene.prompts()
    plain, passes = _calls(bench)
    drafted = replace(plain, final=replace(plain.final, drafts=(plain.run().text or "",)))
    cold, warm = bench.model(tokens=_TOKENS, share=False), bench.model(tokens=_TOKENS)
    seconds = bench.time(
        {
            "vanilla cold": vanilla(cold, scene, prompts),
            "vanilla warm": vanilla(warm, scene, prompts),
            "plain": Case(plain.run),
            "drafts": Case(drafted.run),
        }
    )
    note = f"the final answer took {passes} forward passes with its draft"
    name = f"keyword T={_TOKENS}:"
    return [
        ratio_of(seconds, f"{name} plain, warm / vanilla cold", "plain", "vanilla cold", {"cuda": ("<=", 1.9)}),
        ratio_of(seconds, f"{name} drafts, warm / vanilla cold", "drafts", "vanilla cold", {"cuda": ("<=", 1.2)}, note),
        ratio_of(seconds, f"{name} plain, warm / vanilla warm", "plain", "vanilla warm"),
        ratio_of(seconds, f"{name} drafts, warm / vanilla warm", "drafts", "vanilla warm", note=note),
    ]


def _calls(bench: Bench) -> tuple[_Calls, int]:
    """The calls of a question, one whose answer is clear if there is one, and the passes that a draft leaves."""
    scene, prompts = bench.scene, bench.scene.prompts()
    assert prompts.keyword is not None  # noqa: S101
    found: list[tuple[int, int, _Calls]] = []
    for seed in range(_TRIES):
        model, query = bench.model(tokens=_TOKENS), scene.question(seed)
        isolated = tuple(prompts.isolated.render(context=p, query=query) for p in scene.passages(seed))
        final = prompts.keyword.render(keywords="w1, w2, w3", query=query)
        [answer] = model.generate([final], "final")
        passes = _passes(bench, model, replace(final, drafts=(answer.text or "",)))
        found.append((passes, seed, _Calls(model, isolated, final)))
        if passes == 1:
            break
    passes, _, calls = min(found, key=lambda item: item[:2])
    return calls, passes


def _passes(bench: Bench, model: LocalModel, prompt: Prompt) -> int:
    """How many forward passes a final answer takes."""
    count: list[int] = []
    hook = bench.network.register_forward_pre_hook(lambda module, args: count.append(1))
    model.generate([prompt], "final")
    hook.remove()
    return len(count)
