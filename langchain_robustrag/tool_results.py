"""Decides what an agent reads of a tool's result: an answer from its documents, or an error; the result if trusted."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, RemoveMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.tools import BaseTool
from langchain_core.tools.retriever import RetrieverInput
from langchain_core.tracers.context import register_configure_hook

from langchain_robustrag.callbacks import HeardDocuments, in_loop
from langchain_robustrag.retrieved import UnreadableError, blocks_in, documents_in, records_in, text_of
from langchain_robustrag.tool import GO_ON, RobustRetrieverTool, content_and_artifact, is_withheld, unread

_UNKNOWN = "no documents were found in it, and the tool is in neither tools= nor trusted= of RobustRetrievalMiddleware"
_HEARING: ContextVar[BaseCallbackHandler | None] = ContextVar("robustrag_hearing", default=None)
register_configure_hook(_HEARING, inheritable=True)

Asking: TypeAlias = Generator[list[Document], Any, Any]


class ToolCall:
    """A tool call, with what its function returned before LangChain made text of it, and what its retrievers did.

    Args:
        request: the call, as a middleware has it.
        history: the messages that the agent has read already.

    Attributes:
        watched: the tool to run in place of the given one: the same, but that what it returns is noted.
        entered: True if its function ran, as far as can be seen.
        returned: the function's result, as objects; None if it did not, or cannot be seen.
    """

    def __init__(self, request: Any, history: Sequence[Any]) -> None:
        self.name, self.id = request.tool_call["name"], str(request.tool_call["id"] or "")
        self.tool = self.watched = request.tool
        self.history, self.returned = history, None
        self._heard = HeardDocuments()
        self.entered = not isinstance(self.tool, BaseTool)
        if isinstance(self.tool, BaseTool):
            # The functions stay the given tool's own, bound to it, so that whatever it remembers it still remembers.
            self.watched = self.tool.model_copy()
            object.__setattr__(self.watched, "_run", self._noting(self.tool._run))
            object.__setattr__(self.watched, "_arun", self._anoting(self.tool._arun))

    @property
    def heard(self) -> list[Document]:
        """The documents that retrievers returned while the tool ran."""
        return self._heard.documents

    @contextmanager
    def hearing(self, *, in_a_loop: bool = False) -> Iterator[None]:
        """Listen to the retrievers that are asked while the block runs."""
        token = _HEARING.set(in_loop(self._heard) if in_a_loop else self._heard)
        try:
            yield
        finally:
            _HEARING.reset(token)

    def _noting(self, run: Any) -> Any:
        @wraps(run)
        def noting(*args: Any, **kwargs: Any) -> Any:
            self.entered = True
            self.returned = run(*args, **kwargs)
            return self.returned

        return noting

    def _anoting(self, arun: Any) -> Any:
        @wraps(arun)
        async def anoting(*args: Any, **kwargs: Any) -> Any:
            self.entered = True
            self.returned = await arun(*args, **kwargs)
            return self.returned

        return anoting


@dataclass(frozen=True)
class ToolResults:
    """The rules for tool results.

    Attributes:
        named: tools whose results are documents whatever they look like.
        trusted: tools whose results pass unread.
        supporting_only: True if artifacts show those documents alone that support the answer.
    """

    named: frozenset[str]
    trusted: frozenset[str]
    supporting_only: bool = False

    def retrieves(self, name: str, tool: Any) -> bool:
        """True if a tool is known to return documents, as dicts, rows, blocks or one text where not as objects."""
        return name in self.named or getattr(tool, "args_schema", None) is RetrieverInput

    def passes(self, name: str, tool: Any) -> bool:
        """True if a tool's results need no reading: they are robust answers already, or trusted."""
        return name in self.trusted or (name not in self.named and type(tool) is RobustRetrieverTool)

    def read(self, call: ToolCall, result: Any) -> Asking:
        """Return the result that the agent may read.

        Yields:
            Documents to answer from; what is sent back is the answer with its report, or the exception.
        """
        if self.passes(call.name, call.tool):
            return result
        try:
            if not isinstance(result, list):
                raw = None if isinstance(call.returned, BaseMessage) else call.returned
                return (yield from self._item(call, result, raw))
            read: list[Any] = []
            for item in result:
                read += [(yield from self._item(call, item, None))]
            return read
        except UnreadableError as error:
            return _withheld(call, str(error))

    def _item(self, call: ToolCall, result: Any, raw: Any) -> Asking:
        if isinstance(result, BaseMessage):
            return (yield from self._message(call, result, raw))
        return (yield from self._command(call, result))

    def _command(self, call: ToolCall, command: Any) -> Asking:
        """Read a command's messages one by one; the rest of it may be in the state, but not on its way to a model."""
        update = getattr(command, "update", None)
        if any(hasattr(sent, "arg") for sent in _listed(getattr(command, "goto", ()))):
            return _withheld(call, "it sends what it found to another node")
        pairs, rebuild = _pairs(update)
        if pairs is None:
            return _withheld(call, f"its command's update is a {type(update).__name__}, which cannot be read")
        changed = []
        for key, value in pairs:
            if key == "messages" or _is_messages(value):
                value = yield from self._messages(call, value)
            changed.append((key, value))
        return replace(command, update=rebuild(changed))

    def _messages(self, call: ToolCall, value: Any) -> Asking:
        read = []
        for message in convert_to_messages(_listed(value)):
            if isinstance(message, RemoveMessage) or any(message is m or message == m for m in call.history):
                read.append(message)
            else:
                read.append((yield from self._message(call, message, None)))
        return read

    def _message(self, call: ToolCall, message: BaseMessage, raw: Any) -> Asking:
        """Return a message with an answer as its content, unchanged, or as an error."""
        if isinstance(message, ToolMessage) and message.status == "error":  # wrong arguments: the tool never ran
            why = "it failed" if call.tool is not None else "there is no tool of that name"
            return _withheld(call, why, message) if call.entered else message
        if documents := self._documents(call, message, raw):
            return (yield from self._answered(call, message, documents))
        text = text_of(message.content)
        if text is not None and not text.strip():
            return message
        if not self.retrieves(call.name, call.tool):
            return _withheld(call, _UNKNOWN, message)
        if text is None:
            return _withheld(call, "it is something other than text or documents", message)
        return (yield from self._answered(call, message, [Document(text)]))

    def _documents(self, call: ToolCall, message: BaseMessage, raw: Any) -> list[Document]:
        """Return the documents to answer from. Text has no structure that counts: none is ever read out of it."""
        content = message.content if isinstance(message.content, list) else None
        places = [getattr(message, "artifact", None), raw, content]
        known = self.retrieves(call.name, call.tool)
        if known and (blocks := blocks_in(content)):
            return blocks
        if found := next(filter(None, (documents_in(place, objects_only=not known) for place in places)), call.heard):
            return found
        return next(filter(None, map(records_in, places)), []) if known else []

    def _answered(self, call: ToolCall, message: BaseMessage, documents: list[Document]) -> Asking:
        answered = yield documents
        if isinstance(answered, Exception):
            return _withheld(call, unread(answered), message)
        content, artifact = content_and_artifact(answered, documents, self.supporting_only)
        if not isinstance(message, ToolMessage):
            return message.model_copy(update={"content": content})
        status = "error" if is_withheld(artifact) else "success"
        return message.model_copy(update={"content": content, "artifact": artifact, "status": status})


def _withheld(call: ToolCall, why: str, message: Any = None) -> Any:
    """Return a tool error in place of a result, or of one message of it."""
    text = f"The result of {call.name} was withheld: {why}. {GO_ON}"
    if isinstance(message, BaseMessage) and not isinstance(message, ToolMessage):
        return message.model_copy(update={"content": text})
    kept = {"id": message.id} if isinstance(message, ToolMessage) else {}
    call_id = message.tool_call_id if isinstance(message, ToolMessage) else call.id
    return ToolMessage(text, tool_call_id=call_id, name=call.name, status="error", **kept)


def _pairs(update: Any) -> tuple[list[tuple[Any, Any]] | None, Any]:
    """Return a command's update as pairs of key and value, and a function that rebuilds it; None for other kinds."""
    if update is None:
        return [], lambda pairs: None
    if isinstance(update, Mapping):
        return list(update.items()), dict
    if isinstance(update, (list, tuple)):
        if update and all(isinstance(u, tuple) and len(u) == 2 and isinstance(u[0], str) for u in update):
            return list(update), list
        return [("messages", update)], lambda pairs: pairs[0][1]
    return None, None


def _is_messages(value: Any) -> bool:
    return any(isinstance(item, BaseMessage) for item in _listed(value))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
