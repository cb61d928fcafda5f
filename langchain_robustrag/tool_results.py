"""Decides what an agent reads of a tool's result: an answer from its documents, the result as it is, or an error."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, RemoveMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.tools import BaseTool
from langchain_core.tools.retriever import RetrieverInput

from langchain_robustrag.retrieved import UnreadableError, blocks_in, documents_in, parsed_texts, records_in, text_of
from langchain_robustrag.tool import RobustRetrieverTool, content_and_artifact, unread
from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import UNKNOWN

_LOG = logging.getLogger(__name__)
# Arguments of lookup tools, which return texts that others wrote.
_LOOKS_UP = frozenset(
    {
        *("query", "queries", "question", "q", "search", "search_query", "search_term", "search_terms", "keyword"),
        *("keywords", "term", "terms", "topic", "url", "urls", "uri", "link", "links"),
    }
)
_FROM_TEXT = (
    "the documents were read out of text, all of which one source may have written: no radius; let the tool return "
    "documents as its artifact (response_format='content_and_artifact')"
)

Asking: TypeAlias = Generator[list[Document], Any, Any]


class ToolCall:
    """A tool call, and the value that its function returned before LangChain made text of it.

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
        self.entered = not isinstance(self.tool, BaseTool)
        if isinstance(self.tool, BaseTool):
            # The functions stay the given tool's own, bound to it, so that whatever it remembers it still remembers.
            self.watched = self.tool.model_copy()
            object.__setattr__(self.watched, "_run", self._noting(self.tool._run))
            object.__setattr__(self.watched, "_arun", self._anoting(self.tool._arun))

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
        named: tools whose results are retrieved text whatever they look like.
        trusted: tools whose results pass unread.
        strict: True if unknown tools are refused when no documents are found in what they return.
        one_group: True if documents that were read out of text share a group.
        supporting_only: True if artifacts show those documents alone that support the answer.
        passed: the unknown tools whose results have passed.
    """

    named: frozenset[str]
    trusted: frozenset[str]
    strict: bool
    one_group: bool
    supporting_only: bool = False
    passed: set[str] = field(default_factory=set)

    def retrieves(self, name: str, tool: Any) -> bool:
        """True if a tool's results are retrieved text whatever they look like."""
        if name in self.named or getattr(tool, "args_schema", None) is RetrieverInput:
            return True
        return not self.strict and name not in self.trusted and _looks_up(tool)

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
            return _refused(call, str(error))

    def _item(self, call: ToolCall, result: Any, raw: Any) -> Asking:
        if isinstance(result, BaseMessage):
            return (yield from self._message(call, result, raw))
        return (yield from self._command(call, result))

    def _command(self, call: ToolCall, command: Any) -> Asking:
        """Read a command's messages one by one; the rest of it may be in the state, but not on its way to a model."""
        update, retrieved = getattr(command, "update", None), self.retrieves(call.name, call.tool)
        sent = [s.arg for s in _listed(getattr(command, "goto", ())) if hasattr(s, "arg")]
        if documents_in(sent) or (retrieved and sent):
            return _refused(call, "it sends what it retrieved to another node")
        pairs, rebuild = _pairs(update)
        if pairs is None:
            if retrieved or documents_in(update):
                return _refused(call, f"its command's update is a {type(update).__name__}, which cannot be read")
            return self._through(call, command)
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
        if isinstance(message, ToolMessage) and message.status == "error" and not call.entered:
            return message  # the arguments were wrong; the tool never ran
        documents, from_text = self._documents(call, message, raw)
        if documents:
            return (yield from self._answered(call, message, documents, from_text=from_text))
        if not self.retrieves(call.name, call.tool):
            return self._through(call, message)
        text = text_of(message.content)
        if text is None:
            return _refused(call, "it returned something other than text or documents", message)
        if not text.strip():
            return message
        if isinstance(message, ToolMessage) and message.status == "error":
            _LOG.warning("tool %r failed: %s", call.name, printable(text, 300))
            return _refused(call, "it failed; what it said is in the log", message)
        _LOG.warning(
            "tool %r gave no documents as its artifact: its whole content is one group, with no guarantee. Make it "
            "with response_format='content_and_artifact'",
            call.name,
        )
        return (yield from self._answered(call, message, [Document(text)], from_text=True))

    def _documents(self, call: ToolCall, message: BaseMessage, raw: Any) -> tuple[list[Document], bool]:
        """Return the documents to answer from, and whether they were read out of text."""
        content = message.content if isinstance(message.content, list) else None
        places = [getattr(message, "artifact", None), raw, content]
        if (self.retrieves(call.name, call.tool) or documents_in(content)) and (blocks := blocks_in(content)):
            return blocks, False
        readers = [documents_in, records_in] if self.retrieves(call.name, call.tool) else [documents_in]
        for reader in readers:
            for place in places:
                if found := reader(place):
                    return found, False
        parsed = parsed_texts([message.content, raw])
        for reader in readers:
            if found := reader(parsed):
                return ([Document(text_of(message.content) or "")] if self.one_group else found), True
        return [], False

    def _answered(self, call: ToolCall, message: BaseMessage, documents: list[Document], *, from_text: bool) -> Asking:
        answered = yield documents
        if isinstance(answered, Exception):
            return _refused(call, unread(answered), message)
        if from_text:
            report: RobustAnswer = answered["robustness"]
            report = report.changed(
                radius=0, radius_verbatim=0, warnings=(*report.warnings, _FROM_TEXT), determinism=UNKNOWN
            )
            answered = {**answered, "robustness": report}
        content, artifact = content_and_artifact(answered, documents, self.supporting_only)
        if not isinstance(message, ToolMessage):
            return message.model_copy(update={"content": content})
        return message.model_copy(update={"content": content, "artifact": artifact, "status": "success"})

    def _through(self, call: ToolCall, result: Any) -> Any:
        """Pass or refuse a result in which nothing was recognised; a passed one is logged once."""
        if self.strict:
            return _refused(call, "it is in neither tools= nor trusted= of a strict RobustRetrievalMiddleware", result)
        if call.name not in self.passed:
            self.passed.add(call.name)
            _LOG.warning(
                "what tool %r returned reached the agent as it is: it takes no question or address, and no documents "
                "were recognised in what it returned. List the "
                "tool in tools= to have it answered from, or in trusted= if nobody else writes what it returns; "
                "strict=True refuses such tools",
                call.name,
            )
        return result


def _looks_up(tool: Any) -> bool:
    """True if a tool takes a question, search terms or an address."""
    try:
        names = {str(name).lower() for name in tool.args} if isinstance(tool, BaseTool) else set()
    except Exception:  # a schema of a kind that cannot be read: it may look up anything
        return True
    return not names.isdisjoint(_LOOKS_UP)


def _refused(call: ToolCall, why: str, message: Any = None) -> Any:
    """Return a tool error in place of a result, or of one message of it."""
    text = f"The result of {call.name} was withheld: {why}."
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
