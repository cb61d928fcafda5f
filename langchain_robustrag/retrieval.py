"""Retrieval, robust answer and report in one Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
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
from langchain_robustrag.supporting import supporting_documents
from robustrag_integrations.models.base import DecodingModel

_ANSWERED = "answered"


def create_robust_retrieval_chain(
    retriever: BaseRetriever | Runnable[dict[str, Any], Any],
    llm: LanguageModelLike | DecodingModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    supporting_only: bool = False,
    **options: Unpack[RobustOptions],
) -> Runnable[dict[str, Any], dict[str, Any]]:
    """Create a chain that retrieves, answers robustly, and says how robustly.

    Args:
        retriever: a retriever, which is asked the input `input`; or a Runnable that is given all inputs.
        llm: see `create_robust_documents_chain`.
        prompt: see there.
        supporting_only: `context` has those documents alone that support the answer (`supporting_documents`), so that
            nobody is shown what was outvoted. It then comes after the answer when streaming.
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
    asked = retrieved | RunnablePassthrough.assign(**{_ANSWERED: answering})
    chain: Runnable[dict[str, Any], dict[str, Any]] = asked | RunnableGenerator(_lifted, _alifted)
    if supporting_only:
        late = partial(_with_late_context, name), partial(_awith_late_context, name)
        chain = chain | RunnableGenerator(*late)
    return chain.with_config(run_name="robust_retrieval_chain")


def _with_late_context(name: str, chunks: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The chunks, with the documents last and only those that support the answer."""
    held: dict[str, Any] = {}
    for chunk in chunks:
        held |= {key: chunk[key] for key in (name, "robustness") if key in chunk}
        if shown := {key: value for key, value in chunk.items() if key != name}:
            yield AddableDict(shown)
    yield _supporting(held, name)


async def _awith_late_context(name: str, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    held: dict[str, Any] = {}
    async for chunk in chunks:
        held |= {key: chunk[key] for key in (name, "robustness") if key in chunk}
        if shown := {key: value for key, value in chunk.items() if key != name}:
            yield AddableDict(shown)
    yield _supporting(held, name)


def _supporting(held: dict[str, Any], name: str) -> AddableDict:
    return AddableDict({name: supporting_documents(held["robustness"], held[name])})


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
