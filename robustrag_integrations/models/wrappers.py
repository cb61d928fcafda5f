"""Wrapper models: one around another model, and a pair of a reader and a writer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.models.base import FinalAnswers, Response, Role, TextModel, Until, repeats_of
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece


def _wrapped(name: str) -> Any:
    return property(lambda self: getattr(self._model, name), doc="The wrapped model's.")


class AroundModel(TextModel):
    """A wrapper around a text model, with that model's properties."""

    can_score = _wrapped("can_score")
    score = _wrapped("score")
    ascore = _wrapped("ascore")
    numerics = _wrapped("numerics")
    warnings = _wrapped("warnings")
    description = _wrapped("description")
    shares_batches = _wrapped("shares_batches")

    def __init__(self, model: TextModel) -> None:
        self._model = model

    @property
    def repeats(self) -> Repeats:
        """The wrapped model's."""
        return repeats_of(self._model)


class TwoModels(AroundModel):
    """Isolated prompts go to one model, the final one to another; scores and batches are the reader's.

    Args:
        reader: asked once per group; many calls, so a small model pays.
        writer: asked the final prompt, which holds no passage.
    """

    def __init__(self, reader: TextModel, writer: TextModel) -> None:
        for name, model in (("model", reader), ("final_model", writer)):
            if not isinstance(model, TextModel):
                raise TypeError(f"{name} must be a TextModel, got {type(model).__name__}; wrap it as CallableModel(fn)")
        super().__init__(reader)
        self._writer = writer

    def generate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
        """Answer independent prompts with the model of their role."""
        return self._for(role).generate(prompts, role)

    async def agenerate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
        """`generate` without blocking the event loop."""
        return await self._for(role).agenerate(prompts, role)

    def generate_until(self, prompts: Sequence[Prompt], role: Role, until: Until) -> list[Response]:
        """`generate` until the replies are enough."""
        return self._for(role).generate_until(prompts, role, until)

    async def agenerate_until(self, prompts: Sequence[Prompt], role: Role, until: Until) -> list[Response]:
        """`generate_until` without blocking the event loop."""
        return await self._for(role).agenerate_until(prompts, role, until)

    def stream(self, prompt: Prompt) -> Iterator[Piece]:
        """Yield the final prompt's answer in pieces."""
        return self._writer.stream(prompt)

    def astream(self, prompt: Prompt) -> AsyncIterator[Piece]:
        """`stream` without blocking the event loop."""
        return self._writer.astream(prompt)

    @property
    def numerics(self) -> Mapping[str, Any]:
        """The reader's, with the writer's under `final_model`; empty if neither has any."""
        writer = dict(self._writer.numerics)
        return {**self._model.numerics, **({"final_model": writer} if writer else {})}

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of both models, each once."""
        return tuple(dict.fromkeys((*self._model.warnings, *self._writer.warnings)))

    @property
    def description(self) -> str:
        """Both names, the reader's first."""
        return f"{self._model.description}, final answer by {self._writer.description}"

    @property
    def repeats(self) -> Repeats:
        """The reproducibility of both models together."""
        return repeats_of(self._model).with_other(repeats_of(self._writer))

    def finals(self) -> FinalAnswers:
        """The writer's."""
        return self._writer.finals()

    def _for(self, role: Role) -> TextModel:
        return self._writer if role == "final" else self._model
