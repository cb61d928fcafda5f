"""What a question asks for, method by method, and what that comes to in a day."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, quantiles
from typing import Any

from benchmarks.scale.world import API_CACHE, Scene, Simulated
from robustrag_integrations import RobustAnswer
from robustrag_integrations.defenses.registry import METHODS, VANILLA
from robustrag_integrations.passages import Passage
from robustrag_integrations.prompts import prompts_for
from robustrag_integrations.usage import Prices, Usage, together

A_DAY = 10_000_000  # questions
PRICES = Prices(input=0.15, output=0.60, cached_input=0.075)  # per million tokens, as those of a small hosted model


@dataclass(frozen=True)
class Way:
    """A way to answer: a method with settings.

    Attributes:
        title: in tables.
        method: its name in the registry; None for vanilla RAG.
        settings: what its class takes.
        task: what kind of answer is asked for.
    """

    title: str
    method: str | None
    settings: Callable[[], Mapping[str, Any]] = dict
    task: str = "short_answer"


def _shown(count: int, **more: Any) -> Callable[[], Mapping[str, Any]]:
    return lambda: {"prompts": prompts_for("short_answer", exemplars=count), **more}


WAYS = (
    Way("vanilla", None),
    Way("keyword", "keyword"),
    Way("keyword, four worked examples", "keyword", _shown(4, prime=True)),
    Way("keyword, groups of 2", "keyword", lambda: {"group_size": 2}),
    Way("keyword, groups of 5", "keyword", lambda: {"group_size": 5}),
    Way("voting", "voting", task="multiple_choice"),
    Way("consensus", "consensus"),
    Way("consensus, early", "consensus", lambda: {"stop_when_decided": True}),
    Way("consensus, early, radius >= 1", "consensus", lambda: {"stop_when_decided": True, "min_radius": 1}),
    Way("consensus, early, waves of 4", "consensus", lambda: {"stop_when_decided": True, "wave_size": 4}),
)


@dataclass(frozen=True)
class Demand:
    """Means of one way, per question.

    Attributes:
        title: of the way.
        calls, rounds: how many.
        usage: tokens of the calls.
        radius: mean, of answers.
        answered: the share that is no abstention.
        times: how long a user waits, in median calls: one number per question.
        busy: how long all calls together occupy the server, in median calls.
        decided_after: how many replies each question waited for.
        report: bytes of an answer's report as JSON.
    """

    title: str
    calls: float
    rounds: float
    usage: tuple[float, float, float]
    radius: float
    answered: float
    times: tuple[float, ...]
    busy: float
    decided_after: tuple[int, ...]
    report: float

    def cost(self, prices: Prices = PRICES, questions: int = A_DAY) -> float:
        """What so many questions cost."""
        prompt, cached, completion = (round(tokens * 1000) for tokens in self.usage)
        return (prices.of(Usage(prompt=prompt, cached=cached, completion=completion)) or 0.0) * questions / 1000

    def percentile(self, share: int) -> float:
        """Of the times."""
        return quantiles(self.times, n=100, method="inclusive")[share - 1]


def demand(way: Way, questions: int, scene: Scene | None = None, *, cache_from: int = API_CACHE) -> Demand:
    """Ask so many questions, each of ten sources, and say what that took."""
    scene = scene or Scene()
    model = Simulated(scene, cache_from)
    method = VANILLA if way.method is None else METHODS[way.method]
    settings = way.settings()
    task = {} if "prompts" in settings else {"task": way.task}
    defense: Any = method.build(model, **task, **settings)
    answers, seen = [], []
    for number in range(questions):
        model.begin(number)
        choices = {"choices": scene.choices(number)} if way.task == "multiple_choice" else {}
        passages = [Passage(text, source=f"source-{i}") for i, text in enumerate(scene.texts(number))]
        answers.append(defense.answer(scene.question(number), passages, **choices))
        seen.append((model.calls, model.elapsed, model.busy, together(model.spent)))
    return _means(way.title, answers, seen)


def _means(title: str, answers: Sequence[RobustAnswer], seen: Sequence[tuple[int, float, float, Usage]]) -> Demand:
    tokens = [(u.prompt or 0, u.cached or 0, u.completion or 0) for *_, u in seen]
    return Demand(
        title,
        mean(calls for calls, *_ in seen),
        mean(answer.spending.rounds for answer in answers),
        (mean(t[0] for t in tokens), mean(t[1] for t in tokens), mean(t[2] for t in tokens)),
        mean(answer.radius for answer in answers),
        mean(not answer.abstained for answer in answers),
        tuple(elapsed for _, elapsed, _, _ in seen),
        mean(busy for _, _, busy, _ in seen),
        tuple(answer.evidence.get("decided_after", len(answer.groups)) for answer in answers),
        mean(len(json.dumps(answer.to_dict())) for answer in answers),
    )


def spent_table(found: Sequence[Demand]) -> str:
    """Per question, and money per day, as Markdown."""
    lines = [
        "| way | calls | rounds | tokens in | of them cached | tokens out | cost of a day | radius | p50 | p99 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        prompt, cached, completion = one.usage
        lines.append(
            f"| {one.title} | {one.calls:.1f} | {one.rounds:.1f} | {prompt:,.0f} | {cached:,.0f} | {completion:,.0f} | "
            f"{one.cost():,.0f} | {one.radius:.1f} | {one.percentile(50):.1f} | {one.percentile(99):.1f} |"
        )
    return "\n".join(lines)
