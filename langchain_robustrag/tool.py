"""A retriever tool and a graph's node whose content is a robust answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.tools.retriever import RetrieverInput

from langchain_robustrag.callbacks import NOSTREAM, ShownMessage, in_loop
from langchain_robustrag.chain import RobustOptions, create_reporting_chain
from langchain_robustrag.documents import checked_documents
from langchain_robustrag.language_models import AnyModel
from langchain_robustrag.messages import answer_message, marked
from langchain_robustrag.questions import asking_alone, question_inputs, under_every_name
from langchain_robustrag.retrieval import check_retriever, check_trusted
from robustrag_integrations._util.errors import steers
from robustrag_integrations.answers.answer import WITHHELD, RobustAnswer, as_answer
from robustrag_integrations.audit.check import trusted_retrieval
from robustrag_integrations.defenses.trust import Later

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LOG = logging.getLogger(__name__)
GO_ON = "Go on without it: use another tool, ask in other words, or tell the user that this is not confirmed."


def create_robust_node(
    llm: AnyModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    answer_key: str = "answer",
    **options: Unpack[RobustOptions],
) -> RunnableLambda[Any, dict[str, Any]]:
    """Create a LangGraph node that answers from the documents in the graph's state.

    The state holds the documents (as `context`, or `document_variable_name`; trusted ones as `trusted_context`) and the
    question (as `input`, `question`, `query` or `messages`, or whatever `question` says; condensed from a conversation,
    as `standalone_question`); the prompt may ask for it by the first three of these names. It writes the answer, and
    under `robustness` the report, a `RobustAnswer.to_dict()`, which a checkpointer can store. With
    `stream_mode="messages"` the answer is streamed and what single sources say is not.

    Args:
        llm: see `create_robust_documents_chain`.
        prompt: see there.
        answer_key: under which key of the state the answer goes; under `messages`, which other models read, it is an
            `AIMessage`, and `reader` is `"model"`.
        options: the keyword arguments of `create_robust_documents_chain`.

    Examples:
        ```python
        graph = StateGraph(State)  # with input, context, answer and robustness
        graph.add_node("generate", create_robust_node(llm, group_by="source"))
        ```
    """
    answering = create_reporting_chain(llm, prompt, options, ["answer_key"], read_by_model=answer_key == "messages")

    def inputs(state: Any) -> dict[str, Any]:
        given = dict(state) if isinstance(state, Mapping) else dict(vars(state))  # a dataclass or a pydantic model
        named = under_every_name(given, answering.question)
        return named if answering.question is not None else asking_alone(named, answering.prompt)

    def update(answered: dict[str, Any], shown: ShownMessage) -> dict[str, Any]:
        answer, report = answered["answer"], answered["robustness"]
        if answer_key == "messages":
            answer = [answer_message(answer if isinstance(answer, str) else report.text, report, shown.id)]
        return {answer_key: answer, "robustness": report.to_dict()}

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        shown = ShownMessage()
        return update(answering.invoke(inputs(state), merge_configs(config, {"callbacks": [shown]})), shown)

    async def anode(state: Any, config: RunnableConfig) -> dict[str, Any]:
        shown = ShownMessage()
        merged = merge_configs(config, {"callbacks": [in_loop(shown)]})
        return update(await answering.ainvoke(inputs(state), merged), shown)

    return RunnableLambda(node, anode, name="robust_answer")


class RobustRetrieverTool(StructuredTool):
    """A tool of `create_robust_retriever_tool`: its content is an answer, and no document, nor the name of one."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool; an answer that is withheld is a tool error."""
        return _with_status(super().run(*args, **kwargs))

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """`run` without blocking the event loop."""
        return _with_status(await super().arun(*args, **kwargs))


