"""The rows that a configuration asks for, in canonical order, each with its key."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from robustrag_integrations._util.plugins import load_object, source_digest
from robustrag_integrations.attacks.families import attack_of
from robustrag_integrations.attacks.payloads import PREFIX
from robustrag_integrations.defenses.registry import METHODS, entry_of
from robustrag_integrations.evaluation.data.datasets import Dataset, DatasetError, load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion, EvalTask, doubts
from robustrag_integrations.evaluation.run.config import (
    CertifySpec,
    ConfigError,
    DataSpec,
    DefenseSpec,
    EvalConfig,
    PlannedAttack,
    beyond_the_end,
    can_run,
    most_passages,
    no_task,
)
from robustrag_integrations.evaluation.run.journal import canonical
from robustrag_integrations.evaluation.score.rows import ROW_SCHEMA
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK
from robustrag_integrations.grouping.passages import PASSAGE
from robustrag_integrations.metrics import metric_of
from robustrag_integrations.models.base import DecodingModel
from robustrag_integrations.models.providers import NamedModel


@dataclass(frozen=True)
class Setup:
    """One defence with one choice of settings on one model.

    Attributes:
        label: its name in tables, unique among the setups of a task and a model.
        model: the model to ask.
        defense: the defence's name.
        settings: the chosen settings, and the defaults of those that matter most, as (name, value) pairs.
        top_k: number of passages that are retrieved; None for all that a question has.
    """

    label: str
    model: NamedModel
    defense: str
    settings: tuple[tuple[str, Any], ...]
    top_k: int | None


@dataclass(frozen=True)
class Job:
    """One row to make.

    Attributes:
        key: identifies the row; equal keys mean equal rows, up to timing.
        dataset: the data set's name.
        task: `qa`, `mc` or `long`.
        question: the question with its clean retrieval.
        setup: the setup that answers it.
        attack: the attack on the retrieval.
        certify: the attackers that the clean answer is certified against; None for none.
        judge: grades long answers; None for no grades.
        metric: the metric; None for the task's own.
    """

    key: str
    dataset: str
    task: EvalTask
    question: EvalQuestion
    setup: Setup
    attack: PlannedAttack
    certify: CertifySpec | None
    judge: NamedModel | None
    metric: str | None = None


@dataclass(frozen=True)
class RunPlan:
    """All rows of a run, and notes for the user.

    Attributes:
        jobs: in canonical order: data set, setup, attack, question.
        notes: all that was left out, in words.
    """

    jobs: tuple[Job, ...]
    notes: tuple[str, ...]


def make_plan(config: EvalConfig) -> RunPlan:
    """Load the data and list the jobs.

    Raises:
        ConfigError: nothing is left to do, or a defence is for none of the tasks.
        DatasetError: a data set cannot be used.
        ModelError: a model's files cannot be read.
    """
    notes = list(_left_out(config))
    datasets = _datasets(config, notes)
    tasks = sorted({dataset.task for dataset in datasets})
    for spec in config.defenses:
        if not config.tasks and not set(tasks) & set(spec.tasks):
            raise no_task(spec, tasks)
    planner = _Planner(config, notes)
    jobs: list[Job] = []
    for dataset in datasets:
        notes += _data_notes(dataset)
        for setup in setups_of(config, dataset.task):
            for attack in config.planned_attacks:
                jobs += planner.jobs(dataset, setup, attack)
    if not jobs:
        raise ConfigError("; ".join(["there is nothing to do: no question, defence and attack fit together", *notes]))
    unique = {job.key: job for job in jobs}
    return RunPlan(tuple(unique.values()), tuple(dict.fromkeys(notes)))


def _left_out(config: EvalConfig) -> Iterator[str]:
    """Return the defences that a model cannot run."""
    for model in config.models:
        names = dict.fromkeys(s.label or s.name for s in config.defenses if not _runs(config, s.name, model))
        if names:
            yield f"{model.name}: {', '.join(names)} left out: it gives no token probabilities"


def _runs(config: EvalConfig, defense: str, model: NamedModel) -> bool:
    """True if this defence is run on this model."""
    return can_run(defense, model) and not (config.leave_out and _lacks(defense, model))


@lru_cache(maxsize=64)
def _lacks(defense: str, model: NamedModel) -> bool:
    """True if a user's function lacks what a defence needs, which is known only once it is loaded."""
    if defense not in METHODS or not METHODS[defense].needs_probabilities or not model.name.startswith("python:"):
        return False
    return not isinstance(model.load(), DecodingModel)


