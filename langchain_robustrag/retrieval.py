"""Retrieval, robust answer and report in one Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import AddableDict, ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.utils import get_unique_config_specs
from langchain_core.utils.pydantic import create_model
from pydantic import BaseModel, Field

from langchain_robustrag.callbacks import Heard, in_loop
from langchain_robustrag.chain import RobustOptions, create_reporting_chain
from langchain_robustrag.language_models import AnyModel
from langchain_robustrag.prompts import shown_names
from langchain_robustrag.questions import (
    STANDALONE,
    find_question,
    history_names,
    question_inputs,
    standing_alone,
    under_every_name,
    with_history_for_prompts,
)
from langchain_robustrag.runnable import OneRun, RobustDocuments, child_config
from robustrag_integrations._util.checks import check_flag
from robustrag_integrations.answers.answer import RobustAnswer

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RobustRetrievalChain(OneRun[dict[str, Any]]):
    """A chain of `create_robust_retrieval_chain`: documents go through the robust chain, and nowhere else."""

    name: str | None = "robust_retrieval_chain"
    retriever: Runnable[Any, Any] = Field(frozen=True)
    answering: RobustDocuments = Field(frozen=True)
    supporting_only: bool = Field(default=False, frozen=True)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the retriever and of the robust chain."""
        return get_unique_config_specs([*self.retriever.config_specs, *self.answering.config_specs])

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the prompt's inputs other than the documents: the question, and any others."""
        given, left = self.answering.get_input_schema(config), {self.answering.document_variable_name, STANDALONE}
        fields: dict[str, Any] = {n: (f.annotation, ...) for n, f in given.model_fields.items() if n not in left}
        return create_model("RobustRetrievalInput", **fields)

    def _answer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> dict[str, Any]:
        query, heard = self._query(inputs), Heard()
        documents = self.retriever.invoke(query, _heard_by(heard, run_manager, config))
        found, asked = self._found(inputs, documents, heard)
        answered = self.answering.invoke(asked, child_config(config, run_manager, "answer"))
        return {**inputs, **found, **self._shown(answered, documents)}

    async def _aanswer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> dict[str, Any]:
        query, heard = self._query(inputs), Heard()
        documents = await self.retriever.ainvoke(query, _heard_by(in_loop(heard), run_manager, config))
        found, asked = self._found(inputs, documents, heard)
        answered = await self.answering.ainvoke(asked, child_config(config, run_manager, "answer"))
        return {**inputs, **found, **self._shown(answered, documents)}

    def _pieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Iterator[dict[str, Any]]:
        query, heard = self._query(inputs), Heard()
        yield AddableDict(inputs)
        documents = self.retriever.invoke(query, _heard_by(heard, run_manager, config))
        found, asked = self._found(inputs, documents, heard)
        if early := self._early(found):
            yield early
        for piece in self.answering.stream(asked, child_config(config, run_manager, "answer")):
            yield self._shown(piece, documents)

    async def _apieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> AsyncIterator[dict[str, Any]]:
        query, heard = self._query(inputs), Heard()
        yield AddableDict(inputs)
        documents = await self.retriever.ainvoke(query, _heard_by(in_loop(heard), run_manager, config))
        found, asked = self._found(inputs, documents, heard)
        if early := self._early(found):
            yield early
        async with aclosing(self.answering.astream(asked, child_config(config, run_manager, "answer"))) as pieces:
            async for piece in pieces:
                yield self._shown(piece, documents)

    def _query(self, inputs: Any) -> Any:
        """Return the input of the retriever: the question, or all inputs where it is another Runnable."""
        if not isinstance(inputs, dict):
            fix = f"{{'input': {inputs!r:.60}}}" if isinstance(inputs, str) else "{'input': question}"
            raise TypeError(f"the input must be a dict with the question, got {type(inputs).__name__}; give {fix}")
        if self.retriever.InputType is str:
            return find_question(inputs, self.answering.question)
        return under_every_name(with_history_for_prompts(inputs), self.answering.question)

    def _found(self, inputs: dict[str, Any], documents: Any, heard: Heard) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the documents (and the question as it stands alone, if there was one), and the answer's input."""
        found = {self.answering.document_variable_name: documents}
        alone = standing_alone(inputs, heard) if self.answering.question is None else None
        if alone is None:
            return found, {**under_every_name(inputs, self.answering.question), **found}
        found[STANDALONE] = alone
        asked = {**under_every_name(inputs, self.answering.question), **found}
        if not (shown_names(self.answering.prompt) - {"query"}) & history_names(inputs):  # which is a text anyway
            asked |= question_inputs(alone)
        return found, asked

    def _early(self, found: dict[str, Any]) -> AddableDict:
        """Return the part of a stream that is shown once the documents are there."""
        late = self.answering.document_variable_name if self.supporting_only else None
        return AddableDict({name: value for name, value in found.items() if name != late})

    def _shown(self, answered: dict[str, Any], documents: Any) -> AddableDict:
        """Return the robust chain's output; with a report and `supporting_only`, also the documents that support it."""
        answer: RobustAnswer | None = answered.get("robustness")
        if answer is None or not self.supporting_only:
            return AddableDict(answered)
        supporting = {self.answering.document_variable_name: answer.supporting(documents)}
        return AddableDict({**supporting, **answered, "robustness": answer.over_supporting()})


def _heard_by(handler: Any, run_manager: Any, config: RunnableConfig) -> RunnableConfig:
    """Return the retriever's config, with a handler that records its queries to other retrievers."""
    config = child_config(config, run_manager, "retrieve")
    config["callbacks"].add_handler(handler)  # type: ignore[union-attr]
    return config


def create_robust_retrieval_chain(
    retriever: Runnable[Any, Any],
    llm: AnyModel,
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
    answering = create_reporting_chain(llm, prompt, options, ["supporting_only"])
    return RobustRetrievalChain(retriever=retriever, answering=answering, supporting_only=supporting_only)


def check_retriever(retriever: object) -> None:
    """Raise TypeError for a source of documents that cannot be asked."""
    if not isinstance(retriever, Runnable) or isinstance(retriever, BaseLanguageModel):
        raise TypeError(
            f"retriever must be a retriever or another Runnable, got {type(retriever).__name__}; a vector store has "
            "as_retriever(), a function goes into RunnableLambda(...), and a model comes behind the retriever"
        )
