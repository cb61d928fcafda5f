"""How cost grows with the number of passages, their length, the length of answers, and the number of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.inference import Bench, decoding, vanilla
from benchmarks.timing import Case, summary
from benchmarks.workload import Scene
from robustrag_integrations import DecodingAggregation

_NAIVE_UP_TO = 20  # passages; beyond, naive isolation takes longer than it tells


def curves(bench: Bench, *, quick: bool) -> list[dict[str, Any]]:
    """One curve per variant and dimension: `over`, `variant`, `x`, `seconds` (medians, warm) and their extremes."""
    short = replace(bench, repeats=1) if quick else bench
    return [
        *_curves(short, "passages k", (1, 10) if quick else (1, 5, 10, 20, 50), lambda k: (Scene(groups=k), 1, 10)),
        *_curves(short, "tokens per passage", (50, 100) if quick else (50, 100, 200, 400), _of_length),
        *_curves(short, "new tokens T", (1, 10) if quick else (1, 10, 50, 100), lambda t: (Scene(), 1, t)),
        *_curves(short, "groups m of 20 passages", (4, 20) if quick else (2, 4, 10, 20), _grouped),
    ]


_Setting = tuple[Scene, int, int]  # scene, passages per group, new tokens


def _of_length(tokens: int) -> _Setting:
    return Scene(passage=tokens), 1, 10


def _grouped(groups: int) -> _Setting:
    return Scene(groups=20), 20 // groups, 10


def _curves(bench: Bench, over: str, points: Sequence[int], setting: Callable[[int], _Setting]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for x in points:
        scene, group_size, tokens = setting(x)
        wide = replace(bench, scene=scene.smaller(passage=scene.passage * group_size), tokens=tokens)
        cases = {
            "vanilla cold": vanilla(wide.model(tokens=tokens, share=False), scene, scene.prompts()),
            "ours warm": _grouped_decoding(wide, scene, group_size, tokens, share=True),
        }
        if scene.groups <= _NAIVE_UP_TO:
            cases["naive"] = _grouped_decoding(wide, scene, group_size, tokens, share=False)
        for variant, seconds in bench.time(cases).items():
            curve = found.setdefault(
                variant, {"over": over, "variant": variant, "x": [], "seconds": [], "extremes": []}
            )
            middle = summary(seconds)
            curve["x"].append(x)
            curve["seconds"].append(middle["median"])
            curve["extremes"].append([middle["min"], middle["max"]])
    return list(found.values())


def _grouped_decoding(bench: Bench, scene: Scene, group_size: int, tokens: int, *, share: bool) -> Case:
    model = bench.model(tokens=tokens, share=share)
    if group_size == 1:
        return decoding(model, scene, scene.prompts(), tokens)
    prompts = scene.prompts()
    defense = DecodingAggregation(model, max_new_tokens=tokens, prompts=prompts, stop=(), group_size=group_size)
    return Case(lambda: defense.answer(scene.question(), scene.passages()))
