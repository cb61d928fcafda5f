"""A synthesizer's `_streaming` flag that two conversations can toggle at the same time.

`CondenseQuestionChatEngine` sets `synthesizer._streaming` around each query and puts it back. On a shared synthesizer
two concurrent chats would read each other's setting. Here what is set after construction holds in the thread or task
that set it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

_TOGGLED: ContextVar[Mapping[object, bool]] = ContextVar("robustrag_streaming", default=MappingProxyType({}))


class StreamingFlag:
    """One synthesizer's flag."""

    def __init__(self, default: bool) -> None:
        self.default = bool(default)

    def get(self) -> bool:
        """The flag in this thread or task."""
        return _TOGGLED.get().get(self, self.default)

    def set(self, value: bool) -> None:
        """Set the flag in this thread or task."""
        others = {flag: on for flag, on in _TOGGLED.get().items() if flag is not self}
        _TOGGLED.set(others if bool(value) == self.default else {**others, self: bool(value)})
