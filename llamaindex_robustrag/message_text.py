"""Makes one text of a prompt's messages, as a prompt is one text to the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from llama_index.core.base.llms.types import ChatMessage, MessageRole

_Self = TypeVar("_Self", bound="MessageText")
BETWEEN = "\n\n"  # between two messages


class MessageText(str):
    """All messages as one text that keeps the boundaries between them.

    Attributes:
        messages: role and text of each.
    """

    __slots__ = ("messages",)
    messages: tuple[tuple[MessageRole, str], ...]

    @classmethod
    def of(cls: type[_Self], messages: Sequence[tuple[MessageRole, str]]) -> _Self:
        """Return the text of these messages."""
        made = cls(BETWEEN.join(text for _, text in messages))
        made.messages = tuple(messages)
        return made

    def replaced(self, start: int, end: int, by: str) -> MessageText:
        """Return the messages with the characters from `start` to `end`, all within one of them, replaced."""
        changed, at = [], 0
        for role, text in self.messages:
            inside = at <= start and end <= at + len(text)
            changed.append((role, text[: start - at] + by + text[end - at :] if inside else text))
            at += len(text) + len(BETWEEN)
        return MessageText.of(changed)


def as_messages(prompt: str, conversation: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a prompt's messages; a conversation follows the system messages that it starts with."""
    if not isinstance(prompt, MessageText):
        return [*conversation, ChatMessage(role=MessageRole.USER, content=prompt)]
    messages = [ChatMessage(role=role, content=text) for role, text in prompt.messages]
    first = next((i for i, m in enumerate(messages) if m.role != MessageRole.SYSTEM), len(messages))
    return [*messages[:first], *conversation, *messages[first:]]
