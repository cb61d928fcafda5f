"""The report of an answer: as an event, and on the error of an output parser."""

from __future__ import annotations

from contextlib import suppress

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_callback_manager_for_config

from robustrag_integrations.answer import RobustAnswer

REPORT_EVENT = "robustrag_report"


def has_handlers(config: RunnableConfig) -> bool:
    """Whether anybody learns of what runs with this config: handlers in it, in the context or of the environment."""
    return bool(get_callback_manager_for_config(config).handlers)


def send_report(answer: RobustAnswer, config: RunnableConfig) -> None:
    """Tell whoever listens to the run of an answer; writing a report that nobody reads would take as long as a call."""
    if has_handlers(config):
        dispatch_custom_event(REPORT_EVENT, answer.to_dict(), config=config)


async def asend_report(answer: RobustAnswer, config: RunnableConfig) -> None:
    """`send_report` in an event loop."""
    if has_handlers(config):
        await adispatch_custom_event(REPORT_EVENT, answer.to_dict(), config=config)


def attach(error: Exception, answer: RobustAnswer) -> None:
    """Give an exception the answer as its `robustness`, if it has room for it."""
    with suppress(AttributeError, TypeError):
        error.robustness = answer  # type: ignore[attr-defined]
