"""Middleware for `langchain.agents.create_agent`: retriever tools as they are, their results answered robustly."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, ToolMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.tools import BaseTool
from langchain_core.tools.retriever import RetrieverInput
from langchain_core.tracers.context import register_configure_hook

from langchain_robustrag.audit import hosted_results
from langchain_robustrag.callbacks import Heard, in_loop
from langchain_robustrag.chain import RobustOptions, create_reporting_chain
from langchain_robustrag.language_models import AnyModel, hosted_tools_of
from langchain_robustrag.messages import for_prompts, mark_of, marked
from langchain_robustrag.questions import last_human_text, question_inputs
from langchain_robustrag.retrieved import UnreadableError, blocks_in, documents_in, records_in, text_of
from langchain_robustrag.tool import (
    GO_ON,
    RobustRetrieverTool,
    content_and_artifact,
    hidden,
    told,
    unread,
)
from robustrag_integrations._util.errors import UndefendedError, missing, steers
from robustrag_integrations.audit.check import having
from robustrag_integrations.audit.hosted import hosted_result, hosted_tools, tool_names
from robustrag_integrations.text.prompts import ABSTENTION

if TYPE_CHECKING:
    from typing_extensions import Unpack

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ModelCallResult, ModelRequest
    from langchain.tools.tool_node import ToolCallRequest
    from langgraph.types import Command
except ImportError as error:
    raise missing("RobustRetrievalMiddleware needs langchain 1.x", "langchain-agents") from error

_MOST_CALLS = 10_000
_HEARING: ContextVar[BaseCallbackHandler | None] = ContextVar("robustrag_hearing", default=None)
register_configure_hook(_HEARING, inheritable=True)


class RobustRetrievalMiddleware(AgentMiddleware[Any, Any]):
    """Replaces what tools return by robust answers from its documents, and withholds what holds none.

    Answered from, whatever the tool: `Document` objects in what it returns (alone, in lists, in pairs with scores, in
    objects) or in its artifact, and those that retrievers return while it runs, so that
    `create_retriever_tool` and `retriever.as_tool()` work unchanged. Of a tool that is named in `tools`, so are dicts,
    rows, `search_result` blocks, and the text blocks and `resource_link`s of an MCP result; else its whole text is one
    source, since text that was joined is never split again. Everything else is withheld, be it a number or a `Command`
    to the graph: the agent reads a tool error that says how to go on. Tools that fail or interrupt do so as without the
    middleware, but what a failed tool says is withheld.

    So are tool messages in the conversation that it did not make: those of an old thread hold whatever an undefended
    tool returned; results of hosted tools, and summaries, of earlier runs; and what the agent said once it had read
    them. Answers of ours for people are abstentions there.

    Tools that the provider runs (web search, say) pass no middleware: an agent that has one is refused with a
    `ValueError` when it first asks its model, and a result of one that comes back anyway with an `UndefendedError`.

    Args:
        llm: reads the documents; see `create_robust_documents_chain`. It may be a smaller model than the agent's.
        prompt: see there; its variables besides the documents are `input`, `question` or `query`.
        tools: tools, or names of them, that return documents, whatever these look like.
        pass_through: tools, or names of them, whose results nobody else writes; they pass unread. A name, in either
            list, that no tool of the agent has is a `ValueError` when it first asks its model.
        options: the keyword arguments of `create_robust_documents_chain`.

    Examples:
        ```python
        search = create_retriever_tool(retriever, "search", "...")
        defence = RobustRetrievalMiddleware(reader, pass_through=["add"])
        agent = create_agent(agent_model, [search, add], middleware=[defence])
        ```
    """

    def __init__(
        self,
        llm: AnyModel,
        prompt: BasePromptTemplate[Any] | None = None,
        *,
        tools: Collection[str | BaseTool] = (),
        pass_through: Collection[str | BaseTool] = (),
        **options: Unpack[RobustOptions],
    ) -> None:
        super().__init__()
        self._answering = create_reporting_chain(llm, prompt, options, ["tools", "pass_through"], read_by_model=True)
        self._named, self._pass_through = tool_names("tools", tools), tool_names("pass_through", pass_through)
        self._unrun: OrderedDict[str, None] = OrderedDict()  # the ids of calls that no tool was run for
        if both := sorted(self._named & self._pass_through):
            raise ValueError(
                f"{', '.join(both)} cannot be both in tools= (answered from) and pass_through= (passed unread)"
            )

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Withhold what earlier runs left in the conversation from everything that reads the state, summaries too."""
        said = state["messages"]
        pairs = zip(said, self._for_prompts(said, summaries=True), strict=True)
        changed = [
            new for old, new in pairs if (new.content, mark_of(new) is None) != (old.content, mark_of(old) is None)
        ]
        return {"messages": changed} if changed else None

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Mark a summary that was made in this run, of a conversation that held nothing else."""
        made = [message for message in state["messages"] if _is_summary(message)]
        kept = [m.model_copy(update={"additional_kwargs": m.additional_kwargs | marked(m.text)}) for m in made]
        return {"messages": kept} if kept else None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelCallResult[Any]]
    ) -> ModelCallResult[Any]:
        """Ask the model, unless its provider runs tools or a listed tool does not exist."""
        return self._noted(handler(self._checked(request)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelCallResult[Any]]]
    ) -> ModelCallResult[Any]:
        """`wrap_model_call` without blocking the event loop."""
        return self._noted(await handler(self._checked(request)))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run the tool, then answer from what it retrieved."""
        call = _ToolCall(request)
        self._unrun.pop(call.id, None)
        with having(_HEARING, call.heard):
            result: Any = handler(request.override(tool=call.watched))
        found = self._read(call, result)
        if not isinstance(found, list):
            return found
        try:
            answered = self._answering.invoke(self._inputs(request, found), hidden(request.runtime.config))
        except Exception as error:
            return _unread(call, result, error)
        return told(result, *content_and_artifact(answered, found))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """`wrap_tool_call` without blocking the event loop."""
        call = _ToolCall(request)
        self._unrun.pop(call.id, None)
        with having(_HEARING, in_loop(call.heard)):
            result: Any = await handler(request.override(tool=call.watched))
        found = self._read(call, result)
        if not isinstance(found, list):
            return found
        try:
            answered = await self._answering.ainvoke(self._inputs(request, found), hidden(request.runtime.config))
        except Exception as error:
            return _unread(call, result, error)
        return told(result, *content_and_artifact(answered, found))

    def _checked(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return a request with a conversation that the model may read; refuse its tools if one passes by us."""
        offered = [*request.tools, *(request.model_settings.get("tools") or ())]
        names = {str(tool.get("name") or tool.get("type")) if isinstance(tool, dict) else tool.name for tool in offered}
        if unknown := sorted((self._pass_through | self._named) - names):
            raise ValueError(
                f"no tool of the agent is named {', '.join(map(repr, unknown))}, which RobustRetrievalMiddleware lists "
                f"in tools= or pass_through=; its tools: {', '.join(map(repr, sorted(names))) or 'none'}. Middleware "
                "that selects tools goes behind this one"
            )
        if hosted := [*hosted_tools(offered, self._pass_through), *hosted_tools_of(request.model)]:
            raise ValueError(
                f"the provider runs {', '.join(hosted)}: what that finds reaches the model and no middleware. Give the "
                "agent a tool of your own in its place, or name it in pass_through=[...] to take what it finds as it is"
            )
        return request.override(messages=self._for_prompts(request.messages))

    def _for_prompts(self, messages: Sequence[Any], *, summaries: bool = False) -> list[Any]:
        """Return a conversation as the model may read it, of earlier runs without their `summaries`.

        What the agent said after a result that is withheld may be that result's words, and is withheld with it.
        """
        held: list[Any] = []
        swayed, called = False, dict[str, str]()
        for message in for_prompts(messages):
            if isinstance(message, AIMessage):
                called |= {str(call["id"]): call["name"] for call in message.tool_calls}
            result = isinstance(message, (ToolMessage, FunctionMessage)) and not self._passes(message, called)
            if result or (summaries and _is_summary(message)):
                message, swayed = _not_ours(message), True
            elif isinstance(message, AIMessage) and (
                hosted_results(message, self._pass_through) or (swayed and not mark_of(message))
            ):
                message, swayed = _swayed(message), True
            held.append(message)
        return held

    def _passes(self, message: ToolMessage | FunctionMessage, called: Mapping[str, str]) -> bool:
        """True for a result that is ours or passes unread, and for one that no tool gave.

        A call that no tool has run for was answered by the program: a person refused it, or another middleware did, or
        it is the agent's structured output.
        """
        call = getattr(message, "tool_call_id", "")
        name = message.name or called.get(call)
        return bool(mark_of(message)) or name in self._pass_through or call in self._unrun

    def _noted(self, response: ModelCallResult[Any]) -> ModelCallResult[Any]:
        """Return a model's response, its calls noted; refuse one made from what a tool of its provider found."""
        inner = getattr(response, "model_response", response)
        for message in getattr(inner, "result", [inner]):
            if found := hosted_results(message, self._pass_through):
                raise UndefendedError([hosted_result(found, "model", "the agent's model")])
            self._unrun.update(dict.fromkeys(str(call["id"]) for call in getattr(message, "tool_calls", ())))
        while len(self._unrun) > _MOST_CALLS:
            self._unrun.popitem(last=False)
        return response

    def _inputs(self, request: ToolCallRequest, documents: list[Document]) -> dict[str, Any]:
        return {**question_inputs(_question(request)), self._answering.document_variable_name: documents}

    def _read(self, call: _ToolCall, result: ToolMessage | Command[Any]) -> list[Document] | ToolMessage | Command[Any]:
        """Return the documents to answer from, or what the agent reads in the place of an answer."""
        robust = type(call.tool) is RobustRetrieverTool and call.name not in self._named
        if robust or call.name in self._pass_through:
            return result
        if not isinstance(result, ToolMessage):  # such as a command to the graph, which may hold anything
            return _withheld(call, f"it is a {type(result).__name__}, and no tool message")
        if call.tool is None:
            return _withheld(call, "there is no tool of that name", result)
        if result.status == "error":  # what it says may hold what was retrieved
            return _withheld(call, "it failed or did not run", result)
        known = call.name in self._named or getattr(call.tool, "args_schema", None) is RetrieverInput
        try:
            if found := _documents(call, result, known):
                return found
        except UnreadableError as error:
            return _withheld(call, str(error), result)
        text = text_of(result.content)
        if text is not None and not text.strip():
            return result.model_copy(update={"additional_kwargs": marked("")})
        if not known:
            return _withheld(
                call, "no documents were found in it, and the tool is in neither tools= nor pass_through=", result
            )
        return [Document(text)] if text else _withheld(call, "it is something other than text or documents", result)


class _ToolCall:
    """A tool call, with what its function returned before LangChain made text of it, and what its retrievers did.

    Attributes:
        watched: the tool to run in place of the given one: the same, but that what it returns is noted.
        returned: the function's result, as objects; None where it cannot be seen.
        heard: the documents that retrievers returned while the tool ran.
    """

    def __init__(self, request: ToolCallRequest) -> None:
        self.name, self.id = request.tool_call["name"], str(request.tool_call["id"] or "")
        self.tool, self.watched, self.returned = request.tool, cast(Any, request.tool), cast(Any, None)
        self.heard = Heard()
        if isinstance(self.tool, BaseTool):
            # The functions stay the given tool's own, bound to it, so that whatever it remembers it still remembers.
            run, arun, self.watched = self.tool._run, self.tool._arun, self.tool.model_copy()

            @wraps(run)
            def noting(*args: Any, **kwargs: Any) -> Any:
                self.returned = run(*args, **kwargs)
                return self.returned

            @wraps(arun)
            async def anoting(*args: Any, **kwargs: Any) -> Any:
                self.returned = await arun(*args, **kwargs)
                return self.returned

            object.__setattr__(self.watched, "_run", noting)
            object.__setattr__(self.watched, "_arun", anoting)


def _documents(call: _ToolCall, message: ToolMessage, known: bool) -> list[Document]:
    """Return the documents to answer from. Text has no structure that counts: none is ever read out of it."""
    content = message.content if isinstance(message.content, list) else None
    returned = None if isinstance(call.returned, BaseMessage) else call.returned
    places = [message.artifact, returned, content]
    # LangChain makes one text of blocks some of which it does not know; a tuple holds them and an artifact.
    blocks = content or (returned[0] if isinstance(returned, tuple) and returned else returned)
    found = blocks_in(blocks) if known else []
    found = found or next(filter(None, (documents_in(place, objects_only=not known) for place in places)), [])
    return found or call.heard.documents or (next(filter(None, map(records_in, places)), []) if known else [])


def _withheld(call: _ToolCall, why: str, message: ToolMessage | None = None) -> ToolMessage:
    text, own = f"The result of {call.name} was withheld: {why}. {GO_ON}", message.id if message else None
    return ToolMessage(
        text, tool_call_id=call.id, name=call.name, status="error", id=own, additional_kwargs=marked(text)
    )


def _is_summary(message: BaseMessage) -> bool:
    """True for a summary that LangChain's middleware made, and that was not marked after a run of ours."""
    return message.additional_kwargs.get("lc_source") == "summarization" and not mark_of(message)


def _not_ours(message: BaseMessage) -> BaseMessage:
    """Return a message in place of what a tool said in an earlier run, or of a summary that was made then."""
    what = "summary" if _is_summary(message) else f"result of {message.name or 'a tool'}"
    text = f"This earlier {what} was withheld: it may be any document's words. Ask it anew."
    changes: dict[str, Any] = {"content": text, "additional_kwargs": marked(text), "response_metadata": {}}
    if isinstance(message, ToolMessage):
        changes |= {"status": "error", "artifact": None}
    return message.model_copy(update=changes)


def _swayed(message: AIMessage) -> AIMessage:
    """Return what an agent said after such a result without its words and arguments; its calls stay answered."""
    text = ABSTENTION if message.text else ""
    calls = [{**call, "args": {}} for call in message.tool_calls]
    return AIMessage(text, id=message.id, name=message.name, tool_calls=calls, additional_kwargs=marked(text))


def _unread(call: _ToolCall, result: Any, error: Exception) -> ToolMessage:
    """Return a tool error for documents that could not be read; an exception that steers a graph is raised."""
    if steers(error):
        raise error
    return _withheld(call, unread(error), result)


def _question(request: ToolCallRequest) -> str:
    """Return the question to a tool: its `query` or only text argument; otherwise the user's question to the agent."""
    arguments = request.tool_call["args"]
    texts = [value for value in arguments.values() if isinstance(value, str) and value.strip()]
    if arguments.get("query") in texts:
        return str(arguments["query"])
    state = request.state
    messages = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return texts[0] if len(texts) == 1 else last_human_text(messages) or " ".join(texts)
