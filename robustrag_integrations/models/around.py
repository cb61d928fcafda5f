"""What a model around another one passes on of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustrag_integrations.determinism import Repeats
from robustrag_integrations.models.base import Probed, TextModel, repeats_of


class AroundModel(TextModel):
    """A text model whose replies are another one's, on the whole: what is known of that one holds of it.

    Args:
        model: the other one.
    """

    def __init__(self, model: TextModel) -> None:
        self._model = model

    def probe_replies(self) -> Probed:
        """The model's."""
        return self._model.probe_replies()

    async def aprobe_replies(self) -> Probed:
        """The model's."""
        return await self._model.aprobe_replies()

    @property
    def state(self) -> object:
        """The model's."""
        return self._model.state

    @property
    def numerics(self) -> Mapping[str, Any]:
        """The model's."""
        return self._model.numerics

    @property
    def warnings(self) -> tuple[str, ...]:
        """The model's."""
        return self._model.warnings

    @property
    def description(self) -> str:
        """The model's."""
        return self._model.description

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The model's."""
        return self._model.capabilities

    @property
    def repeats(self) -> Repeats:
        """The model's."""
        return repeats_of(self._model)

    @property
    def shares_batches(self) -> bool:
        """The model's."""
        return self._model.shares_batches
