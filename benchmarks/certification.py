"""Benchmarks of certificates: decoding trees level by level, five corruption sizes in one walk, batched keyword finals.

The random model is made sure of itself for these runs (its embeddings and last layer are scaled up, and down again), so
that sources agree and answers repeat as those of a trained model do; an untrained one has ties everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch

from benchmarks.inference import Bench
from benchmarks.results import Ratio, Target
from benchmarks.timing import per_round
from benchmarks.workload import Scene, random_llama
from robustrag_integrations import DecodingAggregation, LocalModel
from robustrag_integrations.certification import Certification
from robustrag_integrations.defenses.decoding.certificate import Branch, Grow, OpenTrees
from robustrag_integrations.defenses.decoding.certifier import DecodingCertifier
from robustrag_integrations.models.base import Distributions, Response
from robustrag_integrations.text.prompts import Prompt, PromptTemplate

_DEPTH, _FORKS = 16, 5  # tokens per path, and forkings on each: 32 leaves
_AT_ONCE = 16  # prefixes per request, as certification does
_SIZES = (1, 2, 3, 4, 5)
_NAIVE = 8  # final prompts that are timed one by one

Score = Callable[[Sequence[tuple[int, ...]]], Sequence[Distributions]]


def ratios(bench: Bench) -> list[Ratio]:
    """Return all ratios of certification, in float32: half precision packs nothing, as noise would decide tokens."""
    if next(bench.network.parameters()).dtype != torch.float32:
        bench = replace(bench, network=random_llama("125m", bench.clock.device))
    with _sure_of_itself(bench):
        return [
            *_tree(bench, bench.model()),
            *_sizes(bench),
            *_keyword(bench, query_first=False),
            *_keyword(bench, query_first=True),
        ]


@contextmanager
def _sure_of_itself(bench: Bench) -> Iterator[None]:
    """Make the model confident while the block runs, by powers of two, which divide out exactly."""
    weights = (bench.network.get_input_embeddings().weight, bench.network.get_output_embeddings().weight)
    for weight, factor in zip(weights, (64.0, 32.0), strict=True):
        weight.data.mul_(factor)
    yield
    for weight, factor in zip(weights, (64.0, 32.0), strict=True):
        weight.data.div_(factor)


def _tree(bench: Bench, model: LocalModel) -> list[Ratio]:
    """Walk a tree of fixed shape, so that only the way of walking it differs."""
    scene = bench.scene
    prompts = scene.prompts()
    isolated = [prompts.isolated.render(context=p, query=scene.question()) for p in scene.passages()]
    none = prompts.no_retrieval.render(query=scene.question())
    nodes = sum(len(level) for level in _shape())

    def depth_first() -> None:
        session = model.open_session(isolated, none, _DEPTH)
        stack = [(session, session.opening.distributions, (), 0)]
        while stack:
            here, scored, prefix, forks = stack.pop()
            children = _children(scored, prefix, forks) if len(prefix) + 1 < _DEPTH else []
            for (child, used), twin in zip(children, [here, *(here.fork() for _ in children[1:])], strict=False):
                stack.append((twin, twin.append(child[-1]), child, used))

    def by_level() -> None:
        certifier = DecodingCertifier(model, _never_zero, ["w1"])
        [opening] = certifier(OpenTrees((tuple(isolated),), none, _DEPTH))

        def score(level: Sequence[tuple[int, ...]]) -> Sequence[Distributions]:
            return certifier(Grow(tuple(Branch(0, prefix, len(level) == 1) for prefix in level)))

        _walk(score, opening.distributions)

    seconds = bench.time({"depth first": depth_first, "by level": by_level})
    values = tuple(per_round(seconds, "depth first", "by level"))
    note = f"{_DEPTH} tokens deep, {len(_shape()[-1])} leaves, at most {_AT_ONCE} prefixes per forward pass"
    target: dict[str, Target] = {"cpu": (">=", 1.8), "cuda": (">=", 10)}
    return [Ratio(f"tree of {nodes} prefixes: depth first / by level", values, target, note)]


def _shape() -> list[list[int]]:
    """Return, per level, the number of forkings above each node."""
    levels, level = [], [0]
    for depth in range(_DEPTH - 1):
        level = [used for forks in level for used in ([forks + 1] * 2 if _forks(depth, forks) else [forks])]
        levels.append(level)
    return levels


def _forks(depth: int, forks: int) -> bool:
    return forks < _FORKS and depth % 3 == 1


def _children(scored: Distributions, prefix: tuple[int, ...], forks: int) -> list[tuple[tuple[int, ...], int]]:
    best, next_best = (int(t) for t in np.argsort(scored.sources.sum(axis=0))[-1:-3:-1])
    if _forks(len(prefix), forks):
        return [((*prefix, best), forks + 1), ((*prefix, next_best), forks + 1)]
    return [((*prefix, best), forks)]


def _walk(score: Score, root: Distributions) -> None:
    level = _children(root, (), 0)
    while level and len(level[0][0]) < _DEPTH:
        following = []
        for start in range(0, len(level), _AT_ONCE):
            part = level[start : start + _AT_ONCE]
            for scored, (prefix, forks) in zip(score([prefix for prefix, _ in part]), part, strict=True):
                following += _children(scored, prefix, forks)
        level = following


def _never_zero(response: str, references: Sequence[str]) -> float:
    """A metric that no response fails, so that nothing stops early."""
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


def _keyword(bench: Bench, *, query_first: bool) -> list[Ratio]:
    """Time the final prompts of all subsets of six contested keywords next to four that are always retained."""
    model, plain = bench.model(), bench.model(share=False)
    prompts = final_prompts(bench.scene, query_first=query_first)
    replies: dict[str, list[Response]] = {}

    def alone(asked: LocalModel, part: Sequence[Prompt], name: str) -> Callable[[], None]:
        def work() -> None:
            replies[name] = [reply for prompt in part for reply in asked.generate([prompt], "final")]

        return work

    def packed() -> None:
        finals = model.finals()
        replies["packed"] = [*finals.answer(prompts[:2]), *finals.answer(prompts[2:34]), *finals.answer(prompts[34:])]

    some = prompts[:: len(prompts) // _NAIVE][:_NAIVE]
    seconds = bench.time(
        {
            "naive": alone(plain, some, "naive"),
            "one by one": alone(model, some, "one by one"),
            "packed": packed,
        }
    )
    where = {p.text: replies["packed"][i].text for i, p in enumerate(prompts)}
    for name in ("naive", "one by one"):
        if [where[p.text] for p in some] != [r.text for r in replies[name]]:
            raise RuntimeError(f"packed answers are not those of asking alone ({name})")
    share = len(prompts) / len(some)
    order = "query first" if query_first else "paper's order"
    bound = 15.0 if query_first else 5.0
    note = f"{len(prompts)} keyword sets; {len(some)} of them timed alone; {len(set(where.values()))} different answers"
    target: dict[str, Target] = {"cpu": (">=", bound), "cuda": (">=", bound)}
    naive = [share * ratio for ratio in per_round(seconds, "naive", "packed")]
    shared = [share * ratio for ratio in per_round(seconds, "one by one", "packed")]
    return [
        Ratio(f"keyword certification, {order}: naive / ours", tuple(naive), target, note),
        Ratio(f"keyword certification, {order}: one by one, prefix shared / ours", tuple(shared), {}, note),
    ]


def final_prompts(scene: Scene, *, query_first: bool) -> list[Prompt]:
    """Return 64 final prompts: four keywords always, six now and then, three tokens each."""
    start = scene.prompts().isolated.instruction
    body = "{query} {keywords} w1 w2 w3 w4 w5" if query_first else "{keywords} {query}"
    template = PromptTemplate(start, body, ("keywords", "query"))
    keywords = [scene.smaller(query=3).question(500 + i) for i in range(10)]
    always, contested = keywords[::3], [k for i, k in enumerate(keywords) if i % 3]
    kept = [sorted((*always, *chosen)) for n in range(len(contested) + 1) for chosen in combinations(contested, n)]
    kept = [kept[0], kept[-1], *kept[1:-1]]  # nothing and everything first, as certification does
    return [template.render(keywords=" ".join(k), query=scene.question()) for k in kept]
