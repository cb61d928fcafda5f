"""Runs one question through a program, with canaries in what it retrieves, and tells which prompts they reach."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import isawaitable
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore

from langchain_robustrag.audit import IsolationAudit, listening
from langchain_robustrag.questions import QUESTION_KEYS, last_human_text, usual_question
from langchain_robustrag.retrieved import UnreadableError, parts_of
from langchain_robustrag.tool import RobustRetrieverTool
from robustrag_integrations.audit.audit import SHORTEST
from robustrag_integrations.audit.check import Canaries, CheckedRun, changed, methods_of, planted_metadata
from robustrag_integrations.plans.drivers import TextPerformer

# What finds documents without an event, in stores and loaders.
_is_search = re.compile(r"a?((similarity_search|max_marginal_relevance_search)\w*|load)|lazy_load").fullmatch


def assert_defended(
    app: Any,
    question: Any,
    config: RunnableConfig | None = None,
    *,
    pass_through: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """Ask a program one question, and raise if a single retrieved text reaches a prompt that is not isolated.

    The question is really asked, twice: every retriever, vector store and loader returns a planted document, which
    orders the model to repeat a canary, first alone, then in front of those that it found; so does the text of every
    tool. A strict run-time audit looks for canaries, for retrieved text, for answers of one source and for hosted
    tools. A model that obeys every text makes the check sharper. Nothing is vouched for but what ran for this question,
    and nothing that a single word of metadata could do. One check runs at a time in a process, and changes what others
    there are given.

    Args:
        app: a chain, an agent, a compiled graph, or a function that takes the question.
        question: a str, which is given as `messages`, `input`, `question`, `query` or alone, whatever the app takes;
            or the app's whole input.
        config: the config to run it with.
        pass_through: names of tools whose results nobody else writes, or which the provider runs: they get no canary.
        stubs: for each tool that acts (mail, money), what it returns in place of being run.

    Returns:
        What had canaries, and what did not run or could not be seen: nothing is known of that.

    Raises:
        UndefendedError: what was found, each with the runs that led there; or no canary could be planted.
        ValueError: a name in `pass_through` or `stubs` that the program showed no tool of.
        RuntimeError: another check is running.

    Examples:
        ```python
        checked = assert_defended(agent, "Who won?", pass_through=["add"], stubs={"send_mail": "sent"})
        print(checked)  # with what did not run
        ```
    """
    with _checking(app, question, pass_through, stubs) as (canaries, audit, given):
        for canaries.alone in (True, False):
            app.invoke(given, config) if isinstance(app, Runnable) else app(given)
    return canaries.checked(audit.findings)


async def aassert_defended(
    app: Any,
    question: Any,
    config: RunnableConfig | None = None,
    *,
    pass_through: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """`assert_defended` in an event loop; a function as `app` may be asynchronous."""
    with _checking(app, question, pass_through, stubs) as (canaries, audit, given):
        for canaries.alone in (True, False):
            running = app.ainvoke(given, config) if isinstance(app, Runnable) else app(given)
            if isawaitable(running):
                await running
    return canaries.checked(audit.findings)


@contextmanager
def _checking(
    app: Any, question: Any, pass_through: Collection[str], stubs: Mapping[str, Any] | None
) -> Iterator[tuple[Canaries, IsolationAudit, Any]]:
    if not (isinstance(app, Runnable) or callable(app)):
        raise TypeError(f"cannot run a {type(app).__name__}; pass the chain, agent, compiled graph or function")
    asked = usual_question(question) if isinstance(question, Mapping) else last_human_text(question)
    canaries = Canaries(question if isinstance(question, str) else asked or "the question", pass_through, stubs)
    if hasattr(app, "get_graph") and type(app).__module__.startswith("langgraph"):
        canaries.offered(f"node {name}" for name in app.get_graph().nodes if not name.startswith("__"))
    audit = IsolationAudit(pass_through=pass_through)
    audit._audit.canaries = canaries
    audit._audit.allow(canaries.question)  # documents may quote it
    planter = _Planter(canaries, audit)
    changes: list[tuple[Any, Any]] = [
        *((methods_of(base, _is_search), planter.around_search) for base in (VectorStore, BaseLoader)),
        # This method is called by whatever reference to `invoke` a program holds.
        (methods_of(CallbackManagerForRetrieverRun, "on_retriever_end".__eq__), planter.around_retriever_end),
        (methods_of(AsyncCallbackManagerForRetrieverRun, "on_retriever_end".__eq__), planter.around_retriever_end),
        ([(BaseTool, "run", BaseTool.run), (BaseTool, "arun", BaseTool.arun)], planter.around_tool),
        (methods_of(TextPerformer, ("__call__", "aperform").__contains__), canaries.obeying),
    ]
    with canaries.one_check(audit.findings, changes), listening(audit):
        try:
            yield canaries, audit, _input_of(app, question)
        finally:
            planter.clean_up()


class _Planter:
    """Wraps methods of retrievers, stores, loaders and tools so that what they return has canaries."""

    def __init__(self, canaries: Canaries, audit: IsolationAudit) -> None:
        self._canaries, self._audit = canaries, audit
        self._changed: list[tuple[list[Any], list[Any]]] = []

    def around_retriever_end(self, method: Any) -> Any:
        """Change in place what a retriever is about to return, as its run ends."""

        @wraps(method)
        def ended(manager: Any, documents: Any, **kwargs: Any) -> Any:
            found = self._planted(self._audit.component_of(manager.run_id), documents)
            if found is not documents:
                self._changed.append((documents, list(documents)))
                documents[:] = found
            return method(manager, documents, **kwargs)  # a coroutine where it is one

        return ended

    def around_search(self, method: Any) -> Any:

        def planted(place: Any, found: Any, *_: Any) -> Any:
            name = type(place).__name__
            return iter(self._planted(name, list(found))) if isinstance(found, Iterator) else self._planted(name, found)

        return changed(method, planted)

    def around_tool(self, method: Any) -> Any:
        """Have a canary in what a tool says, or a stub for it."""

        def planted(tool: BaseTool, output: Any, *_: Any) -> Any:
            self._canaries.ran(tool.name)
            if tool.name in self._canaries.pass_through or tool.name in self._canaries.stubs:
                return output
            if type(tool) is RobustRetrieverTool:
                return output
            if isinstance(output, str):
                return self._canaries.said(tool.name, output)
            if isinstance(output, ToolMessage) and isinstance(output.content, str):
                return output.model_copy(update={"content": self._canaries.said(tool.name, output.content)})
            unseen = f"texts of fewer than {SHORTEST} characters in its results are not seen"
            self._canaries.ran(tool.name, unseen, known=_is_known(output))
            return output

        def stubbed(tool: BaseTool) -> BaseTool:
            if tool.name not in self._canaries.stubs:
                return tool
            value, copy = self._canaries.stubs[tool.name], tool.model_copy()
            value = value if tool.response_format == "content" or isinstance(value, tuple) else (value, None)

            async def avalue(*args: Any, **kwargs: Any) -> Any:
                return value

            object.__setattr__(copy, "_run", lambda *args, **kwargs: value)
            object.__setattr__(copy, "_arun", avalue)
            return copy

        return changed(method, planted, stubbed)

    def clean_up(self) -> None:
        """Give the lists back what was in them: retrievers may keep them."""
        for documents, given in reversed(self._changed):
            documents[:] = given

    def _planted(self, name: str, found: Any) -> Any:
        """Return what was retrieved, documents or pairs of them with scores, with a planted one."""

        def made(first: Any, order: str) -> Any:
            like = first[0] if isinstance(first, tuple) else first or Document("")
            metadata = planted_metadata(like.metadata, order)
            document = like.model_copy(update={"page_content": order, "metadata": metadata, "id": None})
            return (document, *first[1:]) if isinstance(first, tuple) else document

        return self._canaries.found(name, found, _is_document, made)


def _is_document(item: Any) -> bool:
    return isinstance(item[0] if isinstance(item, tuple) and item else item, Document)


def _is_known(output: Any) -> bool:
    """True if the audit recognises a text of a tool's result."""
    try:
        return any(isinstance(part, str) and len(part) >= SHORTEST for part in parts_of(output))
    except UnreadableError:
        return False


def _input_of(app: Any, question: Any) -> Any:
    """Return a question as the app's input, by its schema; anything but a str as it is."""
    if not isinstance(question, str) or not isinstance(app, Runnable):
        return question
    names = app.get_input_jsonschema().get("properties") or {}
    if "messages" in names:
        return {"messages": [HumanMessage(question)]}
    key = next((name for name in (*QUESTION_KEYS, *names) if name in names), None)
    return question if key is None else {key: question}
