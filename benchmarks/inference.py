"""Benchmarks of answers: prefill and decoding next to vanilla RAG, cold and warm, and next to naive isolation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import Ratio, Target
from benchmarks.timing import Clock, Work, interleave, per_round
from benchmarks.workload import Scene
from robustrag_integrations import DecodingAggregation, LocalModel
from robustrag_integrations.text.prompts import PromptSet

Seconds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Bench:
    """The subject of the measurements, and their number.

    Attributes:
        network: a model, with random weights where no folder is given.
        tokenizer: its tokenizer.
        scene: the question.
        clock: how time is read.
        repeats: rounds per measurement.
        tokens: T, for the short decoding runs.
        long_tokens: T, for the long ones; 0 leaves them out.
        folder: the model's; None for random weights.
        data: the questions that a real model is asked.
        paper: a checkout of the paper's code; None leaves the comparison out.
    """

    network: Any
    tokenizer: Any
    scene: Scene
    clock: Clock
    repeats: int
    tokens: int = 10
    long_tokens: int = 200
    folder: Path | None = None
    data: str = "demo"
    paper: Path | None = None

    def model(
        self, *, tokens: int | None = None, share: bool = True, keep: bool = True, chat: bool | None = None
    ) -> LocalModel:
        """Return a `LocalModel` on the network; one that keeps nothing between calls is always cold."""
        return LocalModel(
            self.network,
            self.tokenizer,
            max_context_tokens=self.scene.passage,  # sources are as wide as the scene's passages
            max_new_tokens=tokens or self.tokens,
            stop=() if chat is None else None,
            chat=chat,
            share_prefixes=share,
            prefix_cache_bytes=2**32 if keep else 0,
        )

    def time(self, cases: Mapping[str, Work]) -> dict[str, list[float]]:
        """Return the seconds per case and round."""
        return interleave(cases, self.repeats, self.clock)


def ratios(bench: Bench) -> list[Ratio]:
    """Return all ratios of this module."""
    found = [_prefill_tokens(bench), *_prefill(bench), *_decoding(bench)]
    return found + (_long_decoding(bench) if bench.long_tokens else [])


def opening(model: LocalModel, scene: Scene, prompts: PromptSet, tokens: int) -> Work:
    """Run the prefill of decoding aggregation: read all sources, and score their abstention."""
    isolated = [prompts.isolated.render(context=p, query=scene.question()) for p in scene.passages()]
    alone = prompts.no_retrieval.render(query=scene.question())
    return lambda: model.open_session(isolated, alone, tokens)


def decoding(model: LocalModel, scene: Scene, prompts: PromptSet, tokens: int) -> Work:
    """Run a whole answer of decoding aggregation."""
    defense = DecodingAggregation(model, max_new_tokens=tokens, prompts=prompts, stop=())
    return lambda: defense.answer(scene.question(), scene.passages())


def vanilla(model: LocalModel, scene: Scene, prompts: PromptSet) -> Work:
    """Run one prompt with all passages, for as many tokens as the model is set to."""
    prompt = prompts.isolated.render(context=" ".join(scene.passages()), query=scene.question())
    return lambda: model.generate([prompt], "final")


def _prefill_tokens(bench: Bench) -> Ratio:
    """Count the tokens that a cold question feeds to the model before the first token, padding included.

    What the isolation probe reads on a model's first question is not in it.
    """
    counts = {}
    scene, prompts = bench.scene, bench.scene.prompts()
    for name, share in (("ours", True), ("naive", False)):
        model, fed = bench.model(share=share, keep=False), 0

        def count(module: Any, args: Any, kwargs: Any) -> None:
            nonlocal fed
            fed += kwargs["input_ids"].numel()

        assert share is (model.why_not_shared is None)  # noqa: S101
        opening(model, scene, prompts, bench.tokens)()
        hook = bench.network.register_forward_pre_hook(count, with_kwargs=True)
        opening(model, scene, prompts, bench.tokens)()
        hook.remove()
        counts[name] = fed
    note = f"{counts['ours']} against {counts['naive']} tokens, padding and abstention strings included"
    return Ratio("prefill tokens, ours / naive", (counts["ours"] / counts["naive"],), _both("<=", 0.34, 0.34), note)


def _prefill(bench: Bench) -> list[Ratio]:
    scene, prompts, first = bench.scene, bench.scene.prompts(), bench.scene.prompts(query_first=True)
    ours, plain, kept = bench.model(), bench.model(tokens=1, share=False), bench.model(tokens=1)
    naive, cold = bench.model(share=False), bench.model(keep=False)
    seconds = bench.time(
        {
            "vanilla cold": vanilla(plain, scene, prompts),
            "vanilla warm": vanilla(kept, scene, prompts),
            "ours cold": opening(cold, scene, prompts, bench.tokens),
            "ours warm": opening(ours, scene, prompts, bench.tokens),
            "query first": opening(ours, scene, first, bench.tokens),
            "naive": opening(naive, scene, prompts, bench.tokens),
        }
    )
    return [
        ratio_of(seconds, "prefill: ours cold / vanilla cold", "ours cold", "vanilla cold", _both("<=", 1.35, 1.35)),
        ratio_of(seconds, "prefill: ours warm / vanilla cold", "ours warm", "vanilla cold", _both("<=", 1.10, 1.05)),
        ratio_of(seconds, "prefill: ours warm / vanilla warm", "ours warm", "vanilla warm"),
        ratio_of(seconds, "prefill: vanilla warm / vanilla cold", "vanilla warm", "vanilla cold"),
        ratio_of(seconds, "prefill: query first, same question again / vanilla cold", "query first", "vanilla cold"),
        ratio_of(seconds, "prefill: naive / ours warm", "naive", "ours warm"),
    ]


def _decoding(bench: Bench) -> list[Ratio]:
    scene, prompts, t = bench.scene, bench.scene.prompts(), bench.tokens
    ours, plain, kept, naive = bench.model(), bench.model(share=False), bench.model(), bench.model(share=False)
    cold = bench.model(keep=False)
    seconds = bench.time(
        {
            "vanilla cold": vanilla(plain, scene, prompts),
            "vanilla warm": vanilla(kept, scene, prompts),
            "ours cold": decoding(cold, scene, prompts, t),
            "ours warm": decoding(ours, scene, prompts, t),
            "naive": decoding(naive, scene, prompts, t),
        }
    )
    name = f"decoding T={t}:"
    return [
        ratio_of(seconds, f"{name} ours cold / vanilla cold", "ours cold", "vanilla cold", _both("<=", 1.5, 1.2)),
        ratio_of(seconds, f"{name} ours warm / vanilla cold", "ours warm", "vanilla cold", _both("<=", 1.2, 1.05)),
        ratio_of(seconds, f"{name} ours warm / vanilla warm", "ours warm", "vanilla warm"),
        ratio_of(seconds, f"{name} naive / ours cold", "naive", "ours cold", _both(">=", 2.8, 2.0)),
        ratio_of(seconds, f"{name} naive / ours warm", "naive", "ours warm"),
    ]


def _long_decoding(bench: Bench) -> list[Ratio]:
    scene, prompts, t = bench.scene, bench.scene.prompts(), bench.long_tokens
    ours, plain = bench.model(tokens=t), bench.model(tokens=t, share=False)
    seconds = bench.time(
        {"vanilla cold": vanilla(plain, scene, prompts), "ours warm": decoding(ours, scene, prompts, t)}
    )
    target: dict[str, Target] = {"cuda": ("<=", 1.07)}
    return [ratio_of(seconds, f"decoding T={t}: ours warm / vanilla cold", "ours warm", "vanilla cold", target)]


def ratio_of(seconds: Seconds, name: str, one: str, other: str, targets: dict[str, Target] | None = None) -> Ratio:
    """Return the ratio of two cases, round by round."""
    return Ratio(name, tuple(per_round(seconds, one, other)), targets or {})


def _both(sign: str, cpu: float, cuda: float) -> dict[str, Target]:
    return {"cpu": (sign, cpu), "cuda": (sign, cuda)}
