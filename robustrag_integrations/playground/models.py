"""The models that a page may ask: those named on the command line, loaded on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from robustrag_integrations._util.redaction import in_one_line
from robustrag_integrations.errors import ModelError
from robustrag_integrations.evaluation.run.cache import CallCache, MeteredModel, metered
from robustrag_integrations.models.exits import called
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.models.thread_pool import POOL, Task
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
        self._loads: dict[str, Task[MeteredModel]] = {}  # under way, or done

    def is_loaded(self, name: str) -> bool:
        """True if the model can answer at once."""
        load = self._loads.get(name or next(iter(self.named)))
        return load is not None and load.done() and load.exception() is None

    async def load(self, name: str) -> MeteredModel:
        """Return the model of this name, or the first one for an empty name; load it if need be.

        A request that is cancelled leaves the load under way to the next one. After a failure the next one tries again.

        Raises:
            StateError: it is not offered here.
            ModelError: it cannot be loaded, or an extra is missing.
        """
        name = name or next(iter(self.named))
        if name not in self.named:
            offered = ", ".join(self.named)
            raise StateError(f"the model {name!r:.80} is not offered here; choose {offered}, or start with --model")
        load = self._loads.get(name)
        if load is None or (load.done() and load.exception() is not None):
            load = self._loads[name] = POOL.submit(self._load, self.named[name])
        return await asyncio.shield(asyncio.wrap_future(load))

    def _load(self, named: NamedModel) -> MeteredModel:
        try:
            return called(lambda: metered(named.load(), named.fingerprint(), self._cache))
        except Exception as error:  # of any kind: a model's libraries raise what they like
            raise ModelError(
                str(error) if isinstance(error, (ModelError, ImportError)) else in_one_line(error)
            ) from error
