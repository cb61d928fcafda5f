"""The rows that a configuration asks for, in canonical order, each with its key."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from robustrag_integrations._util.plugins import load_object, source_digest
from robustrag_integrations._util.words import count_of
from robustrag_integrations.defenses.registry import METHODS, entry_of
from robustrag_integrations.evaluation.attacks.families import attack_of
from robustrag_integrations.evaluation.data.datasets import Dataset, DatasetError, load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.run.config import (
    CertifySpec,
    ConfigError,
    DataSpec,
    DefenseSpec,
    EvalConfig,
)
from robustrag_integrations.evaluation.run.journal import canonical
from robustrag_integrations.evaluation.score.rows import ROW_SCHEMA, AttackSpec
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK
from robustrag_integrations.models.base import DecodingModel
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.text.prompts import Task


@dataclass(frozen=True)
class Setup:
    """One defence with one choice of settings on one model; its label is unique for a task and a model."""

    label: str
    model: NamedModel
    method: str
    settings: tuple[tuple[str, Any], ...]
    top_k: int | None


@dataclass(frozen=True)
class Job:
    """One row to make; equal keys mean equal rows, up to timing. None: no certificates, no judge, the task's metric."""

    key: str
    dataset: str
    task: Task
    question: EvalQuestion
    setup: Setup
    attack: AttackSpec
    certify: CertifySpec | None
    judge: NamedModel | None
    metric: str | None = None


@dataclass(frozen=True)
class RunPlan:
    """All rows of a run in canonical order (data set, setup, attack, question), and in words what was left out."""

    jobs: tuple[Job, ...]
    notes: tuple[str, ...]


def make_plan(config: EvalConfig) -> RunPlan:
    """Load the data and list the jobs."""
    notes: list[str] = []
    datasets = _datasets(config, notes)
    tasks = config.tasks or sorted({dataset.task for dataset in datasets})
    unfit = [
        f"{spec.label or spec.name} left out: it is for the tasks {', '.join(spec.tasks)}, and the questions are "
        f"asked as {', '.join(tasks)} (--task)"
        for spec in config.methods
        if not set(tasks) & set(spec.tasks)
    ]
    if len(unfit) == len(config.methods):
        fitting = [name for name in METHODS if set(tasks) & set(METHODS[name].tasks)]
        raise ConfigError(f"methods: {'; '.join(unfit)}; use {' or '.join(fitting)}")
    notes += unfit
    for model in config.models:
        names = dict.fromkeys(s.label or s.name for s in config.methods if not _can_run(s.name, model))
        notes += [f"{model.name}: {', '.join(names)} left out: it gives no token probabilities"] if names else []
    jobs: dict[str, Job] = {}
    for dataset in datasets:
        if bad := dataset.bad_rows:
            notes.append(f"{dataset.name}: {count_of(len(bad), 'bad row')} left out; {'; '.join(map(str, bad[:3]))}")
        for setup in _setups(config, dataset.task):
            for attack in config.attacks:
                jobs |= {job.key: job for job in _jobs(config, dataset, setup, attack, notes)}
    if not jobs:
        raise ConfigError("; ".join(["there is nothing to do: no question, defence and attack fit together", *notes]))
    return RunPlan(tuple(jobs.values()), tuple(dict.fromkeys(notes)))


@lru_cache(maxsize=64)
def _can_run(defense: str, model: NamedModel) -> bool:
    """True if a model gives what a defence needs of it, which of a user's function is known only once it is loaded."""
    if defense not in METHODS or not METHODS[defense].needs_probabilities:
        return True
    if model.name.startswith("python:"):
        return isinstance(model.load(), DecodingModel)
    return model.gives_probabilities


def _setups(config: EvalConfig, task: Task) -> list[Setup]:
    """The setups of a task: models, then defences and their settings, then numbers of passages."""
    drafts = [
        (spec, dict(zip(spec.settings, values, strict=True)), top_k)
        for spec in config.methods
        if task in spec.tasks
        for values in itertools.product(*spec.settings.values())
        for top_k in config.top_k
    ]
    labels = _labels(drafts, several_sizes=len(config.top_k) > 1)
    return [
        Setup(label, model, spec.name, _settings(spec.name, chosen), top_k)
        for model in config.models
        for (spec, chosen, top_k), label in zip(drafts, labels, strict=True)
        if _can_run(spec.name, model)
    ]


def _labels(drafts: Sequence[tuple[DefenseSpec, dict[str, Any], int | None]], *, several_sizes: bool) -> list[str]:
    """Return a short label for each, which tells it from others of its defence."""
    named: list[str] = []
    for spec, chosen, top_k in drafts:
        base = spec.label or spec.name
        others = [c for s, c, _ in drafts if (s.label or s.name) == base]
        differing = [k for k in chosen if any(c.get(k) != chosen[k] for c in others)]
        said = [f"{k}={chosen[k]:g}" if isinstance(chosen[k], float) else f"{k}={chosen[k]}" for k in differing]
        name = " ".join([base, *said, *([f"top_k={top_k or 'all'}"] if several_sizes else [])])
        same = sum(other.split(" (")[0] == name for other in named)
        named.append(f"{name} ({same + 1})" if same else name)
    return named


