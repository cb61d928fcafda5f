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
    RunnableConfig,
    RunnableGenerator,
    RunnableLambda,
    RunnablePassthrough,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from typing_extensions import Unpack

from langchain_robustrag.aggregations import RobustOptions
from langchain_robustrag.chain import create_robust_documents_chain
from langchain_robustrag.condensed import STANDALONE, HeardQuery, history_names, standing_alone
from langchain_robustrag.questions import asked_question, question_inputs, usual_question
from langchain_robustrag.runnable import RobustDocuments
from langchain_robustrag.supporting import supporting_documents
from robustrag_integrations.models.base import DecodingModel

_RETRIEVED = "retrieved"
_ANSWERED = "answered"


class RobustRetrievalChain(RunnableBindingBase[dict[str, Any], dict[str, Any]]):
    """A chain of `create_robust_retrieval_chain`: documents go through the robust chain, and nowhere else.

    It stays one step in a longer chain, so that a wiring check and a trace see it as a whole.

    Attributes:
        retriever: where documents come from.
        answering: the robust chain over them.
    """

    retriever: Runnable[Any, Any]
    answering: RobustDocuments

    def warm_up(self, passages: int = 10) -> None:
        """Load what the first answer would load, as `warm_up` of the robust chain does; nothing is retrieved.

        Args:
            passages: how many groups there will be; the isolation probe is made for that number.

        Raises:
            ModelError: the model in this process failed, or the server that is decoded on cannot be reached.
        """
        self.answering.warm_up(passages)

    async def awarm_up(self, passages: int = 10) -> None:
        """`warm_up` without blocking the event loop."""
        await self.answering.awarm_up(passages)


def create_robust_retrieval_chain(
    retriever: BaseRetriever | Runnable[dict[str, Any], Any],
    llm: LanguageModelLike | DecodingModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    supporting_only: bool = False,
    **options: Unpack[RobustOptions],
) -> RobustRetrievalChain:
    """Create a chain that retrieves, answers robustly, and says how robustly.

    Args:
        retriever: a retriever, which is asked the question, also with retries, fallbacks or settings around it or with
            steps behind it; or a Runnable that is given all inputs, such as one of `create_history_aware_retriever`.
            The question as it stands alone, which that one asks, also is what groups and final prompt are asked,
            unless your prompt shows the conversation; it is the input `standalone_question` of the prompt in any case.
        llm: see `create_robust_documents_chain`.
        prompt: see there.
        supporting_only: `context` has those documents alone that support the answer (`supporting_documents`), so that
            nobody is shown what was outvoted. It then comes after the answer when streaming.
        options: its keyword arguments.

    Returns:
        A Runnable from a dict with `input` (or `question`, `query`, `messages`) to that dict with `context` (the
        documents), `answer` and `robustness` (the `RobustAnswer`), and with `standalone_question` if there was one.
        Streaming gives the input, the documents, the answer in pieces, and the report last.

    Raises:
        TypeError, ValueError: no retriever, or an invalid option.

    Examples:
        ```python
        rag = create_robust_retrieval_chain(retriever, llm, group_by="source")
        result = rag.invoke({"input": "Who won?"})
        result["answer"], result["robustness"].radius
        ```
    """
    if not isinstance(retriever, Runnable):
        raise TypeError(
            f"retriever must be a retriever or another Runnable, got {type(retriever).__name__}; a vector store has "
            "as_retriever(), and a function goes into RunnableLambda(...)"
        )
    name, question = options.get("document_variable_name", "context"), options.get("question")
    answering = create_robust_documents_chain(llm, prompt, return_robustness=True, **options)
    takes_text = _takes_text(retriever)
    shown = frozenset() if prompt is None else frozenset({*prompt.input_variables, *prompt.optional_variables})

    def asked(inputs: dict[str, Any]) -> dict[str, Any]:
        known = usual_question(inputs) if question is None else None
        return inputs if known is None else {**question_inputs(known), **inputs}

    def query(inputs: dict[str, Any]) -> Any:
        return asked_question(inputs, question) if takes_text else asked(inputs)

    def found(inputs: dict[str, Any], documents: Any, heard: HeardQuery) -> dict[str, Any]:
        alone = standing_alone(inputs, heard) if question is None else None
        return {name: documents, **({} if alone is None else {STANDALONE: alone})}

    def retrieve(inputs: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        heard = HeardQuery()
        return found(inputs, retriever.invoke(query(inputs), merge_configs(config, {"callbacks": [heard]})), heard)

    async def aretrieve(inputs: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        heard = HeardQuery()
        documents = await retriever.ainvoke(query(inputs), merge_configs(config, {"callbacks": [heard]}))
        return found(inputs, documents, heard)

    def answerable(inputs: dict[str, Any]) -> dict[str, Any]:
        whole = asked({**{k: v for k, v in inputs.items() if k != _RETRIEVED}, **inputs[_RETRIEVED]})
        if STANDALONE in inputs[_RETRIEVED] and not shown & history_names(inputs):
            whole |= question_inputs(whole[STANDALONE])
        return whole

    retrieving = RunnableLambda(retrieve, aretrieve, name="retrieve_documents")
    steps: list[Runnable[Any, Any]] = [
        RunnablePassthrough.assign(**{_ANSWERED: RunnableLambda(answerable) | answering}),
        RunnableGenerator(_lifted, _alifted),
    ]
    if supporting_only:
        steps.append(RunnableGenerator(partial(_with_late_context, name), partial(_awith_late_context, name)))
    first = RunnablePassthrough.assign(**{_RETRIEVED: retrieving})
    chain = RunnableSequence[dict[str, Any], dict[str, Any]](first, *steps, name="robust_retrieval_chain")
    return RobustRetrievalChain(bound=chain, retriever=retriever, answering=answering)


def _takes_text(retriever: Runnable[Any, Any]) -> bool:
    """Whether a retriever is asked first, whatever is around it or behind it: retries, fallbacks, settings, steps."""
    while not isinstance(retriever, BaseRetriever):
        if isinstance(retriever, RunnableBindingBase):
            retriever = retriever.bound
        elif isinstance(retriever, RunnableWithFallbacks):
            retriever = retriever.runnable
        elif isinstance(retriever, DynamicRunnable):
            retriever = retriever.default
        elif isinstance(retriever, RunnableSequence):
            retriever = retriever.first
        else:
            return False
    return True


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


def _lifted(chunks: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        yield _flat(chunk)


async def _alifted(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    async for chunk in chunks:
        yield _flat(chunk)


def _flat(chunk: dict[str, Any]) -> AddableDict:
    """The documents and the answer's own keys one level up."""
    inner = (_RETRIEVED, _ANSWERED)
    given = {k: v for k, v in chunk.items() if k not in inner}
    return AddableDict({**given, **chunk.get(_RETRIEVED, {}), **chunk.get(_ANSWERED, {})})
