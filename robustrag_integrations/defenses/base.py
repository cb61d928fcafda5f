"""The front door that all defences share: check the input, isolate, run the plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.drivers import (
    AnswerStream,
    AsyncAnswerStream,
    DecodingPerformer,
    TextPerformer,
    arun,
    astream,
    run,
    stream,
)
from robustrag_integrations.defenses.plan import Plan
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.passages import GroupBy, Passage, PassageGroup, check_grouping, isolate


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
        return self._plan(query, self._isolate(passages), choices)

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
        return stream(plan, self._performer(), self.model.stream)

    def _astream(self, plan: Plan) -> AsyncGenerator[str | RobustAnswer, None]:
        return astream(plan, self._performer().aperform, self.model.astream)
