"""Middleware for `langchain.agents.create_agent`: retriever tools as they are, their results answered robustly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from langchain_robustrag.calls import steers
from langchain_robustrag.chain import create_reporting_chain
from langchain_robustrag.hosted import hosted_results
from langchain_robustrag.language_models import AnyModel, hosted_tools_of
from langchain_robustrag.questions import last_human_text, question_inputs
from langchain_robustrag.tool import hidden
from langchain_robustrag.tool_results import ToolCall, ToolResults
from robustrag_integrations._util.checks import check_flag
from robustrag_integrations._util.steps import adriven, driven
from robustrag_integrations.audit.hosted import hosted_result, hosted_tools
from robustrag_integrations.errors import UndefendedError

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ModelCallResult, ModelRequest
    from langchain.tools.tool_node import ToolCallRequest
    from langgraph.types import Command
except ImportError as error:
    raise ImportError(
        "RobustRetrievalMiddleware needs langchain 1.x: pip install 'robustrag-integrations[langchain-agents]'"
    ) from error


class RobustRetrievalMiddleware(AgentMiddleware[Any, Any]):
    """Replaces what tools return by robust answers from its documents, and withholds what holds none.

    Answered from, whatever the tool: `Document` objects in what it returns (alone, in lists, in pairs with scores, in
    objects) or in its artifact, and those that retrievers return while it runs, so that
    `create_retriever_tool` and `retriever.as_tool()` work unchanged. Of a tool that is named in `tools`, so are dicts,
    rows, `search_result` blocks, and the text blocks and `resource_link`s of an MCP result; else its whole text is one
    source, since text that was joined is never split again. Everything else is withheld, be it a number or a `Command`
    to the graph: the agent reads a tool error that says how to go on. Tools that fail or interrupt do so as without the
    middleware, but what a failed tool says is withheld.

    Tools that the provider runs (web search, say) pass no middleware: an agent that has one is refused with a
    `ValueError` when it first asks its model, and a result of one that comes back anyway with an `UndefendedError`.

    Args:
        llm: reads the documents; see `create_robust_documents_chain`. It may be a smaller model than the agent's.
        prompt: see there; its variables besides the documents are `input`, `question` or `query`.
        tools: tools, or names of them, that return documents, whatever these look like.
        trusted: tools, or names of them, whose results nobody else writes; they pass unread. A name, in either list,
            that no tool of the agent has is a `ValueError` when it first asks its model.
        supporting_only: artifacts show those documents alone that support the answer, since UIs show them.
        options: the keyword arguments of `create_robust_documents_chain`.

    Examples:
        ```python
        search = create_retriever_tool(retriever, "search", "...")
        defence = RobustRetrievalMiddleware(reader, trusted=["add"])
        agent = create_agent(agent_model, [search, add], middleware=[defence])
        ```
    """

    def __init__(
        self,
        llm: AnyModel,
        prompt: BasePromptTemplate[Any] | None = None,
        *,
        tools: Collection[str | BaseTool] = (),
        trusted: Collection[str | BaseTool] = (),
        supporting_only: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        check_flag(supporting_only=supporting_only)
        self._context = options.get("document_variable_name", "context")
        self._answering = create_reporting_chain(llm, prompt, options, read_by_model=True)
        named, passing = _names("tools", tools), _names("trusted", trusted)
        if both := sorted(named & passing):
            raise ValueError(f"{', '.join(both)} cannot be both in tools= (answered from) and trusted= (passed unread)")
        self._results = ToolResults(named, passing, supporting_only)

    def __repr__(self) -> str:
        lists = f"tools={sorted(self._results.named)}, trusted={sorted(self._results.trusted)}"
        return f"RobustRetrievalMiddleware({self._answering!r}, {lists})"

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelCallResult[Any]]
    ) -> ModelCallResult[Any]:
        """Ask the model, unless its provider runs tools or a listed tool does not exist."""
        self._check_tools(request)
        return _without_hosted_results(handler(request), self._results.trusted)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelCallResult[Any]]]
    ) -> ModelCallResult[Any]:
        """`wrap_model_call` without blocking the event loop."""
        self._check_tools(request)
        return _without_hosted_results(await handler(request), self._results.trusted)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run the tool, then answer from what it retrieved."""
        call = ToolCall(request)
        with call.hearing():
            returned = handler(request.override(tool=call.watched))
        asking = self._results.read(call, returned)
        result: ToolMessage | Command[Any] = driven(
            asking, lambda found: self._answering.invoke(*self._inputs(request, found)), keeps=_is_a_reply
        )
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """`wrap_tool_call` without blocking the event loop."""
        call = ToolCall(request)
        with call.hearing(in_a_loop=True):
            returned = await handler(request.override(tool=call.watched))
        asking = self._results.read(call, returned)
        result: ToolMessage | Command[Any] = await adriven(
            asking, lambda found: self._answering.ainvoke(*self._inputs(request, found)), keeps=_is_a_reply
        )
        return result

    def _check_tools(self, request: ModelRequest[Any]) -> None:
        offered = [*request.tools, *(request.model_settings.get("tools") or ())]
        names = {str(tool.get("name") or tool.get("type")) if isinstance(tool, dict) else tool.name for tool in offered}
        trusted = self._results.trusted
        if unknown := sorted((trusted | self._results.named) - names):
            raise ValueError(
                f"no tool of the agent is named {', '.join(map(repr, unknown))}, which RobustRetrievalMiddleware lists "
                f"in tools= or trusted=; its tools: {', '.join(map(repr, sorted(names))) or 'none'}. Middleware that "
                "selects tools goes behind this one"
            )
        if hosted := [*hosted_tools(offered, trusted), *hosted_tools_of(request.model)]:
            raise ValueError(
                f"the provider runs {', '.join(hosted)}: what that finds reaches the model and no middleware. Give the "
                "agent a tool of your own in its place, or name it in trusted=[...] to take what it finds as it is"
            )

    def _inputs(self, request: ToolCallRequest, documents: list[Document]) -> tuple[dict[str, Any], RunnableConfig]:
        inputs = {**question_inputs(_question(request)), self._context: documents}
        return inputs, hidden(request.runtime.config)


