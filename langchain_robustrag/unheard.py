"""A prompt and the model behind it without the runs of a sequence: for calls of which no handler learns."""

from __future__ import annotations

from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import set_config_context
from langchain_core.runnables.utils import coro_with_context


class Unheard(Runnable[dict[str, Any], Any]):
    """What `prompt | llm` replies. It does not stream.

    A sequence opens a run for itself and one for the prompt, which take as long as the model's own bookkeeping.

    Args:
        prompt: is filled in.
        llm: is asked.
    """

    def __init__(self, prompt: BasePromptTemplate[Any], llm: Runnable[Any, Any]) -> None:
        self._prompt, self._llm = prompt, llm

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Ask once."""
        config = _of_a_step(config)
        with set_config_context(config) as context:
            return context.run(self._llm.invoke, self._prompt.format_prompt(**input), config)

    async def ainvoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Ask once without blocking the event loop."""
        config = _of_a_step(config)
        with set_config_context(config) as context:
            asked = self._llm.ainvoke(await self._prompt.aformat_prompt(**input), config)
            return await coro_with_context(asked, context, create_task=True)


def is_plain(prompt: BasePromptTemplate[Any]) -> bool:
    """Whether `prompt | llm` fills the prompt in, asks, and does nothing of the prompt's own besides."""
    names = ("__or__", "pipe", "invoke", "ainvoke")
    return all(getattr(type(prompt), name) is getattr(BasePromptTemplate, name) for name in names)


def _of_a_step(config: RunnableConfig | None) -> RunnableConfig:
    """The config without the name of the run, which is the sequence's."""
    step = RunnableConfig(**(config or {}))
    step.pop("run_name", None)
    return step
