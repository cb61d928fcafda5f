"""Retrieval, robust answer and report in one Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from langchain_core.language_models import BaseLanguageModel, LanguageModelLike
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
from langchain_core.utils.pydantic import create_model
from pydantic import BaseModel, Field
from typing_extensions import Unpack

from langchain_robustrag.aggregations import RobustOptions
from langchain_robustrag.chain import create_reporting_chain
from langchain_robustrag.condensed import STANDALONE, HeardQuery, history_names, standing_alone
from langchain_robustrag.in_loop import in_loop
from langchain_robustrag.prompts import shown_names
from langchain_robustrag.questions import asked_question, question_inputs, usual_question
from langchain_robustrag.runnable import RobustDocuments, refuse_arguments
from langchain_robustrag.supporting import supporting_documents
from robustrag_integrations.checks import check_flag
from robustrag_integrations.models.base import DecodingModel

_RETRIEVED = "retrieved"
_ANSWERED = "answered"


class RobustRetrievalChain(RunnableBindingBase[dict[str, Any], dict[str, Any]]):
    """A chain of `create_robust_retrieval_chain`: documents go through the robust chain, and nowhere else.

    It stays one step in a longer chain, so that a wiring check and a trace see it as a whole. Its steps are made from
    its parts, also where a config chooses another retriever (`configurable_fields`).

    Attributes:
        retriever: where documents come from.
        answering: the robust chain over them.
        supporting_only: whether those documents alone are given that support the answer.
    """

    retriever: Runnable[Any, Any] = Field(frozen=True)
    answering: RobustDocuments = Field(frozen=True)
    supporting_only: bool = Field(default=False, frozen=True)

    def __init__(
        self,
        *,
        retriever: Runnable[Any, Any],
        answering: RobustDocuments,
        supporting_only: bool = False,
        **binding: Any,
    ) -> None:
        parts: dict[str, Any] = {
            "retriever": retriever,
            "answering": answering,
            "supporting_only": supporting_only,
        }
        super().__init__(**{**binding, **parts, "bound": _steps(retriever, answering, supporting_only)})

    def __reduce__(self) -> Any:
        made = partial(
            type(self), retriever=self.retriever, answering=self.answering, supporting_only=self.supporting_only
        )
        return made, ()

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

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Retrieve and answer once."""
        refuse_arguments(kwargs)
        return super().invoke(_checked(input), config)

    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """`invoke` without blocking the event loop; cancelling it cancels the model calls."""
        refuse_arguments(kwargs)
        return await super().ainvoke(_checked(input), config)

    def stream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[dict[str, Any]]:
        """The input, the documents, the answer in pieces, and the report last."""
        refuse_arguments(kwargs)
        yield from super().stream(_checked(input), config)

    async def astream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """`stream` without blocking the event loop."""
        refuse_arguments(kwargs)
        async for chunk in super().astream(_checked(input), config):
            yield chunk

    # Input by input, so that what is refused or fails is one input's, not that of all.
    batch = Runnable.batch
    abatch = Runnable.abatch
    batch_as_completed = Runnable.batch_as_completed
    abatch_as_completed = Runnable.abatch_as_completed

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """What the prompt names besides the documents: the question, and other inputs."""
        asked = self.answering.get_input_schema(config).model_fields
        given = {name: field for name, field in asked.items() if name != self.answering.document_variable_name}
        fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in given.items() if name != STANDALONE}
        return create_model("RobustRetrievalInput", **fields)


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
    check_retriever(retriever)
    check_flag(supporting_only=supporting_only)
    answering = create_reporting_chain(llm, prompt, options)
    return RobustRetrievalChain(retriever=retriever, answering=answering, supporting_only=supporting_only)


def check_retriever(retriever: object) -> None:
    """Check what documents come from.

    Raises:
        TypeError: it is none that can be asked; the message says what is.
    """
    if not isinstance(retriever, Runnable) or isinstance(retriever, BaseLanguageModel):
        raise TypeError(
            f"retriever must be a retriever or another Runnable, got {type(retriever).__name__}; a vector store has "
            "as_retriever(), a function goes into RunnableLambda(...), and a model comes behind the retriever"
        )


def _steps(
    retriever: Runnable[Any, Any], answering: RobustDocuments, supporting_only: bool
) -> Runnable[dict[str, Any], dict[str, Any]]:
    """Retrieve, answer, and put documents, answer and report side by side."""
    name, question = answering.document_variable_name, answering.question
    takes_text = _takes_text(retriever)
    shown = shown_names(answering.prompt) - {"query"}  # that one is a text anyway

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
        documents = await retriever.ainvoke(query(inputs), merge_configs(config, {"callbacks": [in_loop(heard)]}))
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
    return RunnableSequence(first, *steps, name="robust_retrieval_chain")


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """The input.

    Raises:
        TypeError: it is no dict; the message says what is.
    """
    if isinstance(given, dict):
        return given
    fix = f"{{'input': {given!r:.60}}}" if isinstance(given, str) else "{'input': question}"
    raise TypeError(f"the input must be a dict with the question, got {type(given).__name__}; give {fix}")


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
