"""The front door that all defences share: check the input, isolate, run the plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.passages import GroupBy, Passage, PassageGroup, check_grouping, isolate
from robustrag_integrations.plans.drivers import (
    AnswerStream,
    AsyncAnswerStream,
    DecodingPerformer,
    TextPerformer,
    arun,
    astream,
    run,
    stream,
)
from robustrag_integrations.plans.requests import Plan

if TYPE_CHECKING:
    from robustrag_integrations.certification.certify import CertificationRun
    from robustrag_integrations.certification.findings import Question
    from robustrag_integrations.certification.result import Certification
    from robustrag_integrations.metrics import Metric


def check_query(query: str) -> None:
    """Raise unless the query is a text with something in it."""
    if not isinstance(query, str):
        raise TypeError(f"the query must be a str, got {type(query).__name__}: {query!r:.60}")
    if not query.strip():
        raise ValueError("the query is empty; ask something")


class Defense(ABC):
    """A defence: isolate, ask, aggregate, answer. Subclasses say how with a plan and what performs it."""

    def __init__(self, *, group_size: int = 1, group_by: GroupBy | None = None) -> None:
        check_grouping(group_size, group_by)
        self.group_size = group_size
        self.group_by = group_by

    def plan(self, query: str, passages: Iterable[str | Passage], *, choices: Sequence[str] | None = None) -> Plan:
        """The defence as a generator that asks and is told, for drivers of your own.

        Raises:
            TypeError, ValueError: the query or a passage is not text, or the query is empty.
        """
        check_query(query)
        return self._with_late_warnings(self._plan(query, self._isolate(passages), choices))

    def answer(
        self, query: str, passages: Iterable[str | Passage], *, choices: Sequence[str] | None = None
    ) -> RobustAnswer:
        """Answer a question from retrieved passages.

        Args:
            query: the question; trusted.
            passages: what was retrieved, best first; not trusted. None at all gives an abstention.
            choices: the options of a multiple-choice question, for defences that vote.

        Raises:
            TypeError, ValueError: bad input, named in the message.
            QuorumError: too many groups failed.
            ModelError: the final call failed.
        """
        plan = self.plan(query, passages, choices=choices)
        return run(plan, self._performer())

    async def aanswer(
        self, query: str, passages: Iterable[str | Passage], *, choices: Sequence[str] | None = None
    ) -> RobustAnswer:
        """`answer` without blocking the event loop; cancelling it cancels the model calls."""
        plan = self.plan(query, passages, choices=choices)
        return await arun(plan, self._performer().aperform)

    def stream(
        self, query: str, passages: Iterable[str | Passage], *, choices: Sequence[str] | None = None
    ) -> AnswerStream:
        """The aggregated answer in pieces; `.answer` holds the whole when the last piece is out.

        The pieces add up to the answer's text. No isolated response is ever shown.
        """
        return AnswerStream(self._stream(self.plan(query, passages, choices=choices)))

    def astream(
        self, query: str, passages: Iterable[str | Passage], *, choices: Sequence[str] | None = None
    ) -> AsyncAnswerStream:
        """`stream` for `async for`."""
        return AsyncAnswerStream(self._astream(self.plan(query, passages, choices=choices)))

    def certify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: int = 1,
        **settings: Any,
    ) -> Certification:
        """What the answer is worth at worst: whatever a bounded attacker writes, it scores at least `.tau`.

        Args:
            query: the question; trusted.
            passages: the clean retrieval, best first, before any attack.
            reference: the right answer, or several of which each is right.
            corruption_size: k', how many passages the attacker controls at most.
            settings: `metric` (default `contains_answer`), `attack` (`"injection"` or `"modification"`), `choices` for
                defences that vote, `top_k` (how many passages the retrieval returns when it finds enough; default as
                many as given), `max_model_calls` (default 1000), `sample` and `seed` (how many responses to sample
                for an estimate where tau cannot be proven; default 0).

        Raises:
            TypeError, ValueError: bad input, or a model that samples; named in the message.
        """
        [found] = self.certify_sizes(query, passages, reference, corruption_sizes=[corruption_size], **settings)
        return found

    async def acertify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: int = 1,
        **settings: Any,
    ) -> Certification:
        """`certify` without blocking the event loop."""
        [found] = await self.acertify_sizes(query, passages, reference, corruption_sizes=[corruption_size], **settings)
        return found

    def certify_sizes(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_sizes: Iterable[int],
        **settings: Any,
    ) -> tuple[Certification, ...]:
        """`certify` for several corruption sizes, which share the model's calls; by ascending size."""
        from robustrag_integrations.certification.certify import prepare

        return prepare(self, query, passages, reference, corruption_sizes, **settings).run()

    async def acertify_sizes(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_sizes: Iterable[int],
        **settings: Any,
    ) -> tuple[Certification, ...]:
        """`certify_sizes` without blocking the event loop."""
        from robustrag_integrations.certification.certify import prepare

        return await prepare(self, query, passages, reference, corruption_sizes, **settings).arun()

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """The certification of a prepared question; `certify` is the front door.

        Raises:
            TypeError: there is nothing to certify about this defence.
        """
        raise TypeError(
            f"{type(self).__name__} cannot be certified: any passage may decide its answer; use KeywordAggregation, "
            "DecodingAggregation or MajorityVoting"
        )

    def _with_late_warnings(self, plan: Plan) -> Plan:
        """The plan, with what the model only has to warn of after it was asked."""
        answer = yield from plan
        warnings = getattr(getattr(self, "model", None), "warnings", ())
        late = [w for w in warnings if w not in answer.warnings]
        return replace(answer, warnings=(*answer.warnings, *late)) if late else answer

    def _isolate(self, passages: Iterable[str | Passage]) -> tuple[PassageGroup, ...]:
        return isolate(passages, self.group_size, by=self.group_by)

    def _refuse_choices(self, choices: Sequence[str] | None) -> None:
        if choices is not None:
            raise ValueError(f"{type(self).__name__} does not take choices; use MajorityVoting for multiple choice")

    @abstractmethod
    def _plan(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str] | None) -> Plan: ...

    @abstractmethod
    def _performer(self) -> TextPerformer | DecodingPerformer: ...

    @abstractmethod
    def _stream(self, plan: Plan) -> Generator[str | RobustAnswer, None, None]: ...

    @abstractmethod
    def _astream(self, plan: Plan) -> AsyncGenerator[str | RobustAnswer, None]: ...


class TextDefense(Defense):
    """A defence that needs nothing of the model but text."""

    def __init__(self, model: TextModel, *, group_size: int = 1, group_by: GroupBy | None = None) -> None:
        super().__init__(group_size=group_size, group_by=group_by)
        if not isinstance(model, TextModel):
            raise TypeError(
                f"the model must be a CallableModel, a LocalModel or another TextModel, got {type(model).__name__}; "
                "wrap a function from prompt to text as CallableModel(fn)"
            )
        self.model = model

    def _performer(self) -> TextPerformer:
        return TextPerformer(self.model)

    def _stream(self, plan: Plan) -> Generator[str | RobustAnswer, None, None]:
        return stream(plan, self._performer(), self.model.stream, truncates=self.model.truncates)

    def _astream(self, plan: Plan) -> AsyncGenerator[str | RobustAnswer, None]:
        return astream(plan, self._performer().aperform, self.model.astream, truncates=self.model.truncates)
