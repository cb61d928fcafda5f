"""Decides what an agent reads of a tool's result: an answer from its documents, or an error; the result if trusted."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools.retriever import RetrieverInput
from langchain_core.tracers.context import register_configure_hook

from langchain_robustrag.callbacks import Heard, in_loop
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

    Attributes:
        watched: the tool to run in place of the given one: the same, but that what it returns is noted.
        entered: True if its function ran, as far as can be seen.
        returned: the function's result, as objects; None if it did not, or cannot be seen.
    """

    def __init__(self, request: Any) -> None:
        self.name, self.id = request.tool_call["name"], str(request.tool_call["id"] or "")
        self.tool = self.watched = request.tool
        self.returned: Any = None
        self._heard = Heard()
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
        if not isinstance(result, ToolMessage):  # such as a command to the graph, which may hold anything
            return _withheld(call, f"it is a {type(result).__name__}, and no tool message")
        try:
            return (yield from self._message(call, result))
        except UnreadableError as error:
            return _withheld(call, str(error))

    def _message(self, call: ToolCall, message: ToolMessage) -> Asking:
        """Return a message with an answer as its content, unchanged, or as an error."""
        if message.status == "error":
            why = "it failed" if call.tool is not None else "there is no tool of that name"
            if not call.entered:  # wrong arguments, or other middleware; what it says may hold what was retrieved
                takes = [f"{name} ({schema.get('type', 'of any type')})" for name, schema in call.tool.args.items()]
                why = f"the tool did not run; it takes {', '.join(takes) or 'no arguments'}"
            return _withheld(call, why, message)
        if documents := self._documents(call, message):
            return (yield from self._answered(call, message, documents))
        text = text_of(message.content)
        if text is not None and not text.strip():
            return message
        if not self.retrieves(call.name, call.tool):
            return _withheld(call, _UNKNOWN, message)
        if text is None:
            return _withheld(call, "it is something other than text or documents", message)
        return (yield from self._answered(call, message, [Document(text)]))

    def _documents(self, call: ToolCall, message: ToolMessage) -> list[Document]:
        """Return the documents to answer from. Text has no structure that counts: none is ever read out of it."""
        content = message.content if isinstance(message.content, list) else None
        raw = None if isinstance(call.returned, BaseMessage) else call.returned
        places = [message.artifact, raw, content]
        known = self.retrieves(call.name, call.tool)
        if known and (blocks := blocks_in(content)):
            return blocks
        if found := next(filter(None, (documents_in(place, objects_only=not known) for place in places)), call.heard):
            return found
        return next(filter(None, map(records_in, places)), []) if known else []

    def _answered(self, call: ToolCall, message: ToolMessage, documents: list[Document]) -> Asking:
        answered = yield documents
        if isinstance(answered, Exception):
            return _withheld(call, unread(answered), message)
        content, artifact = content_and_artifact(answered, documents, self.supporting_only)
        status = "error" if is_withheld(artifact) else "success"
        return message.model_copy(update={"content": content, "artifact": artifact, "status": status})


def _withheld(call: ToolCall, why: str, message: ToolMessage | None = None) -> ToolMessage:
    """Return a tool error in place of a result."""
    text = f"The result of {call.name} was withheld: {why}. {GO_ON}"
    kept = {} if message is None else {"id": message.id}
    call_id = call.id if message is None else message.tool_call_id
    return ToolMessage(text, tool_call_id=call_id, name=call.name, status="error", **kept)
