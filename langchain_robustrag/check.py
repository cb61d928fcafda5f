"""Runs one question through a program, with canaries in what it retrieves, and tells which prompts they reach."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import isawaitable
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool

from langchain_robustrag.audit import FIX, IsolationAudit, listening
from langchain_robustrag.questions import QUESTION_KEYS, last_human_text, usual_question
from langchain_robustrag.tool import RobustRetrieverTool
from robustrag_integrations.audit.canaries import Canaries, CheckedRun
from robustrag_integrations.audit.prompts import Audit
from robustrag_integrations.errors import UndefendedError

_SOURCE = "https://canary.example"
_DEEPEST = 20
_CHECKING = threading.Lock()


def assert_defended(
    app: Any,
    question: Any,
    config: RunnableConfig | None = None,
    *,
    trusted: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """Ask a program one question, and raise if a single planted text reaches a prompt that is not isolated.

    The question is really asked, twice: every retriever returns a planted document, which orders the model to repeat a
    canary, the first time alone, then in front of those that it found, each of which ends with a canary. So does the
    text of every tool. The run-time audit looks for these canaries, for texts of several sources and for answers
    without a radius in every prompt but the isolated ones, and for tools that the model's provider runs. A model that
    obeys every text makes the check sharper.

    Nothing is vouched for but what ran for this question, by way of LangChain's retrievers, tools and models. One check
    runs at a time in a process, and others that use LangChain meanwhile are given canaries, too.

    Args:
        app: a chain, an agent, a compiled graph, or a function that takes the question.
        question: a str, which is given as `messages`, `input`, `question`, `query` or alone, whatever the app takes;
            or the app's whole input.
        config: the config to run it with.
        trusted: names of tools whose results nobody else writes: they get no canary.
        stubs: for each tool that acts (mail, money), what it returns in place of being run.

    Returns:
        What had canaries, and what did not run or could not be seen: nothing is known of that.

    Raises:
        UndefendedError: a prompt that holds a canary, texts of several sources or an answer without a radius, or a
            model with hosted tools; each with the runs that led there. Also if no canary could be planted.
        ValueError: a name in `trusted` or `stubs` that the program showed no tool of.
        RuntimeError: another check is running.

    Examples:
        ```python
        checked = assert_defended(agent, "Who won?", trusted=["add"], stubs={"send_mail": "sent"})
        print(checked)  # with what did not run
        ```
    """
    with _checking(app, question, trusted, stubs) as (canaries, audit, given):
        for audit.alone in (True, False):
            app.invoke(given, config) if isinstance(app, Runnable) else app(given)
    return canaries.checked(audit.findings)


async def aassert_defended(
    app: Any,
    question: Any,
    config: RunnableConfig | None = None,
    *,
    trusted: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """`assert_defended` in an event loop; a function as `app` may be asynchronous."""
    with _checking(app, question, trusted, stubs) as (canaries, audit, given):
        for audit.alone in (True, False):
            running = app.ainvoke(given, config) if isinstance(app, Runnable) else app(given)
            if isawaitable(running):
                await running
    return canaries.checked(audit.findings)


class _CanaryAudit(IsolationAudit):
    """An audit that also tells what ran, and what it saw no canary in."""

    def __init__(self, canaries: Canaries) -> None:
        super().__init__()
        self._canaries, self._audit = canaries, Audit("log", FIX, canaries)
        self._given: list[tuple[list[Any], list[Any]]] = []
        self.alone = True

    def plant(self, run_id: UUID, documents: Any) -> None:
        """Put a document with an order in front of a retriever's, or alone, and a mark into the others."""
        name = self._path(run_id)[1]
        self._canaries.ran(name)
        if not isinstance(documents, list):
            self._canaries.unseen(name, f"no canary could be planted in the {type(documents).__name__} it returned")
            return
        self._given.append((documents, list(documents)))
        others = [] if self.alone else documents
        marked = [_with_text(d, f"{d.page_content} {self._canaries.mark(name)}") for d in others]
        documents[:] = [_planted_document(documents, self._canaries.order(name)), *marked]

    def clean_up(self) -> None:
        """Give the lists back what was in them: retrievers may keep them."""
        for documents, given in reversed(self._given):
            documents[:] = given

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note a node of a graph that runs."""
        super().on_chain_start(serialized, inputs, **kwargs)
        if node := (kwargs.get("metadata") or {}).get("langgraph_node"):
            self._canaries.ran(_node(node))

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        """Note the tools that a model may call."""
        offered = (kwargs.get("invocation_params") or {}).get("tools") or ()
        self._canaries.offered(name for tool in offered if (name := _name_of(tool)))
        super().on_chat_model_start(serialized, messages, **kwargs)


@contextmanager
def _checking(
    app: Any, question: Any, trusted: Collection[str], stubs: Mapping[str, Any] | None
) -> Iterator[tuple[Canaries, _CanaryAudit, Any]]:
    """Plant canaries in what retrievers and tools return, and audit all prompts, while the block runs."""
    if not (isinstance(app, Runnable) or callable(app)):
        raise TypeError(f"cannot run a {type(app).__name__}; pass the chain, agent, compiled graph or function")
    canaries = Canaries(_text_of(question), trusted, stubs)
    canaries.offered(_nodes_of(app))
    if not _CHECKING.acquire(blocking=False):
        raise RuntimeError("another assert_defended is running in this process; run them one after the other")
    audit = _CanaryAudit(canaries)
    replaced: list[tuple[Any, str, Any]] = [
        (BaseTool, "run", _tool_with_canaries(BaseTool.run, "_run", canaries)),
        (BaseTool, "arun", _tool_with_canaries(BaseTool.arun, "_arun", canaries)),
        *(
            (manager, "on_retriever_end", _ending_with_a_canary(manager.on_retriever_end, audit))
            for manager in (CallbackManagerForRetrieverRun, AsyncCallbackManagerForRetrieverRun)
        ),
    ]
    stock = [(cls, name, getattr(cls, name)) for cls, name, _ in replaced]
    try:
        for cls, name, method in replaced:
            setattr(cls, name, method)
        with listening(audit):
            yield canaries, audit, _input_of(app, question)
    except Exception as error:
        if audit.findings:  # which may be why it failed
            raise UndefendedError(audit.findings) from error
        raise
    finally:
        for cls, name, method in stock:
            setattr(cls, name, method)
        audit.clean_up()
        _CHECKING.release()


def _ending_with_a_canary(method: Any, audit: _CanaryAudit) -> Any:
    """Return `on_retriever_end` of a run manager that changes what the retriever is about to return.

    That method is called by whatever reference to `invoke` a program holds.
    """

    @wraps(method)
    def around(self: Any, documents: Any, **kwargs: Any) -> Any:
        audit.plant(self.run_id, documents)
        return method(self, documents, **kwargs)

    return around


def _tool_with_canaries(method: Any, inner: str, canaries: Canaries) -> Any:
    """Return `run` or `arun` of tools with a canary in what the inner method returns."""

    @wraps(method)
    def around(self: Any, *args: Any, **kwargs: Any) -> Any:
        # The inner method stays the given tool's own, bound to it, so that whatever it remembers it still remembers.
        run, watched, name = getattr(self, inner), self.model_copy(), self.name

        @wraps(run)
        def running(*given: Any, **named: Any) -> Any:
            canaries.ran(name)
            return (
                _stub_of(self, canaries) if name in canaries.stubs else _planted(self, run(*given, **named), canaries)
            )

        @wraps(run)
        async def arunning(*given: Any, **named: Any) -> Any:
            canaries.ran(name)
            if name in canaries.stubs:
                return _stub_of(self, canaries)
            return _planted(self, await run(*given, **named), canaries)

        object.__setattr__(watched, inner, arunning if inner.startswith("_a") else running)
        return method(watched, *args, **kwargs)

    return around


def _stub_of(tool: BaseTool, canaries: Canaries) -> Any:
    value = canaries.stubs[tool.name]
    return value if tool.response_format == "content" or isinstance(value, tuple) else (value, None)


def _planted(tool: BaseTool, value: Any, canaries: Canaries) -> Any:
    """Return what a tool returned, with a canary."""
    if tool.name in canaries.trusted or type(tool) is RobustRetrieverTool:
        return value
    order = canaries.order(tool.name)
    planted, done = _with_order(value, order)
    if not done:
        canaries.unseen(tool.name, f"no canary could be planted in the {type(value).__name__} it returned", order)
    return planted


def _with_order(value: Any, order: str, depth: int = 0) -> tuple[Any, bool]:
    """Return a value with the order in one of its texts, or as one more document; and whether there was a place."""
    if isinstance(value, str):
        return _in_text(value, order, depth), True
    if isinstance(value, Document):
        return _with_text(value, f"{value.page_content}\n\n{order}"), True
    if depth > _DEEPEST:
        return value, False
    if isinstance(value, list) and value and all(isinstance(item, Document) for item in value):
        return [_planted_document(value, order), *value], True
    if isinstance(value, tuple) and len(value) == 2:  # content and artifact, or a document with its score
        pair = [_with_order(item, order, depth + 1) for item in value]
        return tuple(item for item, _ in pair), any(done for _, done in pair)
    if isinstance(value, (list, tuple)):
        items = list(value)
        done = _in_one(items, range(len(items)), order, depth)
        return (items if isinstance(value, list) else tuple(items)), done
    if isinstance(value, Mapping):
        changed = dict(value)
        return changed, _in_one(changed, _likeliest(changed), order, depth)
    if isinstance(value, BaseMessage):
        content, done = _with_order(value.content, order, depth + 1)
        artifact, more = _with_order(getattr(value, "artifact", None), order, depth + 1)
        fields = {"content": content, **({"artifact": artifact} if more else {})}
        return value.model_copy(update=fields), done or more
    if type(value).__name__ == "Command":
        update, done = _with_order(value.update, order, depth + 1)
        return type(value)(graph=value.graph, update=update, resume=value.resume, goto=value.goto), done
    return (f"{value}\n\n{order}", True) if isinstance(value, (int, float)) and depth == 0 else (value, False)


def _in_text(text: str, order: str, depth: int) -> str:
    try:
        parsed = json.loads(text) if text.lstrip().startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        parsed = None
    if parsed is not None:
        planted, done = _with_order(parsed, order, depth + 1)
        return json.dumps(planted) if done else f"{text}\n\n{order}"
    return f"{text}\n\n{order}"


def _in_one(items: Any, keys: Any, order: str, depth: int) -> bool:
    """Plant the order in the first of these items that has a place for it: one planted text, and no more."""
    for key in keys:
        items[key], done = _with_order(items[key], order, depth + 1)
        if done:
            return True
    return False


def _likeliest(mapping: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of a mapping, those of nested values and long texts before those of names and addresses."""
    shown = {key: value for key, value in mapping.items() if key not in ("type", "id")}
    return sorted(shown, key=lambda key: -len(shown[key]) if isinstance(shown[key], str) else -sys.maxsize)


