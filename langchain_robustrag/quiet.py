"""Runs whose tokens nobody is shown, and whose model need not stream."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.runnables import RunnableConfig


def quieted(config: RunnableConfig) -> RunnableConfig:
    """A child run's config whose handlers learn of the run, but not of its tokens.

    What `astream_events` and LangGraph's `stream_mode="messages"` put into a run makes models stream, and shows what
    they say.

    Args:
        config: a config of its own, whose callbacks are a manager that no other run shares.
    """
    manager = config.get("callbacks")
    if isinstance(manager, BaseCallbackManager):
        manager.handlers = [_quiet(handler) for handler in manager.handlers]
        manager.inheritable_handlers = [_quiet(handler) for handler in manager.inheritable_handlers]
    return config


def _quiet(handler: BaseCallbackHandler) -> BaseCallbackHandler:
    return cast("BaseCallbackHandler", _Quiet(handler)) if hasattr(handler, "tap_output_iter") else handler


class _Quiet:
    """A streaming handler without what tells LangChain that it is one."""

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self._handler = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("tap_output", "__")):
            raise AttributeError(name)
        return getattr(self._handler, name)

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is passed on."""
