"""A node for LangGraph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs

from langchain_robustrag.callbacks import ShownMessage, in_loop
from langchain_robustrag.chain import create_reporting_chain
from langchain_robustrag.language_models import AnyModel


def create_robust_node(
    llm: AnyModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    answer_key: str = "answer",
    **options: Any,
) -> RunnableLambda[Any, dict[str, Any]]:
    """Create a LangGraph node that answers from the documents in the graph's state.

    The state holds the documents (as `context`, or `document_variable_name`) and the question (as `input`, `question`,
    `query` or `messages`, or whatever `question` says). It writes the answer, and under `robustness` the report, a
    `RobustAnswer.to_dict()`, which a checkpointer can store. With `stream_mode="messages"` the answer is streamed and
    what single groups say is not.

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
    answering = create_reporting_chain(llm, prompt, options, read_by_model=answer_key == "messages")

    def update(answered: dict[str, Any], shown: ShownMessage) -> dict[str, Any]:
        answer, report = answered["answer"], answered["robustness"]
        if answer_key == "messages":
            answer = [AIMessage(answer if isinstance(answer, str) else report.text, id=shown.id)]
        return {answer_key: answer, "robustness": report.to_dict()}

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        shown = ShownMessage()
        return update(answering.invoke(_inputs(state), merge_configs(config, {"callbacks": [shown]})), shown)

    async def anode(state: Any, config: RunnableConfig) -> dict[str, Any]:
        shown = ShownMessage()
        merged = merge_configs(config, {"callbacks": [in_loop(shown)]})
        return update(await answering.ainvoke(_inputs(state), merged), shown)

    return RunnableLambda(node, anode, name="robust_answer")


def _inputs(state: Any) -> dict[str, Any]:
    """Return the state as a chain's input; states may be dicts, dataclasses or pydantic models."""
    return dict(state) if isinstance(state, Mapping) else dict(vars(state))
