"""Our own handlers in an event loop: LangChain keeps events from everybody else where a handler runs inline."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler


def in_loop(handler: BaseCallbackHandler) -> BaseCallbackHandler:
    """A handler for asynchronous calls, whose methods are awaited where they are called, and in no thread.

    `run_inline` would do the same. But where any handler has it, LangChain (1.0 to 1.8) tells the start of a completion
    model to handlers that have it, and to no other: traces and event streams would lose these runs.
    """
    return cast("BaseCallbackHandler", _InLoop(handler))


class _InLoop:
    run_inline = False

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self._handler = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._handler, name)
        if not name.startswith("on_"):
            return found

        async def awaited(*args: Any, **kwargs: Any) -> None:
            found(*args, **kwargs)

        return awaited
