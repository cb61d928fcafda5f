"""Middleware for `langchain.agents.create_agent`: retriever tools as they are, their results answered robustly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from typing_extensions import Unpack

from langchain_robustrag.aggregations import RobustOptions
from langchain_robustrag.calls import steers
from langchain_robustrag.chain import create_reporting_chain
from langchain_robustrag.language_models import AnyModel
from langchain_robustrag.questions import last_human_text, question_inputs
from langchain_robustrag.tool import hidden
from langchain_robustrag.tool_results import ToolCall, ToolResults
from robustrag_integrations._util.checks import check_flag
from robustrag_integrations._util.steps import adriven, driven

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.tools.tool_node import ToolCallRequest
    from langgraph.types import Command
except ImportError as error:
    raise ImportError(
        "RobustRetrievalMiddleware needs langchain 1.x: pip install 'robustrag-integrations[langchain-agents]'"
    ) from error


class RobustRetrievalMiddleware(AgentMiddleware[Any, Any]):
    """Replaces what a retriever tool returns by a robust answer from its documents.

    Answered from, whatever the tool: documents in its artifact, as objects, pairs with scores, dicts, Anthropic's
    `search_result` blocks, in the messages of a `Command`, or as JSON. A tool that looks something up never gets
    through as it is: one that is named in `tools`, was made by `create_retriever_tool`, or takes a question, search
    terms or an address (an argument `query`, `question`, `keywords`, `url`, ...). Without documents its rows of text
    are documents, and so are the text blocks and `resource_link`s of an MCP result; else its whole text is one group,
    with radius 0, since text that was joined is never split again; what is no text is refused with a tool error. What
    other tools return without documents passes; this is logged once per tool.

    Args:
        llm: reads the documents; see `create_robust_documents_chain`. It may be a smaller model than the agent's.
        prompt: see there; its variables besides the documents are `input`, `question` or `query`.
        tools: tools, or names of them, whose results are retrieved text whatever they look like.
        trusted: tools, or names of them, whose results nobody else writes; they pass unread.
        strict: True if tools that are in neither list are refused when no documents are found in their result.
        supporting_only: artifacts show those documents alone that support the answer, since UIs show them.
        options: the keyword arguments of `create_robust_documents_chain`.

    Examples:
        ```python
        search = create_retriever_tool(retriever, "search", "...", response_format="content_and_artifact")
        agent = create_agent(agent_model, [search], middleware=[RobustRetrievalMiddleware(reader)])
        ```
    """

    def __init__(
        self,
        llm: AnyModel,
        prompt: BasePromptTemplate[Any] | None = None,
        *,
        tools: Collection[str | BaseTool] = (),
        trusted: Collection[str | BaseTool] = (),
        strict: bool = False,
        supporting_only: bool = False,
        **options: Unpack[RobustOptions],
    ) -> None:
        super().__init__()
        check_flag(strict=strict, supporting_only=supporting_only)
        self._context = options.get("document_variable_name", "context")
        self._answering = create_reporting_chain(llm, prompt, options)
        named, passing = _names("tools", tools), _names("trusted", trusted)
        if both := sorted(named & passing):
            raise ValueError(f"{', '.join(both)} cannot be both in tools= (answered from) and trusted= (passed unread)")
        self._results = ToolResults(
            named, passing, strict, one_group=bool(self._answering.rules.min_radius), supporting_only=supporting_only
        )

    def __repr__(self) -> str:
        lists = f"tools={sorted(self._results.named)}, trusted={sorted(self._results.trusted)}"
        return f"RobustRetrievalMiddleware({self._answering!r}, {lists}, strict={self._results.strict})"

    @property
    def results(self) -> ToolResults:
        """The rules for each tool's results, and the record of tools whose results have passed."""
        return self._results

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run the tool, then answer from what it retrieved."""
        call = ToolCall(request, _messages(request.state) or ())
        asking = self._results.read(call, handler(request.override(tool=call.watched)))
        result: ToolMessage | Command[Any] = driven(
            asking, lambda found: self._answering.invoke(*self._inputs(request, found)), keeps=_is_a_reply
        )
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """`wrap_tool_call` without blocking the event loop."""
        call = ToolCall(request, _messages(request.state) or ())
        asking = self._results.read(call, await handler(request.override(tool=call.watched)))
        result: ToolMessage | Command[Any] = await adriven(
            asking, lambda found: self._answering.ainvoke(*self._inputs(request, found)), keeps=_is_a_reply
        )
        return result

    def _inputs(self, request: ToolCallRequest, documents: list[Document]) -> tuple[dict[str, Any], RunnableConfig]:
        inputs = {**question_inputs(_question(request)), self._context: documents}
        return inputs, hidden(request.runtime.config)


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
