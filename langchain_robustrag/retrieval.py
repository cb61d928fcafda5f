"""Retrieval, robust answer and report in one Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    AddableDict,
    ConfigurableFieldSpec,
    Runnable,
    RunnableConfig,
)
from langchain_core.runnables.utils import get_unique_config_specs
from langchain_core.utils.pydantic import create_model
from pydantic import BaseModel, Field

from langchain_robustrag.base import OneRun, child_config
from langchain_robustrag.callbacks import Heard, in_loop
from langchain_robustrag.chain import create_reporting_chain
from langchain_robustrag.language_models import AnyModel
from langchain_robustrag.prompts import shown_names
from langchain_robustrag.questions import (
    STANDALONE,
    asked_question,
    history_names,
    question_inputs,
    standing_alone,
    usual_question,
)
from langchain_robustrag.runnable import RobustDocuments
from robustrag_integrations._util.checks import check_flag
from robustrag_integrations.answers.answer import RobustAnswer


class RobustRetrievalChain(OneRun[dict[str, Any]]):
    """A chain of `create_robust_retrieval_chain`: documents go through the robust chain, and nowhere else.

    It stays one step in a longer chain, so that a wiring check and a trace see it as a whole.

    Attributes:
        retriever: the source of documents.
        answering: the robust chain over them.
        supporting_only: True if those documents alone are given that support the answer.
    """

    name: str | None = "robust_retrieval_chain"
    retriever: Runnable[Any, Any] = Field(frozen=True)
    answering: RobustDocuments = Field(frozen=True)
    supporting_only: bool = Field(default=False, frozen=True)

    def __repr__(self) -> str:
        only = ", supporting_only=True" if self.supporting_only else ""
        return f"RobustRetrievalChain({type(self.retriever).__name__}, {self.answering!r}{only})"

    def _answer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> dict[str, Any]:
        turn = _Turn(self, _checked(inputs))
        asked = turn.take(self.retriever.invoke(turn.query, turn.listening(run_manager, config)))
        answered = self.answering.invoke(asked, child_config(config, run_manager, "answer"))
        return {**inputs, **turn.found, **turn.shown(answered)}

    async def _aanswer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> dict[str, Any]:
        turn = _Turn(self, _checked(inputs))
        asked = turn.take(await self.retriever.ainvoke(turn.query, turn.listening(run_manager, config, in_a_loop=True)))
        answered = await self.answering.ainvoke(asked, child_config(config, run_manager, "answer"))
        return {**inputs, **turn.found, **turn.shown(answered)}

    def _pieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Iterator[dict[str, Any]]:
        turn = _Turn(self, _checked(inputs))
        yield AddableDict(inputs)
        asked = turn.take(self.retriever.invoke(turn.query, turn.listening(run_manager, config)))
        if first := turn.before_the_answer:
            yield first
        for piece in self.answering.stream(asked, child_config(config, run_manager, "answer")):
            yield turn.shown(piece)

    async def _apieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> AsyncIterator[dict[str, Any]]:
        turn = _Turn(self, _checked(inputs))
        yield AddableDict(inputs)
        asked = turn.take(await self.retriever.ainvoke(turn.query, turn.listening(run_manager, config, in_a_loop=True)))
        if first := turn.before_the_answer:
            yield first
        async with aclosing(self.answering.astream(asked, child_config(config, run_manager, "answer"))) as pieces:
            async for piece in pieces:
                yield turn.shown(piece)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the retriever and of the robust chain."""
        return get_unique_config_specs([*self.retriever.config_specs, *self.answering.config_specs])

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the prompt's inputs other than the documents: the question, and any others."""
        asked = self.answering.get_input_schema(config).model_fields
        given = {name: field for name, field in asked.items() if name != self.answering.document_variable_name}
        fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in given.items() if name != STANDALONE}
        return create_model("RobustRetrievalInput", **fields)

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the output: the input, the documents, the answer and its report."""
        given = self.get_input_schema(config).model_fields
        fields: dict[str, Any] = {
            **{name: (field.annotation, ...) for name, field in given.items()},
            self.answering.document_variable_name: (list[Document], ...),
            **{name: (f.annotation, ...) for name, f in self.answering.get_output_schema(config).model_fields.items()},
        }
        return create_model("RobustRetrievalOutput", **fields)


@dataclass
class _Turn:
    """One question on its way through a chain.

    Attributes:
        found: the documents, and the question as it stands alone, where there was one.
    """

    chain: RobustRetrievalChain
    inputs: dict[str, Any]
    heard: Heard = field(default_factory=Heard)
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def query(self) -> Any:
        """The input of the retriever: the question, or all inputs where it is another Runnable."""
        if self.chain.retriever.InputType is str:
            return asked_question(self.inputs, self.chain.answering.question)
        return self._under_every_name(self.inputs)

    def listening(self, run_manager: Any, config: RunnableConfig, *, in_a_loop: bool = False) -> RunnableConfig:
        """Return the retriever's config, with a handler that records its queries to other retrievers."""
        config = child_config(config, run_manager, "retrieve")
        config["callbacks"].add_handler(in_loop(self.heard) if in_a_loop else self.heard)  # type: ignore[union-attr]
        return config

    def take(self, documents: Any) -> dict[str, Any]:
        """Take the retrieved documents, and return the input of the robust chain."""
        answering = self.chain.answering
        self.found[answering.document_variable_name] = documents
        asked = self._under_every_name({**self.inputs, **self.found})
        if answering.question is not None or (alone := standing_alone(self.inputs, self.heard)) is None:
            return asked
        asked[STANDALONE] = self.found[STANDALONE] = alone
        if not (shown_names(answering.prompt) - {"query"}) & history_names(self.inputs):  # which is a text anyway
            asked |= question_inputs(alone)
        return asked

    @property
    def before_the_answer(self) -> AddableDict:
        """The part of a stream that is shown once the documents are there."""
        late = self.chain.answering.document_variable_name if self.chain.supporting_only else None
        return AddableDict({name: value for name, value in self.found.items() if name != late})

    def shown(self, answered: dict[str, Any]) -> AddableDict:
        """Return the robust chain's output; with a report and `supporting_only`, also the documents that support it."""
        answer: RobustAnswer | None = answered.get("robustness")
        if answer is None or not self.chain.supporting_only:
            return AddableDict(answered)
        name = self.chain.answering.document_variable_name
        documents = answer.supporting(self.found[name])
        return AddableDict({name: documents, **answered, "robustness": answer.over_supporting()})

    def _under_every_name(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs, with the question under every name by which a prompt may ask for it."""
        known = usual_question(self.inputs) if self.chain.answering.question is None else None
        return inputs if known is None else {**question_inputs(known), **inputs}


def create_robust_retrieval_chain(
    retriever: BaseRetriever | Runnable[dict[str, Any], Any],
    llm: AnyModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    supporting_only: bool = False,
    **options: Any,
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
            nobody is shown what was outvoted. It then comes after the answer when streaming. `positions` in the report
            are places in this `context`.
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
    """Check the source of the documents.

    Raises:
        TypeError: it is none that can be asked; the message says what is.
    """
    if not isinstance(retriever, Runnable) or isinstance(retriever, BaseLanguageModel):
        raise TypeError(
            f"retriever must be a retriever or another Runnable, got {type(retriever).__name__}; a vector store has "
            "as_retriever(), a function goes into RunnableLambda(...), and a model comes behind the retriever"
        )


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Check the input, and return it.

    Raises:
        TypeError: it is no dict; the message says what is.
    """
    if isinstance(given, dict):
        return given
    fix = f"{{'input': {given!r:.60}}}" if isinstance(given, str) else "{'input': question}"
    raise TypeError(f"the input must be a dict with the question, got {type(given).__name__}; give {fix}")