def create_robust_retriever_tool(
    retriever: Runnable[Any, Any],
    llm: AnyModel,
    name: str,
    description: str,
    *,
    prompt: BasePromptTemplate[Any] | None = None,
    trusted_retriever: Runnable[Any, Any] | None = None,
    **options: Unpack[RobustOptions],
) -> RobustRetrieverTool:
    """Create a tool that retrieves documents and answers from them robustly.

    The agent reads the answer, never a document: what a document tells the agent to do does not reach it unless enough
    sources say the same.

    Args:
        retriever: the source of documents.
        llm: reads the documents; see `create_robust_documents_chain`. It needs no tools and may be a small model.
        name: the tool's name, for the agent.
        description: the tool's purpose, for the agent.
        prompt: as there; its variables besides the documents are `input`, `question` or `query`.
        trusted_retriever: as in `create_robust_retrieval_chain`: what it finds decides, and `retriever` is asked only
            where it does not hold the answer. The agent gets trusted answers.
        options: the keyword arguments of `create_robust_documents_chain`.

    Returns:
        A tool with the argument `query`. Its content is the answer (with `citation_markers` numbers in it, and no
        names), its artifact a dict with `documents` and `robustness`, a `RobustAnswer.to_dict()`, which a checkpointer
        can store. What a sole source says is withheld, and documents that cannot be read (the model fails, say) are not
        answered from: both are a tool error, which quotes nothing of theirs and says what to do. Where sources agree on
        nothing, the content is an abstention. The retriever's own errors are raised.

    Raises:
        TypeError, ValueError: no retriever, or an invalid option.

    Examples:
        ```python
        search = create_robust_retriever_tool(retriever, llm, "search_news", "Answers questions from the news.")
        agent = create_agent(agent_model, [search])
        ```
    """
    check_retriever(retriever)
    check_trusted(trusted_retriever, retriever)
    answering = create_reporting_chain(llm, prompt, options, read_by_model=True)
    first, marked = (retriever, nullcontext) if trusted_retriever is None else (trusted_retriever, trusted_retrieval)

    def later(query: str, config: RunnableConfig) -> Later:
        return Later(
            lambda: retriever.invoke(query, config), lambda: retriever.ainvoke(query, config), checked_documents
        )

    def inputs(query: str, documents: Any, others: Later) -> dict[str, Any]:
        found = (
            {context: documents} if trusted_retriever is None else {f"trusted_{context}": documents, context: others}
        )
        return {**question_inputs(query), **found}

    context = answering.document_variable_name

    def search(query: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        with marked():
            documents = first.invoke(query, config)
        others = later(query, config)
        with _failures_told(others):
            documents = checked_documents(documents)
            answered = answering.invoke(inputs(query, documents, others), hidden(config))
        return content_and_artifact(answered, [*documents, *others.found])

    async def asearch(query: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        with marked():
            documents = await first.ainvoke(query, config)
        others = later(query, config)
        with _failures_told(others):
            documents = checked_documents(documents)
            answered = await answering.ainvoke(inputs(query, documents, others), hidden(config))
        return content_and_artifact(answered, [*documents, *others.found])

    return RobustRetrieverTool(
        name=name,
        description=description,
        func=search,
        coroutine=asearch,
        args_schema=RetrieverInput,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


@contextmanager
def _failures_told(others: Later) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if steers(error) or error is others.error:  # a retriever's own
            raise
        raise ToolException(unread(error)) from error


def hidden(config: RunnableConfig) -> RunnableConfig:
    """Return the config of a tool's answer, whose tokens are not streamed: the user sees the agent's reply."""
    return merge_configs(config, {"tags": [NOSTREAM]})


def unread(error: Exception) -> str:
    """Return the message to an agent about a failed reader: its type alone, as messages may quote what was read."""
    _LOG.warning("retrieved documents could not be read (%s)", type(error).__name__)
    return f"the documents that were found could not be read ({type(error).__name__})"


def content_and_artifact(answered: dict[str, Any], documents: Any) -> tuple[str, dict[str, Any]]:
    """Return the parts of a tool message: the answer, and the artifact, which never reaches the agent's model."""
    answer: RobustAnswer = answered["robustness"]
    said = answered["answer"] if isinstance(answered["answer"], str) else answer.text
    return WITHHELD if answer.is_withheld else said, {"documents": documents, "robustness": answer.to_dict()}


def told(message: ToolMessage, content: str, artifact: Mapping[str, Any]) -> ToolMessage:
    """Return a tool message with these parts, marked as ours; an error if the answer was withheld."""
    status = "error" if as_answer(artifact["robustness"]).is_withheld else "success"
    changes = {"content": content, "artifact": artifact, "status": status, "additional_kwargs": marked(content)}
    return message.model_copy(update=changes)


def _with_status(result: Any) -> Any:
    if isinstance(result, ToolMessage) and result.status == "success":
        return told(result, str(result.content), result.artifact)
    return result
