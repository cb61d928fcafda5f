"""The rows of an evaluation: attacked, answered, scored, certified; an interruption loses none that is made."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from typing import Any, Protocol

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.metrics import LLMJudge, contains_answer
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import VANILLA, entry_of
from robustrag_integrations.evaluation.attacks.planning import plan_attack
from robustrag_integrations.evaluation.run.cache import CACHED_CALLS, CallCache, MeteredModel, metered
from robustrag_integrations.evaluation.run.config import ConfigError, EvalConfig
from robustrag_integrations.evaluation.run.journal import Journal, JournalError
from robustrag_integrations.evaluation.run.planning import Job, Setup, make_plan
from robustrag_integrations.evaluation.score.rows import HEADER_SCHEMA, blank_row, latest_rows, misfit
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK, metric_for, score_answer
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.text.prompts import Prompt, Task, prompts_for

MOST_FAILURES = 20  # rows failed one after the other, after which a run stops

logger = logging.getLogger(__name__)

Row = dict[str, Any]


class Engine(Protocol):
    """What makes rows: `LocalEngine` in this process, or anything that hands jobs to others."""

    def run(self, jobs: Sequence[Job], on_row: Callable[[Row], None]) -> None:
        """Make the rows, and hand over each as soon as it is made."""


class LocalEngine:
    """Makes rows in this process, with the cache of model calls in this folder; models and defences stay loaded.

    `concurrency` rows are made at a time; models in this process run one row at a time all the same.
    """

    def __init__(self, folder: str | None = None, concurrency: int = 1) -> None:
        self._calls = None if folder is None else CallCache(folder)
        self._concurrency = concurrency
        self._model = cache(self._load)
        self._judge = cache(lambda name: LLMJudge(self._model(name)))
        self._defense = cache(self._build)
        self._locks: dict[NamedModel, asyncio.Lock] = {}
        self._answered: set[tuple[NamedModel, str, str]] = set()  # models, defences and tasks that are warm

    def run(self, jobs: Sequence[Job], on_row: Callable[[Row], None]) -> None:
        """Make the rows, and hand over each as soon as it is made.

        An exception (an interrupt, or one that `on_row` raises) cancels what is under way.
        """
        self._prepare(jobs)
        asyncio.run(self._run(iter(jobs), on_row))

    async def _run(self, jobs: Iterator[Job], on_row: Callable[[Row], None]) -> None:
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
        self._locks.clear()  # a lock belongs to the event loop of one run
        for job in jobs:
            defense = self._defense(job.setup, job.task)
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

    async def row(self, job: Job) -> Row:
        """Make one row. An error is recorded in the row; cancelling stops its model calls.

        Models in this process run one row at a time, since they would only take the processor from each other.
        """
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
        local = setup.model.local
        try:
            async with self._locks.setdefault(setup.model, asyncio.Lock()) if local else contextlib.nullcontext():
                await self._fill(job, row)
        except Exception as error:
            logger.info("a row failed: %s (question %s of %s)", type(error).__name__, job.question.id, job.dataset)
            row["error"] = {"type": type(error).__name__, "message": printable(redacted(str(error)), 500)}
        return row

    async def _fill(self, job: Job, row: Row) -> None:
        question, attack, defense = job.question, job.attack, self._defense(job.setup, job.task)
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

    async def _answer(self, job: Job, row: Row, passages: Sequence[Any], choices: Sequence[str] | None) -> RobustAnswer:
        """Return the answer; its time and cost, and whether it was its defence's first in this process, go into row."""
        about = (job.setup.model, job.setup.method, job.task)
        first = about not in self._answered
        self._answered.add(about)
        cached: list[Prompt] = []
        outer = CACHED_CALLS.set(cached)
        start = time.perf_counter()
        try:
            defense, trusted = self._defense(job.setup, job.task), job.question.trusted or None
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

    def _load(self, name: NamedModel) -> MeteredModel:
        return metered(name.load(), name.fingerprint(), self._calls)

    def _build(self, setup: Setup, task: Task) -> Defense:
        model, settings = self._model(setup.model), dict(setup.settings)
        shots, options = settings.pop("exemplars", 0), settings.get("options", "words")
        if setup.method == VANILLA.name:  # whoever has no defence shows a reply that was cut, and it is scored as shown
            settings = {"cut_replies": "count", **settings}
        try:
            prompts = prompts_for(task, exemplars=shots, options=options)
            made: Defense = entry_of(setup.method).build(model, task=task, prompts=prompts, **settings)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"methods: {setup.label} on {setup.model.name!r}: {error}") from error
        return made


