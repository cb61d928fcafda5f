"""Reasoning in the text of a reply goes before a parser behind the model reads it; the stock parsers fail on it."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import BaseOutputParser, StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableSequence

from langchain_robustrag.replies import text_of
from robustrag_integrations.reply_text.reasoning import parts_of


def before_parsers(runnable: Any) -> Any:
    """A sequence whose parsers read answers alone; anything else as it is.

    `StrOutputParser` changes nothing, so that the reply layer still sees all of the text behind it.
    """
    if not isinstance(runnable, RunnableSequence):
        return runnable
    steps: list[Any] = []
    for step in runnable.steps:
        if isinstance(step, BaseOutputParser) and not isinstance(step, StrOutputParser):
            steps.append(RunnableLambda(_answer, name="without_reasoning"))
        steps.append(step)
    return RunnableSequence(*steps, name=runnable.name) if len(steps) > len(runnable.steps) else runnable


def _answer(said: Any) -> Any:
    """The reply without reasoning in its text; as it is where that never ends, which no parser takes for an answer."""
    if not isinstance(said, (BaseMessage, str)):
        return said
    parts = parts_of(text_of(said))
    if parts.unfinished or not parts.reasoning_chars:
        return said
    return said.model_copy(update={"content": parts.answer}) if isinstance(said, BaseMessage) else parts.answer
