"""Tuning: every setup answers the questions that choose, one is chosen, and the held-out ones say what it is worth."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.defenses.settings_file import SavedSettings
from robustrag_integrations.evaluation.run.bench import LocalEngine
from robustrag_integrations.evaluation.run.config import TASK_OF, ConfigError, EvalConfig
from robustrag_integrations.evaluation.run.planning import Job, RunPlan, make_plan
from robustrag_integrations.evaluation.run.runner import Finished, Watcher, run_plan
from robustrag_integrations.evaluation.score.expected import expected_accuracy
from robustrag_integrations.evaluation.score.intervals import RATE, Interval, bootstrap_mean, clopper_pearson
from robustrag_integrations.evaluation.score.summary import repeats_of_rows, warnings_of
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE
from robustrag_integrations.grouping.votes import VOTES, VoteRules

Prefer = Literal["certified", "accuracy"]

CLOSE = 0.01  # of the questions: how far below the best accuracy a candidate may be; one question in any case

Row = Mapping[str, Any]
LEAST = 4  # questions


@dataclass(frozen=True)
class Wish:
    """The goal of tuning.

    Attributes:
        prefer: the measure that decides; see `choose`.
        corruption_size: k', the number of groups that the attacker replaces.
        seed: of the split.
    """

    prefer: Prefer = "certified"
    corruption_size: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Halves:
    """The questions that choose and the held-out ones, by their normalised texts; no question is in both."""

    choosing: frozenset[str]
    held_out: frozenset[str]


def halves_of(questions: Iterable[str], seed: int) -> Halves:
    """Split questions by a hash of their text, so that order, ids and copies of a question change nothing.

    Args:
        questions: their texts; of several that say the same, one counts.
        seed: another one splits otherwise.

    Raises:
        ValueError: fewer than 4 questions.
    """
    known = {text_key(question) for question in questions}
    if len(known) < LEAST:
        raise ValueError(
            f"{len(known)} questions are too few to choose settings with: half of them choose and half are held out; "
            f"give at least {LEAST}, better a hundred"
        )
    ordered = sorted(known, key=lambda text: hashlib.sha256(f"{seed}\0{text}".encode()).digest())
    middle = -(-len(ordered) // 2)
    return Halves(frozenset(ordered[:middle]), frozenset(ordered[middle:]))


def text_key(question: str) -> str:
    """A question's text without case and whitespace that mean nothing."""
    return " ".join(question.casefold().split())


@dataclass(frozen=True)
class Tuned:
    """The result of tuning.

    Attributes:
        candidates: every setup on the questions that choose.
        chosen: one of them.
        held_out: the chosen setup on the held-out questions, which had no say in it.
        settings: the chosen ones, for a file.
        made: rows made by this run.
        failed: rows that failed; they count as not right.
        warnings: warnings of the chosen setup's answers, each with its number of rows.
        repeats: the model's reproducibility, in words.
    """

    candidates: tuple[Candidate, ...]
    chosen: Candidate
    held_out: Candidate
    settings: SavedSettings
    made: int
    failed: int
    warnings: Mapping[str, int] = field(default_factory=dict)
    repeats: str = ""