def _planted_document(documents: list[Document], order: str) -> Document:
    """Return a document like these, with the order as its text."""
    like = documents[0] if documents else Document("")
    named = {key: _SOURCE for key in ("source", "url") if key in like.metadata or key == "source"}
    return like.model_copy(update={"page_content": order, "metadata": {**like.metadata, **named}, "id": None})


def _with_text(document: Document, text: str) -> Document:
    return document.model_copy(update={"page_content": text})


def _text_of(question: Any) -> str:
    if isinstance(question, str):
        return question
    asked = usual_question(question) if isinstance(question, Mapping) else last_human_text(question)
    return asked or "the question"


def _input_of(app: Any, question: Any) -> Any:
    """Return a question as the app's input, by its schema; anything but a str as it is."""
    if not isinstance(question, str) or not isinstance(app, Runnable):
        return question
    names = app.get_input_jsonschema().get("properties") or {}
    if "messages" in names:
        return {"messages": [HumanMessage(question)]}
    key = next((name for name in (*QUESTION_KEYS, *names) if name in names), None)
    return question if key is None else {key: question}


def _nodes_of(app: Any) -> list[str]:
    graph = sys.modules.get("langgraph.pregel")
    if graph is None or not isinstance(app, graph.Pregel):
        return []
    return [_node(name) for name in app.get_graph().nodes if not name.startswith("__")]


def _node(name: str) -> str:
    return f"node {name}"


def _name_of(tool: Any) -> str | None:
    """Return the name of a tool that the program runs, in a provider's format."""
    inner = tool.get("function") or tool.get("toolSpec") or tool if isinstance(tool, Mapping) else {}
    return inner.get("name") if isinstance(inner, Mapping) else getattr(tool, "name", None)
