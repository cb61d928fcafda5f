"""Traces of cancelled calls: LangChain closes the chain around a model then, and leaves the run of the model open."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig

from langchain_robustrag.replies import Seen


class OpenRuns(Seen):
    """Knows, too, which models' runs of one call have begun and not ended."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[UUID, dict[str, Any]] = {}

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A model was called with a text."""
        self._open[run_id] = kwargs

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A model was called with messages."""
        self._open[run_id] = kwargs

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """It has replied."""
        self._open.pop(kwargs["run_id"], None)
        super().on_llm_end(response, **kwargs)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It has failed."""
        self._open.pop(run_id, None)

    async def close(self, error: BaseException, config: RunnableConfig) -> None:
        """Say of all runs that are still open that they ended in this, to the handlers of the call's config."""
        handlers = list(getattr(config.get("callbacks"), "handlers", ()))
        while self._open:
            run_id, known = self._open.popitem()
            run = AsyncCallbackManagerForLLMRun(
                run_id=run_id,
                handlers=handlers,
                inheritable_handlers=handlers,
                parent_run_id=known.get("parent_run_id"),
                tags=known.get("tags"),
                metadata=known.get("metadata"),
            )
            await run.on_llm_error(error, response=LLMResult(generations=[]))
