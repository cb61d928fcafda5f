"""Retrieval, robust answer and report in one Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import AddableDict, ConfigurableFieldSpec, Runnable, RunnableConfig, RunnablePassthrough
from langchain_core.runnables.utils import get_unique_config_specs
from langchain_core.utils.pydantic import create_model
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_robustrag.callbacks import Heard, in_loop
from langchain_robustrag.chain import RobustOptions, create_reporting_chain
from langchain_robustrag.documents import checked_documents
from langchain_robustrag.language_models import AnyModel
from langchain_robustrag.questions import (
    STANDALONE,
    asking_alone,
    find_question,
    standing_alone,
    under_every_name,
)
from langchain_robustrag.runnable import OneRun, RobustDocuments, child_config
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.audit.check import trusted_retrieval
from robustrag_integrations.defenses.trust import Later

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RobustResult(TypedDict, total=False):
    """What a chain of `create_robust_retrieval_chain` gives: its input, and these. A chunk of a stream has some."""

    input: str
    question: str
    query: str
    context: list[Document]
    standalone_question: str
    answer: Any
    robustness: RobustAnswer


class RobustRetrievalChain(OneRun[RobustResult]):
    """A chain of `create_robust_retrieval_chain`: documents go through the robust chain, and nowhere else."""

    name: str | None = "robust_retrieval_chain"
    retriever: Runnable[Any, Any] = Field(frozen=True)
    trusted_retriever: Runnable[Any, Any] | None = Field(default=None, frozen=True)
    answering: RobustDocuments = Field(frozen=True)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={retriever.get_name()}" for name, retriever in self._retrievers.items())
        return f"RobustRetrievalChain({shown}, answering={self.answering!r})"

    @property
    def _retrievers(self) -> dict[str, Runnable[Any, Any]]:
        found = {"trusted_retriever": self.trusted_retriever, "retriever": self.retriever}
        return {name: retriever for name, retriever in found.items() if retriever is not None}

    def _parts(self) -> list[Runnable[Any, Any]]:
        return [RunnablePassthrough.assign(**self._retrievers), self.answering]

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the retrievers and of the robust chain."""
        parts = [*self._retrievers.values(), self.answering]
        return get_unique_config_specs(spec for part in parts for spec in part.config_specs)

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the prompt's inputs other than the documents: the question, and any others."""
        given, left = self.answering.get_input_schema(config), {self.answering.document_variable_name, STANDALONE}
        fields: dict[str, Any] = {n: (f.annotation, ...) for n, f in given.model_fields.items() if n not in left}
        return create_model("RobustRetrievalInput", **fields)

    @property
    def OutputType(self) -> Any:
        """The type of the result."""
        return RobustResult

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the input, the documents, the answer and the report."""
        given, answered = self.get_input_schema(config), self.answering.get_output_schema(config)
        known = {**given.model_fields, **answered.model_fields}
        fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in known.items()}
        fields |= {self.answering.document_variable_name: (list[Document], ...), STANDALONE: (str | None, None)}
        return create_model("RobustRetrievalOutput", **fields)

    def _answer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Any:
        call = _Call(self, inputs, run_manager, config)
        asked = call.asking(call.invoke_first())
        answered = self.answering.invoke(asked, child_config(config, run_manager, "answer"))
        return {**inputs, **call.found(), **answered}

    async def _aanswer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Any:
        call = _Call(self, inputs, run_manager, config)
        asked = call.asking(await call.ainvoke_first())
        answered = await self.answering.ainvoke(asked, child_config(config, run_manager, "answer"))
        return {**inputs, **call.found(), **answered}

    def _pieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Iterator[Any]:
        call = _Call(self, inputs, run_manager, config)
        yield AddableDict(inputs)
        asked = call.asking(call.invoke_first())
        yield AddableDict(call.found())
        for piece in self.answering.stream(asked, child_config(config, run_manager, "answer")):
            yield from call.found_since()
            yield AddableDict(piece)

    async def _apieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> AsyncIterator[Any]:
        call = _Call(self, inputs, run_manager, config)
        yield AddableDict(inputs)
        asked = call.asking(await call.ainvoke_first())
        yield AddableDict(call.found())
        async with aclosing(self.answering.astream(asked, child_config(config, run_manager, "answer"))) as pieces:
            async for piece in pieces:
                for part in call.found_since():
                    yield part
                yield AddableDict(piece)


class _Call:
    """One call of a retrieval chain: what its retrievers find, and what is told of it."""

    def __init__(self, chain: RobustRetrievalChain, inputs: Any, run_manager: Any, config: RunnableConfig) -> None:
        if not isinstance(inputs, dict):
            fix = f"{{'input': {inputs!r:.60}}}" if isinstance(inputs, str) else "{'input': question}"
            raise TypeError(f"the input must be a dict with the question, got {type(inputs).__name__}; give {fix}")
        self._chain, self._inputs, self._run_manager, self._config = chain, inputs, run_manager, config
        self._answering, self._name = chain.answering, chain.answering.document_variable_name
        self._first = chain.retriever if chain.trusted_retriever is None else chain.trusted_retriever
        self._heard = Heard()
        self._found: dict[str, Any] = {}
        self._documents: Any = []
        self._later: Later | None = None
        self._told = False

    def invoke_first(self) -> Any:
        with self._marked():
            return self._first.invoke(self._query(self._first), self._heard_by(self._heard))

    async def ainvoke_first(self) -> Any:
        with self._marked():
            return await self._first.ainvoke(self._query(self._first), self._heard_by(in_loop(self._heard)))

    def _marked(self) -> AbstractContextManager[None]:
        return nullcontext() if self._chain.trusted_retriever is None else trusted_retrieval()

    def _query(self, retriever: Runnable[Any, Any]) -> Any:
        """Return the input of a retriever: the question, or all inputs where it is another Runnable."""
        if retriever.InputType is str:
            return self._found.get(STANDALONE) or find_question(self._inputs, self._answering.question)
        return under_every_name(self._answering.with_history(self._inputs), self._answering.question)

    def _heard_by(self, handler: Any = None) -> RunnableConfig:
        """Return a retriever's config, with a handler that records its queries to other retrievers."""
        config = child_config(self._config, self._run_manager, "retrieve")
        if handler is not None:
            config["callbacks"].add_handler(handler)  # type: ignore[union-attr]
        return config

    def asking(self, documents: Any) -> dict[str, Any]:
        """Take the documents that were found first; return the input of the robust chain."""
        is_trusted = self._chain.trusted_retriever is not None
        self._documents = checked_documents(documents, "trusted documents" if is_trusted else "documents")
        question = self._answering.question
        asked = under_every_name(self._inputs, question)
        if question is None and (alone := standing_alone(self._inputs, self._heard)) is not None:
            self._found[STANDALONE] = alone
            asked = asking_alone({**asked, STANDALONE: alone}, self._answering.prompt)
        if not is_trusted:
            return {**asked, self._name: self._documents}
        retriever = self._chain.retriever
        given = find_question(self._inputs, question, self._answering.prompt, self._name)
        self._later = Later(
            lambda: retriever.invoke(self._query(retriever), self._heard_by()),
            lambda: retriever.ainvoke(self._query(retriever), self._heard_by()),
            checked_documents,
            condensed=self._first.InputType is not str and self._heard.queries != {given},
        )
        return {**asked, f"trusted_{self._name}": self._documents, self._name: self._later}

    def found(self) -> dict[str, Any]:
        """Return all documents, the trusted ones first, and the question as it stands alone, if there was one."""
        later = [] if self._later is None else self._later.found
        return {self._name: [*self._documents, *later], **self._found}

    def found_since(self) -> Iterator[AddableDict]:
        """Yield the documents that were retrieved later, once, for a stream."""
        if not self._told and self._later is not None and self._later.found:
            self._told = True
            yield AddableDict({self._name: self._later.found})


