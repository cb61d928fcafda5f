"""A Runnable that is one run in a trace. Subclasses implement the invoked, awaited and streamed answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import patch_config
from pydantic import ConfigDict

Output = TypeVar("Output")


class OneRun(RunnableSerializable[Any, Output]):
    """A Runnable whose input is a dict, with no other arguments. Subclasses implement `_answer`, `_aanswer`, `_pieces`
    and `_apieces`. Behind another Runnable it begins when its input is complete, as LangChain's `transform` does."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Answer once."""
        _refuse_arguments(kwargs)
        return self._call_with_config(self._answer, input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Answer once without blocking the event loop; cancelling it cancels the model calls."""
        _refuse_arguments(kwargs)
        return await self._acall_with_config(self._aanswer, input, config)

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Output]:
        """The aggregated answer in pieces; no isolated response is ever among them."""
        _refuse_arguments(kwargs)
        yield from self._transform_stream_with_config(iter([input]), self._streamed, config)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[Output, None]:
        """`stream` without blocking the event loop."""
        _refuse_arguments(kwargs)

        async def once() -> AsyncIterator[Any]:
            yield input

        async for piece in self._atransform_stream_with_config(once(), self._astreamed, config):
            yield piece

    def _streamed(self, inputs: Iterator[Any], run_manager: Any, config: RunnableConfig) -> Iterator[Output]:
        for given in inputs:
            yield from self._pieces(given, run_manager, config)

    async def _astreamed(
        self, inputs: AsyncIterator[Any], run_manager: Any, config: RunnableConfig
    ) -> AsyncIterator[Output]:
        async for given in inputs:
            async with aclosing(self._apieces(given, run_manager, config)) as pieces:
                async for piece in pieces:
                    yield piece

    def _answer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Output:
        raise NotImplementedError

    async def _aanswer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Output:
        raise NotImplementedError

    def _pieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Iterator[Output]:
        raise NotImplementedError

    def _apieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Any:
        raise NotImplementedError


def child_config(config: RunnableConfig, run_manager: Any, tag: str) -> RunnableConfig:
    """Return the config of a child run: the chain's own, without its run name and run id."""
    return patch_config(config, callbacks=run_manager.get_child(tag))


def _refuse_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise TypeError for arguments bound to a chain or passed to a call: no model would be given them."""
    if arguments:
        raise TypeError(
            f"a robust chain passes no arguments on, got {', '.join(sorted(arguments))}; bind to the model what is for "
            f"the model: llm.bind({next(iter(arguments))}=...)"
        )
