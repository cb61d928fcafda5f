"""The making of rows in this process: load the models once, build the defences, attack, answer, score, certify."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.metrics import LLMJudge, contains_answer
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import VANILLA, entry_of
from robustrag_integrations.evaluation.attacks.planning import plan_attack
from robustrag_integrations.evaluation.run.cache import CACHED_CALLS, CallCache, MeteredModel, metered
from robustrag_integrations.evaluation.run.config import ConfigError
from robustrag_integrations.evaluation.run.planning import Job, Setup
from robustrag_integrations.evaluation.score.rows import blank_row
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK, metric_for, score_answer
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.text.prompts import Prompt, prompts_for

logger = logging.getLogger(__name__)


class LocalEngine:
    """Makes rows in this process, with a cache of model calls in a folder; models and defences stay loaded.

    `concurrency` rows are made at a time; models in this process run one row at a time all the same.
    """

    def __init__(self, cache: str | None = None, concurrency: int = 1) -> None:
        self.cache = cache
        self._calls = None if cache is None else CallCache(cache)
        self._concurrency = concurrency
        self._models: dict[NamedModel, MeteredModel] = {}
        self._defenses: dict[tuple[Setup, str], Defense] = {}
        self._judges: dict[NamedModel, LLMJudge] = {}
        self._locks: dict[NamedModel, asyncio.Lock] = {}
        self._answered: set[tuple[NamedModel, str, str]] = set()  # models, defences and tasks that are warm

    def run(self, jobs: Sequence[Job], on_row: Callable[[dict[str, Any]], None]) -> None:
        """Make the rows, and hand over each as soon as it is made.

        An exception (an interrupt, or one that `on_row` raises) cancels what is under way.
        """
        self._prepare(jobs)
        asyncio.run(self._run(iter(jobs), on_row))

    async def _run(self, jobs: Iterator[Job], on_row: Callable[[dict[str, Any]], None]) -> None:
        async def work() -> None:
            for job in jobs:
                on_row(await self.row(job))

        workers = [asyncio.create_task(work()) for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _prepare(self, jobs: Iterable[Job]) -> None:
        """Load every model and build every defence that the jobs need."""
        self._locks.clear()  # a lock belongs to the event loop of one run
        for job in jobs:
            defense = self._defense(job)
            if job.judge is not None:
                self._judge(job.judge)
            if job.certify is None:
                continue
            if not self._model(job.setup.model).deterministic:
                raise ConfigError(
                    f"certify: the model {job.setup.model.name!r} samples, so that no certificate would hold; leave "
                    "certify out, or use a model at temperature 0"
                )
            try:
                defense.rules.check_certifiable()
            except ValueError as error:
                raise ConfigError(f"methods: {job.setup.label}: {error}, or leave certify out") from error

    async def row(self, job: Job) -> dict[str, Any]:
        """Make one row. An error is recorded in the row; cancelling stops its model calls.

        Models in this process run one row at a time, since they would only take the processor from each other.
        """
        if not job.setup.model.local:
            return await self._row(job)
        async with self._locks.setdefault(job.setup.model, asyncio.Lock()):
            return await self._row(job)

    async def _row(self, job: Job) -> dict[str, Any]:
        setup = job.setup
        row = blank_row(
            job.question,
            job.attack,
            key=job.key,
            dataset=job.dataset,
            task=job.task,
            top_k=setup.top_k,
            model=setup.model.label,
            method=setup.method,
            settings=dict(setup.settings),
            setup=setup.label,
            metric=job.metric or METRIC_OF_TASK[job.task],
        )
        try:
            await self._fill(job, row)
        except Exception as error:
            logger.info("a row failed: %s (question %s of %s)", type(error).__name__, job.question.id, job.dataset)
            row["error"] = {"type": type(error).__name__, "message": printable(redacted(str(error)), 500)}
        return row

    async def _fill(self, job: Job, row: dict[str, Any]) -> None:
        question, attack, defense = job.question, job.attack, self._defense(job)
        judge = None if job.judge is None else self._judge(job.judge)
        choices = question.choices if job.task == "multiple_choice" else None
        rated = job.task != "long_form" or judge is not None
        metric = metric_for(job.task, question, judge, job.metric) if rated else contains_answer
        attacked = await asyncio.to_thread(
            plan_attack,
            attack.name,
            question,
            question.passages,
            rank=int(attack.rank) if attack.rank.isdecimal() else attack.rank,
            corruption_size=attack.corruption_size,
            seed=attack.seed,
            repeat=attack.repeat,
            top_k=job.setup.top_k,
        )
        row["target"] = attacked.target
        row["passages"] = [
            {"text": p.text, "source": p.origin, "planted": planted}
            for p, planted in zip(attacked.passages, attacked.planted, strict=True)
        ]
        row["trusted_passages"] = [{"text": p.text, "source": p.origin} for p in question.trusted]
        answer = await self._answer(job, row, attacked.passages, choices)
        row["answer"] = answer.to_dict()
        about: Any = {"target": attacked.target, "metric": job.metric, "goal": attacked.goal}
        scores = await asyncio.to_thread(score_answer, question, answer, job.task, judge, **about)
        row["scores"] = asdict(scores)
        if (spec := job.certify) is None:
            return
        for mode in spec.attacks:
            found = await defense.acertify(
                question.question,
                question.passages,
                question.answers,
                trusted=question.trusted or None,
                corruption_size=spec.corruption_sizes,
                metric=metric,
                attack=mode,
                choices=choices,
                top_k=job.setup.top_k,
                max_model_calls=spec.max_model_calls,
            )
            row["certificates"] += [certificate.to_dict() for certificate in found]

    async def _answer(
        self, job: Job, row: dict[str, Any], passages: Sequence[Any], choices: Sequence[str] | None
    ) -> RobustAnswer:
        """Return the answer; its time and cost, and whether it was its defence's first in this process, go into row."""
        about = (job.setup.model, job.setup.method, job.task)
        first = about not in self._answered
        self._answered.add(about)
        cached: list[Prompt] = []
        outer = CACHED_CALLS.set(cached)
        start = time.perf_counter()
        try:
            defense, trusted = self._defense(job), job.question.trusted or None
            shelves: dict[str, Any] = {"passages": passages, "trusted": trusted}
            if not defense.isolates:  # plain RAG reads both together
                shelves = {"passages": [*(trusted or ()), *passages]}
            answer = await defense.aanswer(job.question.question, choices=choices, **shelves)
        finally:
            CACHED_CALLS.reset(outer)
        seconds = round(time.perf_counter() - start, 6)
        row["timing"] = {"seconds": seconds, "cached_calls": len(cached), "first": first}
        if first and len(cached) == answer.model_calls:
            self._answered.discard(about)  # the model was not asked: the next row pays for what is loaded
        tokens = answer.spending.total
        row["cost"] = {
            "model_calls": answer.model_calls,
            "prompt_tokens": tokens.prompt,
            "completion_tokens": tokens.completion,
        }
        return answer

    def _model(self, name: NamedModel) -> MeteredModel:
        if name not in self._models:
            self._models[name] = metered(name.load(), name.fingerprint(), self._calls)
        return self._models[name]

    def _judge(self, name: NamedModel) -> LLMJudge:
        if name not in self._judges:
            self._judges[name] = LLMJudge(self._model(name))
        return self._judges[name]

    def _defense(self, job: Job) -> Defense:
        known = (job.setup, job.task)
        if known not in self._defenses:
            model = self._model(job.setup.model)
            try:
                self._defenses[known] = _defense_of(job.setup, job.task, model)
            except (ValueError, TypeError) as error:
                raise ConfigError(f"methods: {job.setup.label} on {job.setup.model.name!r}: {error}") from error
        return self._defenses[known]


def _defense_of(setup: Setup, task: Any, model: Any) -> Defense:
    settings = dict(setup.settings)
    shots, options = settings.pop("exemplars", 0), settings.get("options", "words")
    prompts = prompts_for(task, exemplars=shots, options=options)
    if setup.method == VANILLA.name:  # whoever has no defence shows a reply that was cut, and it is scored as shown
        settings = {"cut_replies": "count", **settings}
    made: Defense = entry_of(setup.method).build(model, task=task, prompts=prompts, **settings)
    return made
