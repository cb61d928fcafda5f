"""A retriever query engine whose synthesizer is always robust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer

from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from robustrag_integrations.models.base import TextModel

_LLM_CHOOSES = (
    "one prompt holds the texts of several documents, so that one of them decides which are read; use a retriever of "
    "each document's own nodes, and a reranker that reads each by itself, such as SentenceTransformerRerank"
)
_MERGES = (
    "it makes one node of several documents, which then speak for each other; use a retriever of each document's own "
    "nodes, such as VectorStoreIndex(...).as_retriever()"
)
_REFUSED = {  # classes of LlamaIndex and its integrations
    **dict.fromkeys(("LLMRerank", "RankGPTRerank", "StructuredLLMRerank", "RankLLMRerank"), _LLM_CHOOSES),
    **dict.fromkeys(("DocumentSummaryIndexLLMRetriever", "SummaryIndexLLMRetriever"), _LLM_CHOOSES),
    **dict.fromkeys(("TreeAllLeafRetriever", "TreeRootRetriever", "TreeSelectLeafRetriever"), _LLM_CHOOSES),
    **dict.fromkeys(("BasePGRetriever", "KGTableRetriever", "KnowledgeGraphRAGRetriever"), _MERGES),
    **dict.fromkeys(("NLSQLRetriever", "SQLRetriever", "LongLLMLinguaPostprocessor"), _MERGES),
}


class RobustRAGQueryEngine(RetrieverQueryEngine):
    """Retrieves nodes and answers with a `RobustRAGSynthesizer`.

    Args:
        retriever: finds the nodes.
        response_synthesizer: a `RobustRAGSynthesizer`; another one is refused.
        node_postprocessors: applied to the nodes before they are grouped.
        callback_manager: gets the query's events.

    Examples:
        >>> engine = RobustRAGQueryEngine.from_args(retriever, llm=llm)
        >>> engine.query("Who won?")
        >>> asked = RobustRAGQueryEngine.from_args(retriever, llm=llm, reader="model")  # a model reads the responses
        >>> chat = CondenseQuestionChatEngine.from_defaults(query_engine=asked, llm=llm)

    Raises:
        TypeError: the synthesizer is missing, or would show the model all documents at once; so would a reranker or
            retriever of LlamaIndex that lets a model read several documents together, or merges them.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        response_synthesizer: BaseSynthesizer | None = None,
        node_postprocessors: list[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if not isinstance(response_synthesizer, RobustRAGSynthesizer):
            raise TypeError(
                f"response_synthesizer must be a RobustRAGSynthesizer, got {type(response_synthesizer).__name__}; "
                "or use RobustRAGQueryEngine.from_args(retriever, llm=llm)"
            )
        check_parts(retriever, node_postprocessors)
        super().__init__(retriever, response_synthesizer, node_postprocessors, callback_manager)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._retriever).__name__}, {self._response_synthesizer!r})"

    @classmethod
    def from_args(  # type: ignore[override]
        cls,
        retriever: BaseRetriever,
        llm: LLM | TextModel | None = None,
        response_synthesizer: RobustRAGSynthesizer | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        streaming: bool | None = None,
        **settings: Any,
    ) -> RobustRAGQueryEngine:
        """Create an engine from its parts.

        Args:
            retriever: finds the nodes.
            llm: for a new synthesizer; None: `Settings.llm`.
            response_synthesizer: in place of `llm` and `settings`.
            node_postprocessors: applied to the nodes before they are grouped.
            callback_manager: gets the query's events.
            streaming: True if responses are streamed. It reaches a given synthesizer, too, as a copy.
            settings: the other arguments of `RobustRAGSynthesizer`.

        Raises:
            TypeError, ValueError: arguments that exclude each other, or an invalid one.
        """
        check_parts(retriever, node_postprocessors)
        return cls(
            retriever,
            synthesizer_of(response_synthesizer, llm, streaming, callback_manager=callback_manager, **settings),
            list(node_postprocessors or ()),
            callback_manager,
        )

    def with_retriever(self, retriever: BaseRetriever) -> RobustRAGQueryEngine:
        """Return the same engine over another retriever."""
        return type(self)(retriever, self._response_synthesizer, self._node_postprocessors, self.callback_manager)


def check_parts(retriever: object, node_postprocessors: object) -> None:
    """Check the retriever and the postprocessors of an engine.

    Raises:
        TypeError: one is none, or known to show a model several documents at once, or to merge them; the message names
            the fix.
    """
    if hasattr(node_postprocessors, "postprocess_nodes"):
        raise TypeError("node_postprocessors must be a list; wrap it: node_postprocessors=[...]")
    for part in (retriever, *(node_postprocessors if isinstance(node_postprocessors, (list, tuple)) else ())):
        names = [kind.__name__ for kind in type(part).__mro__ if kind.__module__.startswith("llama_index.")]
        if why := next((_REFUSED[name] for name in names if name in _REFUSED), None):
            raise TypeError(f"{type(part).__name__} is refused: {why}")
    if not hasattr(retriever, "retrieve"):
        fix = "give index.as_retriever()" if hasattr(retriever, "as_retriever") else "give a retriever of LlamaIndex"
        raise TypeError(f"retriever must have retrieve(), got {type(retriever).__name__}; {fix}")


def synthesizer_of(
    given: RobustRAGSynthesizer | None, llm: LLM | TextModel | None, streaming: bool | None, **settings: Any
) -> RobustRAGSynthesizer:
    """Return the synthesizer that was given, or a new one.

    Raises:
        TypeError: it is not a robust one, or settings or another model were given beside it.
    """
    named = {name: value for name, value in settings.items() if value is not None}
    if given is None:
        return RobustRAGSynthesizer(llm, streaming=False if streaming is None else streaming, **named)
    if not isinstance(given, RobustRAGSynthesizer):
        raise TypeError(f"response_synthesizer must be a RobustRAGSynthesizer, got {type(given).__name__}")
    if llm is not None and llm is not given.plain_llm:
        named["llm"] = llm
    if extra := sorted(set(named) - {"callback_manager"}):
        raise TypeError(
            f"{', '.join(extra)}: pass these to the RobustRAGSynthesizer, or leave out response_synthesizer"
        )
    return given if streaming in (None, given.streams) else given.with_changes(streaming=streaming)
