"""What matters in a program: what retrieves, what reads, and what is ours. Told by class, never by name."""

from __future__ import annotations

import sys
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from langchain_robustrag.graph import RobustNode
from langchain_robustrag.retrieval import RobustRetrievalChain
from langchain_robustrag.runnable import RobustDocuments
from langchain_robustrag.tool import RobustRetrieverTool

TOOL_NODES = ("langgraph.prebuilt.tool_node", "ToolNode"), ("langchain.tools.tool_node", "_ToolNode")
CALLABLE_NODES = (
    ("langgraph._internal._runnable", "RunnableCallable"),
    ("langgraph.utils.runnable", "RunnableCallable"),
)
_LOADERS = ("langchain_core.document_loaders.base", "BaseLoader")
_CLIENTS = (
    ("openai", "OpenAI"),
    ("openai", "AsyncOpenAI"),
    ("anthropic", "Anthropic"),
    ("anthropic", "AsyncAnthropic"),
)
_FACTORIES = (("langchain.chat_models", "init_chat_model"), ("langchain_classic.chat_models", "init_chat_model"))
_QUERY_ONLY = (
    ("langchain_classic.retrievers.multi_query", "MultiQueryRetriever"),
    ("langchain_classic.retrievers.re_phraser", "RePhraseQueryRetriever"),
    ("langchain_classic.retrievers.self_query.base", "SelfQueryRetriever"),
)
_COMPRESSORS = "langchain_classic.retrievers.document_compressors"
_DOCUMENT_ONLY = (
    (f"{_COMPRESSORS}.chain_extract", "LLMChainExtractor"),
    (f"{_COMPRESSORS}.chain_filter", "LLMChainFilter"),
)
_OWN = (
    ("langchain_robustrag.middleware", "RobustRetrievalMiddleware"),
    (
        "langchain_robustrag.classic",
        "RobustDocumentsChain",
    ),
)


def is_ours(value: object) -> bool:
    """Whether it answers from documents robustly. A subclass may do anything, so only the classes themselves count."""
    return type(value) in (RobustDocuments, RobustNode, RobustRetrievalChain, RobustRetrieverTool, *loaded(*_OWN))


def is_source(value: object) -> bool:
    """Whether it gives retrieved text: a retriever, a vector store or a loader, or a class of these."""
    kinds = (BaseRetriever, VectorStore, *loaded(_LOADERS))
    if isinstance(value, type):
        return issubclass(value, kinds)
    return isinstance(value, kinds) or (not is_ours(value) and hasattr(type(value), "as_retriever"))


def is_model(value: object) -> bool:
    """Whether it is a language model, a client of one, or makes them."""
    kinds = (BaseLanguageModel, *loaded(*_CLIENTS))
    if isinstance(value, type):
        return issubclass(value, kinds)
    return isinstance(value, kinds) or any(value is factory for factory in loaded(*_FACTORIES))


def reads_queries_alone(retriever: object) -> bool:
    """Whether the model inside a retriever is known to see the question, and no document."""
    return type(retriever) in loaded(*_QUERY_ONLY)


def reads_documents_alone(compressor: object) -> bool:
    """Whether what works on retrieved documents is known to show its model each of them by itself."""
    return type(compressor) in loaded(*_DOCUMENT_ONLY)


def loaded(*places: tuple[str, str]) -> tuple[Any, ...]:
    """The classes at these places, of modules that the program has loaded."""
    found = (getattr(sys.modules.get(module), name, None) for module, name in places)
    return tuple(value for value in found if value is not None)
