"""Tasks for Inspect (`inspect eval robustrag_integrations/attacked`): benign accuracy, robust accuracy, attack success.

Each sample is a question with its clean retrieval, answered twice: from that, and from the retrieval with planted
passages in it. The data, attacks, defences and scores are those of `robustrag eval`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ModelOutput, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.attacks.planning import plan_attack, several_ranks
from robustrag_integrations.attacks.plugins import attack_of
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.evaluation.data.datasets import Dataset, load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.run.bench import build_defense
from robustrag_integrations.evaluation.run.planning import Setup, settings_of
from robustrag_integrations.evaluation.score.scoring import Scores, score_answer
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.models.callable import CallableModel
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.replies.reply import FinishReason

_CALLS = 1000  # at a time; Inspect has a limit of its own for each provider
_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


@task
def attacked(
    data: str = "demo",
    questions: str = "qa",
    defense: str = "consensus",
    attack: str = "pia",
    rank: str | int = "first",
    corruption_size: int | None = None,
    top_k: int = 10,
    seed: int = 0,
    reader: str | None = None,
    base_url: str | None = None,
    settings: dict[str, Any] | None = None,
) -> Task:
    """Questions under attack.

    Args:
        data: `demo`, or a data file as `robustrag eval --data` takes it.
        questions: `qa` for short answers, `mc` for multiple choice.
        defense: a method or baseline, such as `keyword`, `voting` or `vanilla`.
        attack: a name of `robustrag eval --attack`, or a function of yours as `file.py:function`.
        rank: where planted passages stand: first, middle, last, random, a rank from 1, or several such as `1+2`.
        corruption_size: how many passages are planted; None for as many as `rank` names, which is one but for several.
        top_k: number of passages that are retrieved.
        seed: of what attacks draw at random.
        reader: a model of this project, such as `bundled`, in place of Inspect's (give `--model none` then).
        base_url: the server of `reader`.
        settings: the defence's settings, such as `{alpha: 0.4}`.

    Raises:
        ValueError: an invalid argument, or no question that the attack can be run on.
    """
    if questions not in ("qa", "mc"):
        raise ValueError(f"questions={questions!r} must be qa or mc")
    if attack_of(attack).goal == "other":
        raise ValueError(f"attack={attack!r}: no answer shows what it achieves; there is no success to score")
    loaded = load_dataset(data, task="mc" if questions == "mc" else "qa", top_k=top_k)
    asked = {q.id: q for q in loaded.questions if attack_of(attack).target(q) is not None}
    if not asked:
        raise ValueError(f"data={data!r} has no question that {attack!r} has a target for")
    model = NamedModel(reader, base_url).load() if reader else _inspects_model()
    chosen = tuple(settings_of(defense, settings or {}).items())
    setup = Setup(defense, NamedModel(reader or "bundled"), defense, chosen, top_k)
    planted = len(several_ranks(rank) or (rank,)) if corruption_size is None else corruption_size
    planned = {"rank": rank, "corruption_size": planted, "seed": seed, "top_k": top_k}
    return Task(
        dataset=MemoryDataset([_sample(q) for q in asked.values()], name=loaded.name),
        solver=answered_twice(loaded, asked, build_defense(setup, questions, model), attack, planned),
        scorer=bacc_racc_asr(),
        version=1,
    )


def _sample(question: EvalQuestion) -> Sample:
    return Sample(input=question.question, target=list(question.answers), id=question.id)


def _inspects_model() -> TextModel:
    async def ask(prompt: str) -> Response:
        return _response(await get_model().generate([ChatMessageUser(content=prompt)]))

    return CallableModel(async_fn=ask, max_concurrency=_CALLS, attempts=1, name="the model of Inspect")


def _response(output: ModelOutput) -> Response:
    """A reply as the methods read it: how it ended decides whether it counts."""
    if output.error:
        return Response(None, error=output.error)
    used = output.usage
    usage = Usage()
    if used is not None:
        cached = used.input_tokens_cache_read or 0
        whole = used.input_tokens + cached + (used.input_tokens_cache_write or 0)
        usage = Usage(whole, used.input_tokens_cache_read, used.output_tokens, used.reasoning_tokens)
    return Response(output.completion, finish=_FINISH.get(output.stop_reason, "unknown"), usage=usage)


@solver
def answered_twice(
    dataset: Dataset,
    questions: Mapping[str, EvalQuestion],
    defense: Defense,
    attack: str,
    planned: Mapping[str, Any],
) -> Solver:
    """Answer from the clean retrieval, and from the attacked one; both answers are kept as reports.

    Args:
        dataset: the source of the questions.
        questions: by the samples' ids.
        defense: the defence that answers.
        attack: its name.
        planned: arguments of `plan_attack`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        question = questions[str(state.sample_id)]
        choices = question.choices if dataset.task == "mc" else None
        hit = await asyncio.to_thread(
            plan_attack, attack, question, question.passages, defense=defense, choices=choices, **planned
        )
        clean = await defense.aanswer(question.question, question.passages, choices=choices)
        answer = await defense.aanswer(question.question, hit.passages, choices=choices)
        state.output = ModelOutput.from_content(str(state.model), answer.text)
        state.metadata["scores"] = {
            "clean": asdict(score_answer(question, clean, dataset.task)),
            "attacked": asdict(score_answer(question, answer, dataset.task, target=hit.target, goal=hit.goal)),
        }
        state.metadata["reports"] = {"clean": clean.to_dict(), "attacked": answer.to_dict()}
        return state

    return solve


@scorer(metrics={name: [mean(), stderr()] for name in ("bacc", "racc", "asr")})
def bacc_racc_asr() -> Scorer:
    """Right without an attack; right under it; the attacker's answer given. An abstention is not right."""

    async def score(state: TaskState, target: Target) -> Score:
        found = {name: Scores(**given) for name, given in state.metadata["scores"].items()}
        value = {
            "bacc": found["clean"].correct or 0.0,
            "racc": found["attacked"].correct or 0.0,
            "asr": float(bool(found["attacked"].hijacked)),
        }
        radii = {name: report["radius"] for name, report in state.metadata["reports"].items()}
        return Score(value=value, answer=state.output.completion, metadata={"radius": radii})

    return score