class RunStopped(RobustRAGError):
    """A run stopped since all recent rows failed; the message says why. Finished rows are kept."""


@dataclass(frozen=True)
class Finished:
    """A finished run."""

    rows: tuple[Row, ...]
    made: int
    failed: int


def evaluate(
    config: EvalConfig,
    *,
    output: str | None = None,
    engine: Engine | None = None,
    on_start: Callable[[int, int, Sequence[str]], None] = lambda total, known, notes: None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> Finished:
    """Run an evaluation.

    Rows are appended to `output`, JSON lines, as they are made; those that are in it already are not made again. At the
    end it is put into canonical order, so that an interrupted run that was resumed leaves the same file as one that was
    not, up to `timing`. Without it rows are kept in memory only. `on_start` is told how many rows there are, how many
    are known, and in words what was left out; `on_row` each row that is made.

    Raises:
        ConfigError, DatasetError, ModelError, JournalError: something cannot be used.
        RunStopped: the last 20 rows have all failed.
        KeyboardInterrupt: raised as it is; all rows made so far are on disk.
    """
    plan, engine = make_plan(config), engine or LocalEngine()
    with contextlib.ExitStack() as stack:
        journal = None if output is None else stack.enter_context(Journal(output))
        known = {} if journal is None else known_rows(journal)
        todo = [job for job in plan.jobs if job.key not in known or known[job.key]["error"] is not None]
        on_start(len(plan.jobs), len(plan.jobs) - len(todo), plan.notes)
        mine = {job.key for job in plan.jobs}
        others = [row for key, row in known.items() if key not in mine]  # of earlier configurations: they stay, behind
        header = {
            "schema": HEADER_SCHEMA,
            "config": dict(config.given),
            "version": metadata.version("robustrag-integrations"),
        }
        if journal is not None and not journal.rows:
            journal.append(header)
        made = failures = 0

        def keep(row: Row) -> None:
            """Take a row: to disk first, then into memory."""
            nonlocal made, failures
            if journal is not None:
                journal.append(row)
            known[row["key"]] = row
            made += 1
            on_row(row)
            failures = 0 if row["error"] is None else failures + 1
            if failures >= MOST_FAILURES:
                said = f"{row['error']['type']}: {row['error']['message']}"
                raise RunStopped(f"the last {MOST_FAILURES} rows have all failed; the latest said: {said}")

        if todo:
            engine.run(todo, keep)
        # In the plan's order, under the labels that this run's setups have.
        rows = [{**known[job.key], "setup": job.setup.label} for job in plan.jobs if job.key in known]
        if journal is not None and (made or [header, *rows, *others] != list(journal.rows)):
            journal.replace([header, *rows, *others])
    return Finished(tuple(rows), made, sum(row["error"] is not None for row in rows))


def known_rows(journal: Journal) -> dict[str, Row]:
    """The rows of a journal by key; the last one counts, but an error never takes the place of an answer."""
    if journal.rows and journal.rows[0].get("schema") != HEADER_SCHEMA:
        raise JournalError(
            f"{str(journal.path)!r} does not begin like a run of robustrag eval; it is left as it is, give another file"
        )
    rows = []
    for number, row in enumerate(journal.rows, 1):
        if row.get("schema") == HEADER_SCHEMA:
            continue
        if problem := misfit(row):
            raise JournalError(
                f"{journal.path}, line {number} is not an evaluation row ({problem}); give another file, or delete "
                "that line to make the row again"
            )
        rows.append(row)
    return {row["key"]: dict(row) for row in latest_rows(rows)}
