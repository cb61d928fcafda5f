"""Retrieval, robust answer and report in one Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    AddableDict,
    Runnable,
    RunnableGenerator,
    RunnableLambda,
    RunnablePassthrough,
)
from typing_extensions import Unpack

from langchain_robustrag.aggregations import RobustOptions
from langchain_robustrag.chain import create_robust_documents_chain
from robustrag_integrations.models.base import DecodingModel

_ANSWERED = "answered"


def create_robust_retrieval_chain(
    retriever: BaseRetriever | Runnable[dict[str, Any], Any],
    llm: LanguageModelLike | DecodingModel,
    prompt: BasePromptTemplate[Any] | None = None,
    **options: Unpack[RobustOptions],
) -> Runnable[dict[str, Any], dict[str, Any]]:
    """Create a chain that retrieves, answers robustly, and says how robustly.

    Args:
        retriever: a retriever, which is asked the input `input`; or a Runnable that is given all inputs.
        llm: see `create_robust_documents_chain`.
        prompt: see there.
        options: its keyword arguments.

    Returns:
        A Runnable from a dict with `input` to that dict with `context` (the documents), `answer` and `robustness` (the
        `RobustAnswer`). Streaming gives the input, the documents, the answer in pieces, and the report last.

    Example:
        ```python
        rag = create_robust_retrieval_chain(retriever, llm, group_by="source")
        result = rag.invoke({"input": "Who won?"})
        result["answer"], result["robustness"].radius
        ```
    """
    name = options.get("document_variable_name", "context")
    answering = create_robust_documents_chain(llm, prompt, return_robustness=True, **options)
    retrieving: Runnable[Any, Any] = retriever
    if isinstance(retriever, BaseRetriever):
        retrieving = RunnableLambda(_question_of) | retriever
    retrieved = RunnablePassthrough.assign(**{name: retrieving.with_config(run_name="retrieve_documents")})
    chain: Runnable[dict[str, Any], dict[str, Any]] = (
        retrieved | RunnablePassthrough.assign(**{_ANSWERED: answering}) | RunnableGenerator(_lifted, _alifted)
    )
    return chain.with_config(run_name="robust_retrieval_chain")


def _question_of(inputs: dict[str, Any]) -> Any:
    return inputs["input"]


def _lifted(chunks: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        yield _flat(chunk)


async def _alifted(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    async for chunk in chunks:
        yield _flat(chunk)


def _flat(chunk: dict[str, Any]) -> AddableDict:
    """The answer's own keys one level up."""
    return AddableDict({**{k: v for k, v in chunk.items() if k != _ANSWERED}, **chunk.get(_ANSWERED, {})})
