"""Runs one question through a program, with canaries in what it retrieves, and tells which prompts they reach."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from inspect import isawaitable
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore

from langchain_robustrag.audit import FIX, IsolationAudit, listening
from langchain_robustrag.questions import QUESTION_KEYS, last_human_text, usual_question
from langchain_robustrag.tool import RobustRetrieverTool
from robustrag_integrations.audit.canaries import SOURCE, Canaries, CheckedRun, planted_entries
from robustrag_integrations.audit.checking import methods_of, one_check, replace_methods, wrapped
from robustrag_integrations.audit.hosted import hosted_tools
from robustrag_integrations.audit.prompts import Audit

_DEEPEST = 20
# What finds documents without an event, in stores and loaders.
_is_search = re.compile(r"a?((similarity_search|max_marginal_relevance_search)\w*|load)|lazy_load").fullmatch


def assert_defended(
    app: Any,
    question: Any,
    config: RunnableConfig | None = None,
    *,
    trusted: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """Ask a program one question, and raise if a single planted text reaches a prompt that is not isolated.

    The question is really asked, twice: every retriever, vector store and loader returns a planted document, which
    orders the model to repeat a canary, first alone, then in front of those that it found, each with a canary at its
    end. So do entries of its metadata that are several words, such as a title, and the text of every tool. The run-time
    audit looks for canaries, texts of several sources, answers of one source and hosted tools. A model that obeys every
    text makes the check sharper. Nothing is vouched for but what ran for this question, and nothing that a single word
    of metadata could do. One check runs at a time in a process, and changes what others there are given.

    Args:
        app: a chain, an agent, a compiled graph, or a function that takes the question.
        question: a str, which is given as `messages`, `input`, `question`, `query` or alone, whatever the app takes;
            or the app's whole input.
        config: the config to run it with.
        trusted: names of tools whose results nobody else writes, or which the provider runs: they get no canary.
        stubs: for each tool that acts (mail, money), what it returns in place of being run.

    Returns:
        What had canaries, and what did not run or could not be seen: nothing is known of that.

    Raises:
        UndefendedError: what was found, each with the runs that led there; or no canary could be planted.
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
        self._canaries, self._audit, self._trusted = canaries, Audit("log", FIX, canaries), canaries.trusted
        self._given: list[tuple[list[Any], list[Any]]] = []
        self.alone = True

    @contextmanager
    def retrieving(self, manager: Any, args: Any, kwargs: Any) -> Iterator[Callable[[Any], Any]]:
        """Change in place what a retriever is about to return, as its run ends."""
        documents = args[0] if args else kwargs["documents"]
        given = list(documents) if isinstance(documents, list) else []
        found = self._planted(self._path(manager.run_id)[1], documents)
        if found is not documents:
            self._given.append((documents, given))
            documents[:] = found
        yield lambda result: result

    @contextmanager
    def finding(self, place: Any, args: Any, kwargs: Any) -> Iterator[Callable[[Any], Any]]:
        """Have canaries in what a store or a loader finds."""
        name = type(place).__name__
        yield (
            lambda found: (
                iter(self._planted(name, list(found))) if isinstance(found, Iterator) else self._planted(name, found)
            )
        )

    def _planted(self, name: str, found: Any) -> Any:
        """Return a planted document in front of those found, or alone, with a mark in each other."""
        self._canaries.ran(name)
        if _are_documents(found):
            return _with_canaries(found, name, self._canaries, alone=self.alone)
        self._canaries.unseen(name, f"no canary could be planted in the {type(found).__name__} it returned")
        return found

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
        for tool in offered:
            if hosted_tools([tool]):
                for name in {tool.get("type"), tool.get("name")} & self._trusted:
                    self._canaries.ran(name)
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
    audit = _CanaryAudit(canaries)

    def around_finding(method: Any) -> Any:
        return wrapped(method, audit.finding)

    def around_retriever_end(method: Any) -> Any:
        return wrapped(method, audit.retrieving)

    with one_check(audit.findings):
        places = (
            (methods_of(VectorStore, _is_search), around_finding),
            (methods_of(BaseLoader, _is_search), around_finding),
            # This method is called by whatever reference to `invoke` a program holds.
            (methods_of(CallbackManagerForRetrieverRun, "on_retriever_end".__eq__), around_retriever_end),
            (methods_of(AsyncCallbackManagerForRetrieverRun, "on_retriever_end".__eq__), around_retriever_end),
            ([(BaseTool, "run", BaseTool.run)], lambda run: _tool_with_canaries(run, "_run", canaries)),
            ([(BaseTool, "arun", BaseTool.arun)], lambda arun: _tool_with_canaries(arun, "_arun", canaries)),
        )
        try:
            for stock, around in places:
                replace_methods(stock, around)
            with listening(audit):
                yield canaries, audit, _input_of(app, question)
        finally:
            for stock, _ in places:
                replace_methods(stock)
            audit.clean_up()


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


def _with_canaries(found: list[Any], name: str, canaries: Canaries, *, alone: bool) -> list[Any]:
    """Return found documents, or pairs of them with scores, with a planted one in front and a mark in each other.

    Args:
        found: what was retrieved.
        name: what retrieved it.
        canaries: those of the check.
        alone: True to leave the others out.
    """
    first = found[0] if found else Document("")
    order = _planted_document(first[0] if isinstance(first, tuple) else first, canaries.order(name))
    planted = (order, *first[1:]) if isinstance(first, tuple) else order
    return [planted, *([] if alone else [_marked(item, canaries.mark(name)) for item in found])]


def _are_documents(found: object) -> bool:
    """True for a list of documents, or of pairs of documents with scores."""
    items = (
        [item[0] if isinstance(item, tuple) and item else item for item in found] if isinstance(found, list) else [0]
    )
    return all(isinstance(item, Document) for item in items)


def _with_order(value: Any, order: str, depth: int = 0) -> tuple[Any, bool]:
    """Return a value with the order in one of its texts, or as one more document; and whether there was a place."""
    if isinstance(value, str):
        return _in_text(value, order, depth), True
    if isinstance(value, Document):
        return _with_text(value, f"{value.page_content}\n\n{order}"), True
    if depth > _DEEPEST:
        return value, False
    if isinstance(value, list) and value and all(isinstance(item, Document) for item in value):
        return [_planted_document(value[0], order), *value], True
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
        parts = dict(value.update) if isinstance(value.update, Mapping) else {"": value.update}
        changed = {key: _with_order(part, order, depth + 1) for key, part in parts.items()}  # any may reach a prompt
        update = {key: part for key, (part, _) in changed.items()}
        given = update if isinstance(value.update, Mapping) else update[""]
        return replace(value, update=given), any(done for _, done in changed.values())
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


def _planted_document(like: Document, order: str) -> Document:
    """Return a document like another one, with the order as its text and a source of its own."""
    metadata = planted_entries({"source": SOURCE, **like.metadata}, order)
    return like.model_copy(update={"page_content": order, "metadata": metadata, "id": None})


def _marked(item: Any, mark: str) -> Any:
    if isinstance(item, tuple):
        return (_marked(item[0], mark), *item[1:])
    return _with_text(item, f"{item.page_content} {mark}")


def _with_text(document: Document, text: str) -> Document:
    return document.model_copy(update={"page_content": text})