def _settings(defense: str, chosen: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    if defense in METHODS:
        settled = [s for s in METHODS[defense].thresholds if s.default is not None and s.long_form is None]
        chosen = {**{s.name: s.default for s in settled}, "passages_per_source": 1, **chosen}
    return tuple(sorted(chosen.items()))


def _datasets(config: EvalConfig, notes: list[str]) -> list[Dataset]:
    """The data sets, each as every task it allows: a long form if it has one, else short answers, choices, lists."""
    found: list[Dataset] = []
    for spec in config.data:
        own = _load(spec, spec.task if not config.tasks else None, config)
        tasks = [own.task] if not config.tasks else [t for t in config.tasks if spec.task in (None, t)]
        loaded = [own] if own.task in tasks else []
        if "list" in tasks and own.task == "short_answer":
            loaded.append(_load(spec, "list", config))
        if "multiple_choice" in tasks and own.task != "multiple_choice" and any(q.choices for q in own.questions):
            with suppress(DatasetError):  # choices, but not which of them is right
                loaded.append(_load(spec, "multiple_choice", config))
        if not loaded:
            notes.append(f"{spec.source}: none of its questions can be asked as {', '.join(config.tasks)}; left out")
        found += sorted(loaded, key=lambda dataset: tasks.index(dataset.task))
    return found


def _load(spec: DataSpec, task: Task | None, config: EvalConfig) -> Dataset:
    sizes = [k for k in config.top_k if k is not None]
    most = max(sizes) if len(sizes) == len(config.top_k) else None
    return load_dataset(spec.source, task=task, top_k=most, limit=config.limit)


def _jobs(config: EvalConfig, dataset: Dataset, setup: Setup, attack: AttackSpec, notes: list[str]) -> Iterator[Job]:
    clean = attack.corruption_size == 0
    last = (setup.top_k or attack.corruption_size) - attack.corruption_size + 1
    if last < 1 or (setup.top_k and attack.rank.isdecimal() and int(attack.rank) > last):
        notes.append(f"{setup.label}: {attack} does not fit into {setup.top_k} passages; left out")
        return
    judge = config.judge if dataset.task == "long_form" else None
    certify = config.certify if clean and setup.method in METHODS and (dataset.task != "long_form" or judge) else None
    if certify and setup.top_k is not None:
        certify = replace(certify, corruption_sizes=tuple(k for k in certify.corruption_sizes if k <= setup.top_k))
    metric = None if dataset.task == "long_form" or config.metric == METRIC_OF_TASK[dataset.task] else config.metric
    functions = {s.name for s in entry_of(setup.method).settings if s.is_function}
    about: dict[str, Any] = {
        "schema": ROW_SCHEMA,
        "setup": [setup.method, setup.settings, setup.top_k, _extractor(setup)],
        "model": [setup.model.name, _fingerprint(setup.model)],
        "attack": [asdict(attack), _code_of(attack.name)],
        "judge": [judge.name, _fingerprint(judge)] if judge else None,
        "certify": asdict(certify) if certify else None,
        "metric": metric and [metric, _code_of(metric)],
        "functions": [[name, _code_of(f)] for name, f in setup.settings if name in functions and f],
    }
    base = hashlib.sha256(canonical(about).encode())
    target = attack_of(attack.name).target
    untargeted = 0
    for question in dataset.questions:
        if not clean and target(question) is None:
            untargeted += 1
            continue
        shown = replace(question, passages=question.passages[: setup.top_k])
        digest = base.copy()
        passages, trusted = ([(p.text, p.origin) for p in shelf] for shelf in (shown.passages, shown.trusted))
        about_question = {**vars(shown), "passages": passages, "trusted": trusted}
        digest.update(canonical([dataset.name, dataset.task, about_question]).encode())
        key = digest.hexdigest()[:24]
        yield Job(key, dataset.name, dataset.task, shown, setup, attack, certify, judge, metric)
    if untargeted:
        notes.append(f"{dataset.name}: {untargeted} without an incorrect answer for {attack.name}; left out")


@lru_cache(maxsize=64)
def _fingerprint(model: NamedModel) -> str:
    return model.fingerprint()


@lru_cache(maxsize=64)
def _extractor(setup: Setup) -> str | None:
    """Return the fingerprint of spaCy's pipeline, where a setup uses it."""
    if dict(setup.settings).get("extractor") != "spacy":
        return None
    from robustrag_integrations.text.spacy_keywords import SpacyKeywordExtractor

    return SpacyKeywordExtractor().fingerprint


@lru_cache(maxsize=64)
def _code_of(name: str) -> str | None:
    """Return a hash of the file with a function of the user's; None for one that ships."""
    return source_digest(load_object(name)) if ":" in name else None
