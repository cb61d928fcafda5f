"""A retriever query engine whose synthesizer is always robust, and a tool whose answers other prompts may hold."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool, ToolMetadata, ToolOutput
from typing_extensions import Unpack

from llamaindex_robustrag.reports import robust_answer
from llamaindex_robustrag.synthesizer import INSTEAD, RobustRAGSynthesizer, SynthesizerOptions
from robustrag_integrations._util.checks import refuse_misspelt
from robustrag_integrations._util.errors import RobustRAGError, TooFewVotesError, steers
from robustrag_integrations.answers.answer import WITHHELD
from robustrag_integrations.audit.check import trusted_retrieval
from robustrag_integrations.defenses.trust import Later
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.asking import check_query

_REFUSED = (  # classes of LlamaIndex and its integrations: a model reads several documents at once, or they are merged
    *("LLMRerank", "RankGPTRerank", "StructuredLLMRerank", "RankLLMRerank", "LongLLMLinguaPostprocessor"),
    *("DocumentSummaryIndexLLMRetriever", "SummaryIndexLLMRetriever", "TreeAllLeafRetriever", "TreeRootRetriever"),
    *("TreeSelectLeafRetriever", "BasePGRetriever", "KGTableRetriever", "KnowledgeGraphRAGRetriever"),
    *("NLSQLRetriever", "SQLRetriever"),
)


class RobustRAGQueryEngine(RetrieverQueryEngine):
    """Retrieves nodes and answers with a `RobustRAGSynthesizer`.

    Args:
        retriever: finds the nodes.
        response_synthesizer: a `RobustRAGSynthesizer`; another one is refused.
        node_postprocessors: applied to the nodes before they are grouped.
        callback_manager: gets the query's events.
        trusted_retriever: finds what only people write whom you trust, in an index of its own. It is asked first, and
            what it finds is read together, as by LlamaIndex's own engine; if that holds the answer, nobody else is
            asked, and nothing that `retriever` would find changes it. Postprocessors see each retriever's nodes by
            themselves.

    Examples:
        >>> engine = RobustRAGQueryEngine.from_args(retriever, llm=llm)
        >>> engine.query("Who won?")
        >>> asked = RobustRAGQueryEngine.from_args(retriever, llm=llm, reader="model")  # a model reads the responses
        >>> chat = CondenseQuestionChatEngine.from_defaults(query_engine=asked, llm=llm)

    Raises:
        TypeError: another synthesizer, or a reranker or retriever of LlamaIndex that shows a model several documents
            at once, or merges them.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        response_synthesizer: BaseSynthesizer | None = None,
        node_postprocessors: list[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        trusted_retriever: BaseRetriever | None = None,
    ) -> None:
        _check_robust(response_synthesizer)
        check_parts(retriever, node_postprocessors)
        check_trusted(trusted_retriever, retriever, node_postprocessors)
        super().__init__(retriever, response_synthesizer, node_postprocessors, callback_manager)
        self._trusted_retriever = trusted_retriever

    @classmethod
    def from_args(  # type: ignore[override]
        cls,
        retriever: BaseRetriever,
        llm: LLM | TextModel | None = None,
        response_synthesizer: RobustRAGSynthesizer | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        streaming: bool | None = None,
        trusted_retriever: BaseRetriever | None = None,
        **settings: Unpack[SynthesizerOptions],
    ) -> RobustRAGQueryEngine:
        """Create an engine from its parts.

        Args:
            retriever, node_postprocessors, callback_manager, trusted_retriever: as the class takes them.
            llm: for a new synthesizer; None: `Settings.llm`.
            response_synthesizer: in place of `llm` and `settings`.
            streaming: True if responses are streamed. It reaches a given synthesizer, too, as a copy.
            settings: the other arguments of `RobustRAGSynthesizer`.
        """
        check_parts(retriever, node_postprocessors)
        check_names(settings, signature(cls.from_args).parameters)
        synthesizer = synthesizer_of(response_synthesizer, llm, streaming, **settings)
        return cls(retriever, synthesizer, list(node_postprocessors or ()), callback_manager, trusted_retriever)

    def with_retriever(self, retriever: BaseRetriever) -> RobustRAGQueryEngine:
        """Return the same engine over another retriever."""
        parts = (self._response_synthesizer, self._node_postprocessors, self.callback_manager, self._trusted_retriever)
        return type(self)(retriever, *parts)

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        if own := [key for key in prompts_dict if ":" not in key]:
            raise ValueError(f"unknown prompts {', '.join(own)}; known here: {', '.join(self.get_prompts())}")

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        check_query(query_bundle.query_str)
        if self._trusted_retriever is None:
            return super()._query(query_bundle)
        later = Later(lambda: self.retrieve(query_bundle), lambda: self.aretrieve(query_bundle))
        with self._queried(query_bundle) as event:
            with trusted_retrieval():
                found = self._trusted_retriever.retrieve(query_bundle)
            trusted = self._apply_node_postprocessors(found, query_bundle=query_bundle)
            response = self._response_synthesizer.synthesize(query_bundle, later, trusted_nodes=trusted)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        check_query(query_bundle.query_str)
        if self._trusted_retriever is None:
            return await super()._aquery(query_bundle)
        later = Later(lambda: self.retrieve(query_bundle), lambda: self.aretrieve(query_bundle))
        with self._queried(query_bundle) as event:
            with trusted_retrieval():
                found = await self._trusted_retriever.aretrieve(query_bundle)
            trusted = await self._async_apply_node_postprocessors(found, query_bundle=query_bundle)
            response = await self._response_synthesizer.asynthesize(query_bundle, later, trusted_nodes=trusted)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _queried(self, query: QueryBundle) -> Any:
        return self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: query.query_str})


