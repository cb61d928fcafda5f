"""Prompt-cache markers: Anthropic caches only prefixes that end at a `cache_control` block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.prompt_values import PromptValue

from langchain_robustrag.language_models import wrapped_models
from langchain_robustrag.prompts import BETWEEN


def wants_marks(llm: Any) -> bool:
    """True if all models inside are `ChatAnthropic`, which takes content in blocks; others may refuse a mark."""
    models = [model for model, _ in wrapped_models(llm)]
    return bool(models) and all(any(c.__name__ == "ChatAnthropic" for c in type(m).__mro__) for m in models)


def marked(asked: str | PromptValue, shared: int) -> list[BaseMessage]:
    """Return a prompt's messages with a mark after their first characters; the text stays as it is.

    Args:
        asked: a text, or messages.
        shared: number of characters that all groups' prompts have in common, counted over the messages as one text.
    """
    messages: list[BaseMessage] = [HumanMessage(asked)] if isinstance(asked, str) else asked.to_messages()
    start = 0
    for place, message in enumerate(messages):
        length = len(str(message.text))
        if shared <= start + length:
            inside = max(0, shared - start)
            if str(message.text)[:inside].strip():
                return _with_mark(messages, place, inside)
            return _with_mark(messages, place - 1, None) if place else messages
        start += length + len(BETWEEN)
    return messages


def _with_mark(messages: Sequence[BaseMessage], place: int, end: int | None) -> list[BaseMessage]:
    """Mark a message after this many characters, or after all of it. The API refuses a mark on a block without text."""
    message = messages[place]
    if not isinstance(message.content, str) or not message.content.strip():
        return list(messages)
    head, tail = message.content[:end], "" if end is None else message.content[end:]
    if not tail.strip():
        head, tail = message.content, ""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": head, "cache_control": {"type": "ephemeral"}}]
    blocks += [{"type": "text", "text": tail}] if tail else []
    changed = message.model_copy(update={"content": blocks})
    return [*messages[:place], changed, *messages[place + 1 :]]
