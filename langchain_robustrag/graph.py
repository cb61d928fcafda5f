"""A node for LangGraph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from typing_extensions import Unpack

from langchain_robustrag.aggregations import RobustOptions
from langchain_robustrag.chain import create_robust_documents_chain
from robustrag_integrations.models.base import DecodingModel


def create_robust_node(
    llm: LanguageModelLike | DecodingModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    answer_key: str = "answer",
    robustness_key: str = "robustness",
    **options: Unpack[RobustOptions],
) -> Runnable[Any, dict[str, Any]]:
    """Create a LangGraph node that answers from the documents in the graph's state.

    The state holds the documents (as `context`, or `document_variable_name`) and the question (as `input`, `question`,
    `query` or `messages`, or whatever `question` says). With `stream_mode="messages"` the answer is streamed and what
    single groups say is not.

    Args:
        llm: see `create_robust_documents_chain`.
        prompt: see there.
        answer_key: under which key of the state the answer goes.
        robustness_key: and the report, a `RobustAnswer.to_dict()`, which a checkpointer can store.
        options: the keyword arguments of `create_robust_documents_chain`.

    Example:
        ```python
        graph = StateGraph(State)  # with input, context, answer and robustness
        graph.add_node("generate", create_robust_node(llm, group_by="source"))
        ```
    """
    answering = create_robust_documents_chain(llm, prompt, return_robustness=True, **options)

    def update(answered: dict[str, Any]) -> dict[str, Any]:
        return {answer_key: answered["answer"], robustness_key: answered["robustness"].to_dict()}

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return update(answering.invoke(_inputs(state), config))

    async def anode(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return update(await answering.ainvoke(_inputs(state), config))

    return RunnableLambda(node, anode, name="robust_answer")


def _inputs(state: Any) -> dict[str, Any]:
    """The state as a chain's input; states may be dicts, dataclasses or pydantic models."""
    return dict(state) if isinstance(state, Mapping) else dict(vars(state))