class Tuning:
    """The questions of a configuration in two halves, and the calls about them.

    Args:
        config: one model, and the setups to compare; see `run.config`.
        wish: the goal of tuning.

    Raises:
        ConfigError: several tasks, long answers, or too few questions.
        DatasetError: a data set cannot be used.
        ModelError: a model's files cannot be read.
    """

    def __init__(self, config: EvalConfig, wish: Wish) -> None:
        self._config, self._wish = config, wish
        plan = make_plan(config)
        tasks = sorted({job.task for job in plan.jobs})
        if tasks != [tasks[0]] or tasks[0] == "long":
            raise ConfigError(
                f"data: asked as {', '.join(tasks)}; settings are chosen for one task, short answers (task: qa) or "
                "multiple choice (task: mc)"
            )
        self.task = tasks[0]
        try:
            halves = halves_of((job.question.question for job in plan.jobs), wish.seed)
        except ValueError as error:
            raise ConfigError(f"data: {error}") from error
        jobs = _by_question(plan.jobs)
        self.notes = plan.notes
        self.choosing = tuple(job for job in jobs if text_key(job.question.question) in halves.choosing)
        self.held_out = tuple(job for job in jobs if text_key(job.question.question) in halves.held_out)

    @property
    def setups(self) -> int:
        """The number of setups."""
        return len({job.setup for job in self.choosing})

    @property
    def names_origins(self) -> bool:
        """True if every passage says where it is from, so that an origin can have a vote."""
        by_origin = VoteRules(group_by=ORIGIN)
        return all(group.origins for job in self.choosing for group in by_origin.isolate(job.question.passages))

    def questions(self, jobs: Sequence[Job]) -> int:
        """Count the questions that these rows are about."""
        return len({(job.dataset, job.question.id) for job in jobs})

    def estimate(self) -> str:
        """Bound the calls of all rows, in words; the held-out questions are asked with one setup alone."""
        first = next(job.setup for job in self.held_out)
        return estimate_of([*self.choosing, *(job for job in self.held_out if job.setup == first)])

    def run(
        self, output: str | None = None, engine: LocalEngine | None = None, watcher: Watcher | None = None
    ) -> Tuned:
        """Ask, choose, and ask the held-out questions with what was chosen.

        Raises:
            ConfigError: a defence cannot use the model, or nothing could be asked at all.
            JournalError: the output cannot be used.
            RunStopped: the last 20 rows have all failed.
        """
        done = self._rows(self.choosing, self.notes, output, engine, watcher)
        by_setup: dict[str, list[dict[str, Any]]] = {}
        for row in done.rows:
            by_setup.setdefault(row["setup"], []).append(row)
        candidates = tuple(self._candidate(rows) for rows in by_setup.values())
        chosen = choose(candidates, self._wish.prefer)
        rest = [job for job in self.held_out if job.setup.label == chosen.label]
        checked = self._rows(rest, (), output, engine, watcher)
        of_chosen = [row for row in (*by_setup[chosen.label], *checked.rows) if row["error"] is None]
        return Tuned(
            candidates,
            chosen,
            self._candidate(checked.rows),
            settings_of(chosen, self.task),
            done.made + checked.made,
            done.failed + checked.failed,
            warnings_of(of_chosen),
            repeats_of_rows(of_chosen),
        )

    def _rows(
        self,
        jobs: Sequence[Job],
        notes: Sequence[str],
        output: str | None,
        engine: LocalEngine | None,
        watcher: Watcher | None,
    ) -> Finished:
        plan = RunPlan(tuple(jobs), tuple(notes))
        return run_plan(plan, self._config, output=output, engine=engine, watcher=watcher)

    def _candidate(self, rows: Sequence[Mapping[str, Any]]) -> Candidate:
        return candidate_of(rows, self._wish.corruption_size)


def estimate_of(jobs: Iterable[Job]) -> str:
    """Bound in words what these rows ask of a model; what a cache or the output holds is not asked again."""
    isolated: set[Any] = set()
    final = decoded = 0
    for job in jobs:
        method, settings = METHODS[job.setup.defense], dict(job.setup.settings)
        if method.needs_probabilities:
            decoded += 1
            continue
        rules = VoteRules(settings.get("group_size", 1), settings.get("group_by"))
        groups = rules.isolate(job.question.passages)
        # A model in this process runs the prompts of an answer as one batch, whose size is a part of the call.
        batch = len(groups) if job.setup.model.local else None
        isolated |= {(method.name, job.question.question, group.text, batch) for group in groups}
        final += "keyword" in method.prompts and bool(groups)
    counts = {"isolated calls": len(isolated), "final calls": final, "decoded answers": decoded}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "nothing"


def settings_of(chosen: Candidate, task: str) -> SavedSettings:
    """Return a candidate's settings as a file has them."""
    settings = {name: value for name, value in chosen.settings.items() if value is not None}
    votes = {name: settings[name] for name in VOTES if name in settings}
    if votes.get("group_size") == 1:
        del votes["group_size"]
    elif "group_size" in votes:
        votes["group_by"] = PASSAGE
    own = [s.name for s in METHODS[chosen.defense].settings]
    options = {"task": TASK_OF[task], **{name: settings[name] for name in own if name in settings}}
    return SavedSettings("", chosen.defense, options, votes, chosen.top_k)


