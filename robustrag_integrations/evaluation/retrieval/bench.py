"""Making one row: plant, retrieve from everything, count."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from robustrag_integrations.attacks.plugins import attack_of
from robustrag_integrations.display import printable
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.data.datasets import Dataset, load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.retrieval.corpora import corpus_of, told_apart
from robustrag_integrations.evaluation.retrieval.owners import displaced, owned, retrieved
from robustrag_integrations.evaluation.retrieval.planting import PLANTED, planted_documents, planted_passages
from robustrag_integrations.evaluation.retrieval.rows import ROW_SCHEMA, clean_digest
from robustrag_integrations.evaluation.retrieval.searchers import Search, Searcher, searcher_of
from robustrag_integrations.evaluation.retrieval.spec import BM25, RULES, RetrievalSpec
from robustrag_integrations.evaluation.run.config import EvalConfig, PlannedAttack
from robustrag_integrations.evaluation.run.journal import canonical
from robustrag_integrations.grouping.passages import PASSAGE, SITE, Passage
from robustrag_integrations.grouping.sites import site_extractor
from robustrag_integrations.plugins import load_object, source_digest
from robustrag_integrations.redaction import redacted


class RetrievalError(RobustRAGError, ValueError):
    """What was asked for cannot be measured; the message says what to change."""


@dataclass(frozen=True)
class Job:
    """One row to make."""

    key: str
    dataset: Dataset
    corpus: str
    question: EvalQuestion
    retriever: str
    attack: PlannedAttack
    top_k: int


class Bench:
    """Holds the corpora, and the searches over them as they are without an attacker."""

    def __init__(self, config: EvalConfig, spec: RetrievalSpec) -> None:
        self._config, self._spec = config, spec
        self._notes: list[str] = []
        if SITE in spec.rules:
            try:
                site_extractor()
            except ImportError as error:
                if spec.rules != RULES:
                    raise RetrievalError(str(error)) from error
                self._spec = replace(spec, rules=tuple(rule for rule in RULES if rule != SITE))
                self._notes.append("votes by site are left out: pip install 'robustrag-integrations[site]'")
        self._searchers: dict[str, Searcher] = {}
        self._corpora: dict[str, tuple[Passage, ...]] = {}
        self._clean: dict[tuple[str, str], Search] = {}
        self._digests: dict[str, str] = {}
        try:
            for name in spec.retrievers:
                self._searchers[name] = searcher_of(name)
        except (ValueError, TypeError) as error:
            raise RetrievalError(str(error)) from error

    def jobs(self) -> tuple[list[Job], list[str]]:
        """The rows to make, in canonical order, and what was left out."""
        found: list[Job] = []
        notes = self._notes
        attacks = list(self._attacks(notes))
        for dataset, source in self._datasets():
            corpus = self._corpus(dataset, source)
            for retriever in self._spec.retrievers:
                for attack in attacks:
                    target = attack_of(attack.name).target
                    wanted = [q for q in dataset.questions if dataset.task in attack.tasks and target(q) is not None]
                    if left := len(dataset.questions) - len(wanted):
                        notes.append(f"{dataset.name}: {left} questions have no target for {attack.name}; left out")
                    about = (dataset, corpus, retriever, attack)
                    found += [self._job(*about, k, question) for k in self._top_k() for question in wanted]
        if not found:
            reason = "there is nothing to measure: no question and attack fit together"
            raise RetrievalError("; ".join([reason, *notes]))
        return list({job.key: job for job in found}.values()), list(dict.fromkeys(notes))

    def clean_questions(self, rule: str) -> Iterator[tuple[Dataset, str, list[EvalQuestion]]]:
        """Per data set and retriever the questions with their clean retrieval, as long as the longest `top_k`.

        Args:
            rule: what one vote is.
        """
        for dataset, source in self._datasets():
            corpus = self._corpus(dataset, source)
            for retriever in self._spec.retrievers:
                search, k = self._search(corpus, retriever), max(self._top_k())
                if self._spec.per_source is not None and rule != PASSAGE:
                    search = partial(_spread, search, self._spec.per_source, rule)
                yield dataset, retriever, [replace(q, passages=tuple(search(q.question, k))) for q in dataset.questions]

    def row(self, job: Job) -> dict[str, Any]:
        """Make one row; what fails is said in it."""
        start = time.perf_counter()
        row = self._blank(job)
        try:
            row["measured"] = list(self._measured(job, row))
        except Exception as error:  # a retriever or an attack of the user's may raise anything
            row["error"] = {"type": type(error).__name__, "message": printable(redacted(str(error)), 500)}
        row["timing"] = {"seconds": round(time.perf_counter() - start, 6)}
        return row

    def _measured(self, job: Job, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The clean retrieval, then one with each number of planted documents; the first m are always the same."""
        clean, question, attack = self._search(job.corpus, job.retriever), job.question, job.attack
        shown = clean(question.question, job.top_k)
        found = {rule: self._retrieved(job, clean, rule) for rule in self._spec.rules}
        row["clean"] = {
            rule: clean_digest(question.question, ((p.text, p.source) for p in passages))
            for rule, passages in found.items()
        }
        yield self._counted(job, clean, 0, frozenset(), found)
        texts = planted_documents(
            attack.name, question, shown, max(self._spec.plant), repeat=attack.repeat, seed=attack.seed
        )
        for m in self._spec.plant:
            planted = told_apart(planted_passages(texts[:m], self._spec), PLANTED)
            search = self._searchers[job.retriever]((*self._corpora[job.corpus], *planted))
            yield self._counted(job, search, m, frozenset(str(p.id) for p in planted), found)

    def _counted(
        self, job: Job, search: Search, m: int, planted: frozenset[str], clean: Mapping[str, Sequence[Passage]]
    ) -> dict[str, Any]:
        shown = search(job.question.question, job.top_k)
        votes = []
        for rule, before in clean.items():
            found = self._retrieved(job, search, rule)
            counted = owned(found, planted, rule)
            needed = displaced(before, found, job.top_k) if self._spec.certifiable(rule) else None
            votes.append({"rule": rule, "groups": counted.groups, "owned": counted.owned, "displaced": needed})
        return {
            "m": m,
            "planted_passages": len(planted),
            "found": len(shown),
            "votes": votes,
            "passages": [{"id": str(p.id), "planted": p.id in planted} for p in shown],
        }

    def _retrieved(self, job: Job, search: Search, rule: str) -> Sequence[Passage]:
        """What is retrieved where one vote is that of the rule."""
        if self._spec.per_source is None or rule == PASSAGE:
            return search(job.question.question, job.top_k)
        return retrieved(search, job.question.question, job.top_k, self._spec.per_source, rule)

    def _search(self, corpus: str, retriever: str) -> Search:
        """The search over a corpus as it is without an attacker."""
        if (corpus, retriever) not in self._clean:
            self._clean[corpus, retriever] = self._searchers[retriever](self._corpora[corpus])
        return self._clean[corpus, retriever]

    def _attacks(self, notes: list[str]) -> Iterator[PlannedAttack]:
        """One of each name: where passages stand is up to the retriever."""
        seen = set()
        for attack in self._config.attacks:
            if attack.name == "none" or attack.name in seen:
                continue
            seen.add(attack.name)
            if attack_of(attack.name).write is None:
                notes.append(f"{attack.name} searches for texts by asking a defence, and plants no documents; left out")
            else:
                yield attack

    def _datasets(self) -> Iterator[tuple[Dataset, str]]:
        top_k = max(self._top_k())
        for spec in self._config.data:
            task: Any = spec.task or (self._config.tasks[0] if self._config.tasks else None)
            yield load_dataset(spec.source, task=task, top_k=top_k, limit=spec.limit, layout=spec.layout), spec.source

    def _corpus(self, dataset: Dataset, source: str) -> str:
        """Read a data set's corpus once; gives the name under which it is known."""
        name = f"{source} {dataset.task}"
        if name not in self._corpora:
            try:
                found = corpus_of(source, dataset.questions, self._spec.corpus, self._spec.chunk_size)
            except (RobustRAGError, ValueError) as error:
                raise RetrievalError(str(error)) from error
            listed = [[p.text, p.source, _plain(p.metadata)] for p in found]
            self._corpora[name] = found
            self._digests[name] = hashlib.sha256(canonical(listed).encode()).hexdigest()
        return name

    def _top_k(self) -> tuple[int, ...]:
        found = tuple(k for k in self._config.top_k if k is not None)
        if not found:
            raise RetrievalError("top_k: all has no k of which a part could be owned; give a number, such as 10")
        return found

    def _job(
        self, dataset: Dataset, corpus: str, retriever: str, attack: PlannedAttack, top_k: int, question: EvalQuestion
    ) -> Job:
        spec = {name: value for name, value in asdict(self._spec).items() if name not in ("retrievers", "corpus")}
        asked = [question.question, question.answers, question.incorrect, question.poisoned, question.poison_target]
        about = {
            "schema": ROW_SCHEMA,
            "data": [dataset.name, dataset.task, asked, self._digests[corpus]],
            "retriever": [retriever, None if retriever == BM25 else source_digest(load_object(retriever))],
            "attack": [attack.name, attack.repeat, attack.seed, _code(attack.name)],
            "top_k": top_k,
            "spec": spec,
        }
        key = hashlib.sha256(canonical(about).encode()).hexdigest()[:24]
        return Job(key, dataset, corpus, question, retriever, attack, top_k)

    def _blank(self, job: Job) -> dict[str, Any]:
        return {
            "schema": ROW_SCHEMA,
            "key": job.key,
            "dataset": job.dataset.name,
            "task": job.dataset.task,
            "question_id": job.question.id,
            "question": job.question.question,
            "retriever": job.retriever,
            "attack": job.attack.name,
            "top_k": job.top_k,
            "per_source": self._spec.per_source,
            "sites": self._spec.sites,
            "corpus_size": len(self._corpora[job.corpus]),
            "clean": None,
            "measured": [],
            "error": None,
        }


def _spread(search: Search, per_source: int, rule: str, query: str, k: int) -> list[Passage]:
    return retrieved(search, query, k, per_source, rule)


def _code(name: str) -> str | None:
    return source_digest(attack_of(name).write) if ":" in name else None


def _plain(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): repr(value)[:200] for key, value in metadata.items()}
