"""The models that a page may ask: those named on the command line, loaded on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from robustrag_integrations.errors import ModelError
from robustrag_integrations.evaluation.run.cache import CallCache, MeteredModel, metered
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.playground.state import StateError


class Models:
    """Models by name. A page chooses among them and cannot name another: a name can run code or reach a server.

    Args:
        named: the models, the first of which is the default.
        cache: of replies, so that equal prompts are asked once; None for none.
    """

    def __init__(self, named: Mapping[str, NamedModel], cache: CallCache | None = None) -> None:
        self.named = dict(named)
        self._cache = cache
        self._loaded: dict[str, MeteredModel] = {}
        self._turn = asyncio.Lock()

    def is_loaded(self, name: str) -> bool:
        """True if the model can answer at once."""
        return (name or next(iter(self.named))) in self._loaded

    async def load(self, name: str) -> MeteredModel:
        """Return the model of this name, or the first one for an empty name; load it if need be.

        Raises:
            StateError: it is not offered here.
            ModelError: it cannot be loaded, or an extra is missing.
        """
        name = name or next(iter(self.named))
        if name not in self.named:
            offered = ", ".join(self.named)
            raise StateError(f"the model {name!r:.80} is not offered here; choose {offered}, or start with --model")
        async with self._turn:
            if name not in self._loaded:
                self._loaded[name] = await asyncio.to_thread(self._load, self.named[name])
        return self._loaded[name]

    def _load(self, named: NamedModel) -> MeteredModel:
        try:
            return metered(named.load(), named.fingerprint(), self._cache)
        except ImportError as error:
            raise ModelError(str(error)) from error