def check_parts(retriever: object, node_postprocessors: object, name: str = "retriever") -> None:
    """Raise TypeError for parts of an engine known to show a model several documents at once, or to merge them."""
    if hasattr(node_postprocessors, "postprocess_nodes"):
        raise TypeError("node_postprocessors must be a list; wrap it: node_postprocessors=[...]")
    for part in (retriever, *(node_postprocessors if isinstance(node_postprocessors, (list, tuple)) else ())):
        if any(kind.__name__ in _REFUSED and kind.__module__.startswith("llama_index.") for kind in type(part).__mro__):
            raise TypeError(
                f"{type(part).__name__} is refused: it has one prompt hold the texts of several documents, or merges "
                "them, so that one speaks for others; use a retriever of each document's own nodes, such as "
                "VectorStoreIndex(...).as_retriever(), and a reranker that reads each by itself"
            )
    if not hasattr(retriever, "retrieve"):
        raise TypeError(f"{name} must have retrieve(), got {type(retriever).__name__}; give index.as_retriever()")


def check_trusted(trusted_retriever: object, retriever: object, node_postprocessors: object) -> None:
    """Raise for a trusted retriever that cannot be used, or that finds what the other one finds; None is none."""
    if trusted_retriever is not None:
        check_parts(trusted_retriever, node_postprocessors, "trusted_retriever")
    if trusted_retriever is retriever:
        raise ValueError("trusted_retriever is retriever: all that it finds would be trusted; give each an index")


def check_names(given: Collection[str], own: Iterable[str]) -> None:
    """Raise TypeError for a name that is a misspelt argument of a factory's own."""
    refuse_misspelt({*given} - {*INSTEAD}, sorted({*own} - {"settings"}), SynthesizerOptions.__annotations__)


def _check_robust(synthesizer: object) -> None:
    if not isinstance(synthesizer, RobustRAGSynthesizer):
        raise TypeError(
            f"response_synthesizer must be a RobustRAGSynthesizer, got {type(synthesizer).__name__}; or use "
            "from_args(retriever, llm=llm)"
        )