def _by_question(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Sort jobs question by question, so that what setups share is asked once and then at hand."""
    places = {(job.dataset, job.question.id): None for job in jobs}
    order = {key: place for place, key in enumerate(places)}
    return tuple(sorted(jobs, key=lambda job: order[job.dataset, job.question.id]))


@dataclass(frozen=True)
class Candidate:
    """One choice of settings, as it did on some questions. A question that failed counts as not right.

    Attributes:
        label: its name in tables.
        defense: the method.
        settings: of the method, and what one vote is.
        top_k: number of passages that were retrieved; None for all.
        accuracy: the share that is right, with its 95% interval (exact, where answers are right or wrong).
        certified: the share that is right with a radius of at least k' (expected certified accuracy).
        abstention: the share without an answer.
        radius: the mean radius of the right answers.
        calls: the mean number of model calls of a question.
        failed: number of questions that failed.
    """

    label: str
    defense: str
    settings: Mapping[str, Any]
    top_k: int | None
    accuracy: Interval
    certified: Interval
    abstention: Interval
    radius: float = 0.0
    calls: float = 0.0
    failed: int = 0


def candidate_of(rows: Sequence[Row], size: int) -> Candidate:
    """Measure a setup on its clean rows: one per question, at least one. `size` is k'."""
    first, count = rows[0], len(rows)
    done = [row for row in rows if row["error"] is None]
    right = [0.0 if row["error"] is not None else float(row["scores"]["correct"] or 0) for row in rows]
    silent = sum(bool(row["scores"]["abstained"]) for row in done)
    calls = [row["cost"]["model_calls"] for row in done]
    return Candidate(
        label=first["setup"],
        defense=first["defense"],
        settings=first["settings"],
        top_k=first["top_k"],
        accuracy=_share(right),
        certified=_expected(rows, size),
        abstention=clopper_pearson(silent, count),
        radius=_mean([row["answer"]["radius"] for row in done if row["scores"]["correct"] == 1]),
        calls=_mean([c for c in calls if c is not None]),
        failed=count - len(done),
    )


def choose(candidates: Sequence[Candidate], prefer: Prefer) -> Candidate:
    """Return the candidate to use.

    `certified`: of those whose accuracy is within 1 point (or one question) of the best, the most often certified; of
    equal ones the more accurate, the less often silent, the one with fewer calls, with the larger radius, and with
    more of its settings at their defaults.
    `accuracy`: the most accurate; of equal ones the most often certified, and so on.

    Args:
        candidates: at least one, all of the same questions.
        prefer: one of the two.
    """
    best = max(_value(c.accuracy) for c in candidates)
    room = max(CLOSE, 1 / max(candidates[0].accuracy.n, 1)) + 1e-9
    near = [c for c in candidates if prefer == "accuracy" or _value(c.accuracy) >= best - room]

    def worth(c: Candidate) -> tuple[float, ...]:
        two = (_value(c.certified), _value(c.accuracy))
        two = two if prefer == "certified" else two[::-1]
        return (*two, -_value(c.abstention), -c.calls, c.radius, -_changes(c))

    return max(near, key=worth)  # of equals the first


def _changes(candidate: Candidate) -> int:
    """Count the thresholds that are not at their defaults."""
    defaults = METHODS[candidate.defense].in_force({})
    return sum(candidate.settings.get(name, value) != value for name, value in defaults.items())


def _value(interval: Interval) -> float:
    return interval.mean or 0.0


def _expected(rows: Sequence[Row], size: int) -> Interval:
    found = next((e.share for e in expected_accuracy(rows) if e.corruption_size == size), None)
    return clopper_pearson(0, len(rows)) if found is None else found


def _share(values: Sequence[float]) -> Interval:
    """Return the share: with an exact interval if answers are right or wrong, bootstrapped for scores in between."""
    if set(values) <= {0.0, 1.0}:
        return clopper_pearson(int(sum(values)), len(values))
    return bootstrap_mean(values, limits=RATE)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