def setups_of(config: EvalConfig, task: str) -> tuple[Setup, ...]:
    """The setups of a task: models, then defences and their settings, then numbers of passages."""
    drafts = [
        (spec, dict(zip(spec.settings, values, strict=True)), top_k)
        for spec in config.defenses
        if task in spec.tasks
        for values in itertools.product(*spec.settings.values())
        for top_k in config.top_k
    ]
    labels = _labels(drafts, several_sizes=len(config.top_k) > 1)
    return tuple(
        Setup(label, model, spec.name, _settings(spec.name, chosen), top_k)
        for model in config.models
        for (spec, chosen, top_k), label in zip(drafts, labels, strict=True)
        if _runs(config, spec.name, model)
    )


def _labels(drafts: Sequence[tuple[DefenseSpec, dict[str, Any], int | None]], *, several_sizes: bool) -> list[str]:
    """Return a short label for each, which tells it from others of its defence."""
    named: list[str] = []
    for spec, chosen, top_k in drafts:
        base = spec.label or spec.name
        others = [c for s, c, _ in drafts if (s.label or s.name) == base]
        differing = [k for k in chosen if any(c.get(k) != chosen[k] for c in others)]
        said = [f"{k}={chosen[k]:g}" if isinstance(chosen[k], float) else f"{k}={chosen[k]}" for k in differing]
        named.append(" ".join([base, *said, *([f"top_k={top_k or 'all'}"] if several_sizes else [])]))
    seen: dict[str, int] = {}
    for at, name in enumerate(named):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            named[at] = f"{name} ({seen[name]})"
    return named


def _datasets(config: EvalConfig, notes: list[str]) -> list[Dataset]:
    loaded: list[Dataset] = []
    for spec in config.data:
        found = _as_tasks(spec, config) if config.tasks else [_load(spec, spec.task, config)]
        if not found:
            notes.append(f"{spec.source}: none of its questions can be asked as {', '.join(config.tasks)}; left out")
        loaded += found
    names: dict[tuple[str, str], int] = {}
    for at, dataset in enumerate(loaded):
        known = (dataset.name, dataset.task)
        names[known] = names.get(known, 0) + 1
        if names[known] > 1:
            loaded[at] = replace(dataset, name=f"{dataset.name}#{names[known]}")
    return loaded


def _as_tasks(spec: DataSpec, config: EvalConfig) -> list[Dataset]:
    """Return the data set as each task it allows: a long form if it has one, else short answers and choices."""
    own = _load(spec, None, config)
    wanted = [task for task in config.tasks if spec.task in (None, task)]
    found = []
    for task in wanted:
        if task == own.task:
            found.append(own)
        elif task == "mc" and any(q.choices for q in own.questions):
            try:
                found.append(_load(spec, "mc", config))
            except DatasetError:  # choices, but not which of them is right
                continue
    return found


def _load(spec: DataSpec, task: Any, config: EvalConfig) -> Dataset:
    return load_dataset(
        spec.source,
        task=task,
        top_k=most_passages(config),
        limit=spec.limit,
        strict=config.strict,
    )


def _data_notes(dataset: Dataset) -> Iterator[str]:
    if count := len(dataset.bad_rows):
        first = "; ".join(map(str, dataset.bad_rows[:3]))
        more = f"; and {count - 3} more" if count > 3 else ""
        yield f"{dataset.name}: {count} bad row{'s' * (count > 1)} left out ({first}{more})"
    for odd, which in doubts(dataset.questions).items():
        few = ", ".join(which[:5]) + (f" and {len(which) - 5} more" if len(which) > 5 else "")
        yield f"{dataset.name}: {len(which)} question{'s' * (len(which) > 1)} {odd} (id {few})"


