"""What performs a plan's requests: the one place where plans meet LlamaIndex."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.plans.drivers import (
    AsyncPerform,
    AsyncStreamFinal,
    Perform,
    StreamFinal,
    arun,
    astream,
    run,
    stream,
)
from robustrag_integrations.plans.performers import DecodingPerformer, TextPerformer
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.plans.streams import AnswerStream, AsyncAnswerStream
from robustrag_integrations.prompts import Prompt


@dataclass(frozen=True)
class Performer:
    """Performs one plan, in any of four ways, through the core's drivers."""

    perform: Perform
    aperform: AsyncPerform
    stream_final: StreamFinal
    astream_final: AsyncStreamFinal

    @classmethod
    def of_text(cls, model: TextModel) -> Performer:
        """For plans that ask for text."""
        performer = TextPerformer(model)
        return cls(performer, performer.aperform, model.stream, model.astream)

    @classmethod
    def of_decoding(cls, model: DecodingModel) -> Performer:
        """For plans that ask for next-token probabilities."""
        performer = DecodingPerformer(model)
        return cls(performer, performer.aperform, _never_asked, _anever_asked)

    def run(self, plan: Plan) -> RobustAnswer:
        """The plan's answer."""
        return run(plan, self.perform)

    async def arun(self, plan: Plan) -> RobustAnswer:
        """The plan's answer, without blocking the event loop."""
        return await arun(plan, self.aperform)

    def stream(self, plan: Plan) -> AnswerStream:
        """The plan's answer in pieces."""
        return AnswerStream(stream(plan, self.perform, self.stream_final))

    def astream(self, plan: Plan) -> AsyncAnswerStream:
        """The plan's answer in pieces, without blocking the event loop."""
        return AsyncAnswerStream(astream(plan, self.aperform, self.astream_final))


def _never_asked(prompt: Prompt) -> Iterator[str]:
    raise TypeError("a decoding plan asks no final question")


def _anever_asked(prompt: Prompt) -> AsyncIterator[str]:
    raise TypeError("a decoding plan asks no final question")