def synthesizer_of(
    given: RobustRAGSynthesizer | None,
    llm: LLM | TextModel | None,
    streaming: bool | None,
    **settings: Unpack[SynthesizerOptions],
) -> RobustRAGSynthesizer:
    """Return the synthesizer that was given, beside which nothing else may be, or a new one."""
    named: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    if given is None:
        return RobustRAGSynthesizer(llm, streaming=False if streaming is None else streaming, **named)
    _check_robust(given)
    if llm is not None and llm is not given.llm:
        named["llm"] = llm
    if named:
        raise TypeError(f"{', '.join(named)}: pass it to the RobustRAGSynthesizer, or leave out response_synthesizer")
    return given if streaming in (None, given.streams) else given.with_changes(streaming=streaming)


class ToolFailedError(RobustRAGError):
    """A tool could not answer. An agent's model reads the message, so it quotes nothing that was retrieved.

    Attributes:
        robustness: the failure as a `RobustAnswer`, an abstention that names every source; None if none was asked.
    """

    def __init__(self, message: str, robustness: Any = None) -> None:
        self.robustness = robustness
        super().__init__(message)


class RobustQueryEngineTool(QueryEngineTool):
    """A `QueryEngineTool` for agents, routers and sub-questions, whose models read the answers.

    What one source alone says, or sources that disagree, may be an attacker's words. Its engine answers with an
    abstention in that place (`reader="model"`), and where an answer was withheld the tool with an error that says how
    to go on; the report in `raw_output.metadata["robustrag"]` has the reason.

    Args:
        query_engine: a `RobustRAGQueryEngine`, or what `as_query_engine(response_synthesizer=RobustRAGSynthesizer())`
            gives. The tool has a copy of it, `tool.query_engine`, which does not stream.
        metadata, resolve_input_errors: see `QueryEngineTool`.

    Examples:
        >>> facts = RobustQueryEngineTool.from_defaults(engine, name="facts", description="Answers about ...")
        >>> agent = FunctionAgent(tools=[facts], llm=llm)
    """

    def __init__(
        self, query_engine: BaseQueryEngine, metadata: ToolMetadata, resolve_input_errors: bool = True
    ) -> None:
        super().__init__(_for_prompts(query_engine), metadata, resolve_input_errors)

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Answer a question; a failure is a `ToolFailedError`, unless `VoteRules(below="raise")` asks for another."""
        with _failures_told():
            return _marked(super().call(*args, **kwargs))

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """`call` without blocking the event loop."""
        with _failures_told():
            return _marked(await super().acall(*args, **kwargs))


def _marked(output: ToolOutput) -> ToolOutput:
    if robust_answer(output.raw_output).is_withheld:
        output.content, output.is_error = WITHHELD, True
    return output


def _for_prompts(engine: BaseQueryEngine) -> BaseQueryEngine:
    own = isinstance(engine, RetrieverQueryEngine) and any(
        (type(engine)._query, type(engine)._aquery) == (kind._query, kind._aquery)
        for kind in (RetrieverQueryEngine, RobustRAGQueryEngine)
    )
    synthesizer = getattr(engine, "_response_synthesizer", None)
    if not own or not isinstance(synthesizer, RobustRAGSynthesizer):
        raise TypeError(
            f"query_engine must be a RobustRAGQueryEngine, or as_query_engine(response_synthesizer=RobustRAGSynthesizer"
            f"(...)), got {type(engine).__name__}; an engine that asks others is a QueryEngineTool over "
            "RobustQueryEngineTools, or over engines with reader='model'"
        )
    told: Any = copy.copy(engine)
    told._response_synthesizer = synthesizer.with_changes(streaming=False, reader="model")
    return told  # type: ignore[no-any-return]


@contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if steers(error) or isinstance(error, TooFewVotesError):
            raise
        said = f"the documents could not be searched or read ({type(error).__name__})"
        raise ToolFailedError(said, getattr(error, "robustness", None)) from error