def _without_hosted_results(response: ModelCallResult[Any], trusted: Collection[str]) -> ModelCallResult[Any]:
    """Return a model's response; refuse one that was made from what a tool of the provider found."""
    inner = getattr(response, "model_response", response)
    for message in getattr(inner, "result", [inner]):
        if found := hosted_results(message, trusted):
            raise UndefendedError([hosted_result(found, "model", "the agent's model")])
    return response


def _is_a_reply(error: Exception) -> bool:
    """True if an error is an answer's failure, and none that steers a graph."""
    return not steers(error)


def _names(argument: str, tools: Collection[str | BaseTool]) -> frozenset[str]:
    if isinstance(tools, (str, BaseTool)):
        raise TypeError(f"{argument}={tools!r:.60} must be a list of tools or their names; wrap it: [{tools!r:.60}]")
    names = [tool.name if isinstance(tool, BaseTool) else tool for tool in tools]
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"{argument} must hold tools or their names, got {type(wrong[0]).__name__}")
    return frozenset(names)


def _messages(state: Any) -> Any:
    return state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)


def _question(request: ToolCallRequest) -> str:
    """Return the question to a tool: its `query` or only text argument; otherwise the user's question to the agent."""
    arguments = request.tool_call["args"]
    texts = [value for value in arguments.values() if isinstance(value, str) and value.strip()]
    if isinstance(query := arguments.get("query"), str) and query.strip():
        return query
    if len(texts) == 1:
        return texts[0]
    return last_human_text(_messages(request.state)) or " ".join(texts)