class _Planner:
    """The maker of the jobs; values that many of them share are computed once."""

    def __init__(self, config: EvalConfig, notes: list[str]) -> None:
        self._config, self._notes = config, notes
        named = [*config.models, *([config.judge] if config.judge else [])]
        self._prints = {model: model.fingerprint() for model in dict.fromkeys(named)}
        self._shown: dict[tuple[int, int | None], tuple[EvalQuestion, str]] = {}

    def jobs(self, dataset: Dataset, setup: Setup, attack: PlannedAttack) -> Iterator[Job]:
        """One job per question that the attack can be run on."""
        clean = attack.corruption_size == 0
        if not clean and (setup.defense == "no-rag" or dataset.task not in attack.tasks):
            return
        if setup.top_k is not None and attack.corruption_size > setup.top_k:
            self._notes.append(
                f"{setup.label}: {setup.top_k} passages cannot hold {attack.corruption_size} planted ones; left out"
            )
            return
        if beyond_the_end(attack, setup.top_k):
            self._notes.append(f"{setup.label}: rank {attack.rank} is beyond its {setup.top_k} passages; left out")
            return
        target = attack_of(attack.name).target
        untargeted = 0
        for question in dataset.questions:
            if not clean and target(question) is None:
                untargeted += 1
            else:
                yield self._job(dataset, setup, attack, question)
        if untargeted:
            what = "questions have" if untargeted > 1 else "question has"
            self._notes.append(f"{dataset.name}: {untargeted} {what} no incorrect answer for {attack.name}; left out")

    def _job(self, dataset: Dataset, setup: Setup, attack: PlannedAttack, question: EvalQuestion) -> Job:
        shown, digest = self._cut(question, setup.top_k)
        config = self._config
        judge = config.judge if dataset.task == "long" else None
        certified = attack.corruption_size == 0 and setup.defense in METHODS and (dataset.task != "long" or judge)
        certify = _certify(config.certify, setup.top_k) if certified else None
        about: dict[str, Any] = {
            "schema": ROW_SCHEMA,
            "data": [dataset.name, dataset.task, digest],
            "setup": [setup.defense, setup.settings, setup.top_k, _extractor(setup)],
            "model": [setup.model.name, self._prints[setup.model]],
            "attack": [asdict(replace(attack, tasks=())), _code_of("attack", attack.name)],
            "judge": [judge.name, self._prints[judge]] if judge else None,
            "certify": certify.model_dump() if certify else None,
        }
        metric = None if config.metric == METRIC_OF_TASK[dataset.task] or dataset.task == "long" else config.metric
        if metric is not None:
            about["metric"] = [metric, _code_of("metric", metric)]
        if functions := _functions(setup):
            about["functions"] = functions
        key = hashlib.sha256(canonical(about).encode()).hexdigest()[:24]
        return Job(key, dataset.name, dataset.task, shown, setup, attack, certify, judge, metric)

    def _cut(self, question: EvalQuestion, top_k: int | None) -> tuple[EvalQuestion, str]:
        """The question with its `top_k` best passages, and a hash of all of it."""
        known = (id(question), top_k)
        if known not in self._shown:
            shown = replace(question, passages=question.passages[:top_k])
            rest = {name: value for name, value in vars(shown).items() if name != "passages"}
            listed = [(p.text, p.source) for p in shown.passages]
            self._shown[known] = (shown, hashlib.sha256(canonical([rest, listed]).encode()).hexdigest())
        return self._shown[known]


def _certify(spec: CertifySpec | None, top_k: int | None) -> CertifySpec | None:
    """Return the certificates that so many passages allow."""
    sizes = tuple(size for size in spec.corruption_sizes if top_k is None or size <= top_k) if spec else ()
    return spec.model_copy(update={"corruption_sizes": sizes}) if spec and sizes else None


@lru_cache(maxsize=64)
def _extractor(setup: Setup) -> str | None:
    """Return the fingerprint of the extractor, for a method that has one."""
    if setup.defense not in METHODS or not any(s.name == "extractor" for s in METHODS[setup.defense].settings):
        return None
    if dict(setup.settings).get("extractor") != "spacy":
        return "words"
    from robustrag_integrations.keywords import SpacyKeywordExtractor

    return SpacyKeywordExtractor().fingerprint


def _settings(defense: str, chosen: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Every setting in force; an evaluation isolates passages one by one, as the paper does, unless told otherwise."""
    if defense in METHODS:
        settled = [s for s in METHODS[defense].thresholds if s.default is not None and s.long_form is None]
        chosen = {**{s.name: s.default for s in settled}, "group_size": 1, "group_by": PASSAGE, **chosen}
    return tuple(sorted(chosen.items()))


def _functions(setup: Setup) -> list[list[str | None]]:
    """The functions of the user's that a setup asks, each with a hash of the file that it is written in."""
    named = {s.name for s in entry_of(setup.defense).settings if s.is_function}
    return [[n, _code_of("function", given)] for n, given in setup.settings if n in named and given is not None]


@lru_cache(maxsize=64)
def _code_of(kind: Literal["function", "metric", "attack"], name: str) -> str | None:
    """Return a hash of the file with a function of the user's, or of an attack's payloads; None for one that ships."""
    if kind == "attack" and name.startswith(PREFIX):
        return hashlib.sha256(Path(name.removeprefix(PREFIX)).read_bytes()).hexdigest()
    if ":" not in name and kind != "function":
        return None
    if kind == "attack":
        return source_digest(attack_of(name).write)
    return source_digest(metric_of(name) if kind == "metric" else load_object(name))