def create_robust_retrieval_chain(
    retriever: Runnable[Any, Any],
    llm: AnyModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    trusted_retriever: Runnable[Any, Any] | None = None,
    **options: Unpack[RobustOptions],
) -> RobustRetrievalChain:
    """Create a chain that retrieves, answers robustly, and says how robustly.

    Args:
        retriever: a retriever, which is asked the question, also with retries, fallbacks or settings around it or with
            steps behind it; or a Runnable that is given all inputs, such as one of `create_history_aware_retriever`.
            The question as it stands alone, which that one asks, also is what sources and final prompt are asked,
            unless your prompt shows the conversation; it is the input `standalone_question` of the prompt in any case.
        llm: see `create_robust_documents_chain`.
        prompt: see there.
        trusted_retriever: finds what only people write whom you trust, in a store of its own. It is asked first, and
            what it finds is read together, as by `create_retrieval_chain`; if that holds the answer, nobody else is
            asked, and nothing that `retriever` would find changes it. Where it is silent, `retriever` is asked.
        options: its keyword arguments.

    Returns:
        A Runnable from a dict with `input` (or `question`, `query`, `messages`) to that dict with `context` (the
        documents), `answer` and `robustness` (the `RobustAnswer`), and with `standalone_question` if there was one.
        Streaming gives the input, the documents, the answer in pieces, and the report last. Trusted documents come
        first in `context`; of a trusted answer they are all of it, and it is streamed token by token.

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
    check_trusted(trusted_retriever, retriever)
    answering = create_reporting_chain(llm, prompt, options, ["trusted_retriever"])
    return RobustRetrievalChain(retriever=retriever, trusted_retriever=trusted_retriever, answering=answering)


def check_trusted(trusted_retriever: object, retriever: object) -> None:
    """Raise for a trusted retriever that cannot be asked, or that finds what the other one finds; None is none."""
    if trusted_retriever is not None:
        check_retriever(trusted_retriever, "trusted_retriever")
    if trusted_retriever is retriever:
        raise ValueError("trusted_retriever is retriever: all that it finds would be trusted; give each a store")


def check_retriever(retriever: object, name: str = "retriever") -> None:
    """Raise TypeError for a source of documents that cannot be asked."""
    if not isinstance(retriever, Runnable) or isinstance(retriever, BaseLanguageModel):
        raise TypeError(
            f"{name} must be a retriever or another Runnable, got {type(retriever).__name__}; a vector store has "
            "as_retriever(), a function goes into RunnableLambda(...), and a model comes behind the retriever"
        )
