"""Middleware for `langchain.agents.create_agent`: retriever tools as they are, their results answered robustly."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import ToolMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.tools.retriever import RetrieverInput
from typing_extensions import Unpack

from langchain_robustrag.aggregations import RobustOptions
from langchain_robustrag.chain import create_robust_documents_chain
from langchain_robustrag.documents import is_documents
from langchain_robustrag.questions import last_human_text, question_inputs
from langchain_robustrag.tool import content_and_artifact
from robustrag_integrations.models.base import DecodingModel

try:
    from langchain.agents.middleware import AgentMiddleware
except ImportError as error:
    raise ImportError(
        "RobustRetrievalMiddleware needs langchain 1.x: pip install 'robustrag-integrations[langchain-agents]'"
    ) from error

if TYPE_CHECKING:
    from langchain.agents.middleware import ToolCallRequest
    from langgraph.types import Command

_LOG = logging.getLogger(__name__)


class RobustRetrievalMiddleware(AgentMiddleware[Any, Any]):
    """Replaces what a retriever tool returns by a robust answer from its documents.

    A result counts as retrieved when its artifact is a list of documents, when the tool was made by
    `create_retriever_tool`, or when the tool is named in `tools`. Without documents in the artifact (make retriever
    tools with `response_format="content_and_artifact"`) the whole content is one group, with radius 0: text that was
    joined is never split again, since the author of a part could forge further documents. Other tools' results
    pass through.

    Args:
        llm: what reads the documents; see `create_robust_documents_chain`. It may be a smaller model than the agent's.
        prompt: see there; its variables besides the documents are `input`, `question` or `query`.
        tools: names of further tools whose results are to be treated as retrieved text.
        options: the keyword arguments of `create_robust_documents_chain`.

    Example:
        ```python
        search = create_retriever_tool(retriever, "search", "...", response_format="content_and_artifact")
        agent = create_agent(agent_model, [search], middleware=[RobustRetrievalMiddleware(reader)])
        ```
    """

    def __init__(
        self,
        llm: LanguageModelLike | DecodingModel,
        prompt: BasePromptTemplate[Any] | None = None,
        *,
        tools: Collection[str] = (),
        **options: Unpack[RobustOptions],
    ) -> None:
        super().__init__()
        if isinstance(tools, str):
            raise TypeError(f"tools={tools!r} must be a list of tool names; wrap it: [{tools!r}]")
        self._names = frozenset(tools)
        self._context = options.get("document_variable_name", "context")
        self._answering = create_robust_documents_chain(llm, prompt, return_robustness=True, **options)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run the tool, then answer from what it retrieved."""
        message = handler(request)
        if not isinstance(message, ToolMessage) or (documents := self._retrieved(request, message)) is None:
            return message
        inputs = {**question_inputs(_question(request)), self._context: documents}
        return _replaced(message, self._answering.invoke(inputs, request.runtime.config), documents)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """`wrap_tool_call` without blocking the event loop."""
        message = await handler(request)
        if not isinstance(message, ToolMessage) or (documents := self._retrieved(request, message)) is None:
            return message
        inputs = {**question_inputs(_question(request)), self._context: documents}
        return _replaced(message, await self._answering.ainvoke(inputs, request.runtime.config), documents)

    def _retrieved(self, request: ToolCallRequest, message: ToolMessage) -> list[Document] | None:
        """The documents to answer from; None when the message is not to be replaced."""
        if message.status == "error":
            return None
        if is_documents(message.artifact):
            return list(message.artifact)
        made_here = isinstance(message.artifact, dict) and {"documents", "robustness"} <= message.artifact.keys()
        named = request.tool_call["name"] in self._names
        if made_here or not (named or getattr(request.tool, "args_schema", None) is RetrieverInput):
            return None
        text = str(message.text)
        if not text.strip():
            return None
        _LOG.warning(
            "tool %r gave no documents as its artifact: its whole content is one group, with no guarantee. Make it "
            "with response_format='content_and_artifact'",
            request.tool_call["name"],
        )
        return [Document(page_content=text)]


def _replaced(message: ToolMessage, answered: dict[str, Any], documents: list[Document]) -> ToolMessage:
    content, artifact = content_and_artifact(answered, documents)
    return message.model_copy(update={"content": content, "artifact": artifact})


def _question(request: ToolCallRequest) -> str:
    """What the agent asked the tool: its `query`, or its only text argument; else what the user asked the agent."""
    arguments = request.tool_call["args"]
    texts = [value for value in arguments.values() if isinstance(value, str) and value.strip()]
    if isinstance(query := arguments.get("query"), str) and query.strip():
        return query
    if len(texts) == 1:
        return texts[0]
    state = request.state
    messages = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return last_human_text(messages) or " ".join(texts)
