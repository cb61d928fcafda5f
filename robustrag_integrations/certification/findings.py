"""Findings that every certification plan gathers, and the certificate made of them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations.certification.cases import AttackMode, BenignCase, benign_source_cases, check_size
from robustrag_integrations.certification.result import Certification, PossibleResponse
from robustrag_integrations.grouping.passages import PASSAGE, GroupBy, Passage, grouping_of, isolate
from robustrag_integrations.grouping.warnings import keyless_warnings

Result = TypeVar("Result")

# A method's certificate asks `Ask`, `ByMetric` and what is its own; what comes back depends on the request.
Asking: TypeAlias = Generator[Any, Any, Result]

ZERO_FOUND = "a response that scores 0 was found; the others were not examined"
NOTHING_BENIGN = "no untouched source may be left: the attacker alone decides the answer"
NO_QUORUM = "the attacker's sources fail, and the quorum is missed"


@dataclass(frozen=True)
class ByMetric:
    """A request to score these responses with the metric; the reply is one float each, in order."""

    responses: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """The question to certify, as `Defense.certify` takes it; `metric` is its name, the sizes are ascending."""

    query: str
    passages: tuple[Passage, ...]
    references: tuple[str, ...]
    metric: str
    sizes: tuple[int, ...]
    attack: AttackMode = "injection"
    passages_per_source: int = 1
    group_by: GroupBy | None = None
    top_k: int | None = None
    max_model_calls: int = 1000

    def __post_init__(self) -> None:
        for size in self.sizes:
            check_size(size)
        if not self.sizes:
            raise ValueError("no corruption size was given; name at least one, such as corruption_size=1")
        check_at_least(1, max_model_calls=self.max_model_calls)
        object.__setattr__(self, "group_by", grouping_of(self.passages_per_source, self.group_by))
        object.__setattr__(self, "sizes", tuple(sorted(set(self.sizes))))

    def cases(self, size: int) -> tuple[BenignCase, ...]:
        """Return the sets of untouched sources that an attacker of this size may leave."""
        return benign_source_cases(
            self.passages,
            size,
            attack=self.attack,
            passages_per_source=self.passages_per_source,
            by=self.group_by,
            top_k=self.top_k,
        )

    @property
    def warnings(self) -> list[str]:
        """Warnings for readers of the certificates about how the passages were grouped."""
        if self.group_by == PASSAGE:
            return []
        return keyless_warnings(isolate(self.passages, by=self.group_by), self.group_by)


@dataclass
class Findings:
    """The findings for one corruption size so far.

    `done` is set once nothing found later could matter.
    """

    size: int
    cases: tuple[BenignCase, ...]
    responses: dict[str | None, PossibleResponse] = field(default_factory=dict)
    unbounded: bool = False
    certified: bool = True
    stopped: str | None = None
    done: bool = False
    model_calls: int | None = None
    warnings: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def add(self, text: str | None, score: float, cause: str, case: int) -> None:
        """Add a possible response. One that scores 0 settles the matter."""
        self.responses.setdefault(text, PossibleResponse(text, score, cause, case))
        if score == 0:
            self.settle(ZERO_FOUND)

    def open_ended(self, why: str) -> None:
        """Record that the attacker can cause anything."""
        self.unbounded = True
        self.settle(why)

    def give_up(self, why: str) -> None:
        """Record that a limit was met: nothing is proven."""
        self.certified = False
        self.settle(why)

    def settle(self, why: str) -> None:
        """Stop looking."""
        if not self.done:
            self.done, self.stopped = True, why

    @property
    def tau(self) -> float:
        """The lowest score, or 0 where anything is possible or nothing was proven."""
        if self.unbounded or not self.certified or not self.responses:
            return 0.0
        return min(r.score for r in self.responses.values())

    def certificate(
        self,
        question: Question,
        method: str,
        settings: Mapping[str, Any],
        numerics: Mapping[str, Any],
        warnings: Sequence[str],
    ) -> Certification:
        """Return the certificate."""
        setup = {
            "passages_per_source": question.passages_per_source,
            "group_by": str(question.group_by),
            "passages": len(question.passages),
            "top_k": question.top_k if question.top_k is not None else len(question.passages),
            "max_model_calls": question.max_model_calls,
        }
        return Certification(
            tau=self.tau,
            certified=self.certified,
            corruption_size=self.size,
            attack=question.attack,
            query=question.query,
            references=question.references,
            metric=question.metric,
            method=method,
            responses=tuple(sorted(self.responses.values(), key=lambda r: (r.score, r.text or ""))),
            complete=self.stopped is None,
            unbounded=self.unbounded,
            stopped=self.stopped,
            cases=len(self.cases),
            model_calls=self.model_calls or 0,
            settings={**settings, **setup},
            numerics=dict(numerics),
            warnings=(*warnings, *question.warnings, *self.warnings),
            evidence=self.evidence,
        )


@dataclass
class Ledger:
    """The calls spent and the scores known, shared by all corruption sizes."""

    limit: int
    spent: int = 0
    scores: dict[str, float] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """The number of model calls that may still be made."""
        return self.limit - self.spent

    def scored(self, texts: Iterable[str]) -> Asking[list[float]]:
        """Return the scores of these responses; each is asked for once."""
        wanted = list(texts)
        if new := tuple(dict.fromkeys(t for t in wanted if t not in self.scores)):
            scores = yield ByMetric(new)
            self.scores.update(zip(new, scores, strict=True))
        return [self.scores[t] for t in wanted]


def smaller_size_fails(size: int) -> str:
    """Explain why a larger attacker is not examined."""
    return f"with {size} corrupted a score of 0 is possible, and a larger attacker can do all that a smaller one can"
