"""RobustRAG for LlamaIndex: answers that a few planted documents cannot take over, by one argument.

Examples:
    >>> engine = index.as_query_engine(llm=llm, response_synthesizer=RobustRAGSynthesizer(llm=llm))
    >>> response = engine.query("Who won?")
    >>> response.metadata["robustrag"]["radius"]
"""

from __future__ import annotations

import logging

from robustrag_integrations._util.errors import missing

try:
    import llama_index.core  # noqa: F401 - the error below says what to install
except ImportError as error:
    raise missing("llamaindex_robustrag needs llama-index-core", "llamaindex") from error

from llamaindex_robustrag.audit import IsolationAudit, audit_isolation
from llamaindex_robustrag.chat import RobustCondensePlusContextChatEngine, RobustContextChatEngine
from llamaindex_robustrag.check import aassert_defended, assert_defended
from llamaindex_robustrag.diverse import DiverseRetriever
from llamaindex_robustrag.llm import CallOptions
from llamaindex_robustrag.local import TextModelLLM
from llamaindex_robustrag.query_engine import RobustQueryEngineTool, RobustRAGQueryEngine, ToolFailedError
from llamaindex_robustrag.reports import RobustAnswerEvent, robust_answer, robust_answers
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from robustrag_integrations._util.errors import UndefendedError
from robustrag_integrations.answers.abstained import Abstained
from robustrag_integrations.audit.check import CheckedRun
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.grouping.votes import VoteRules

__all__ = [
    "Abstained",
    "CallOptions",
    "CheckedRun",
    "DiverseRetriever",
    "Finding",
    "IsolationAudit",
    "RobustAnswerEvent",
    "RobustCondensePlusContextChatEngine",
    "RobustContextChatEngine",
    "RobustQueryEngineTool",
    "RobustRAGQueryEngine",
    "RobustRAGSynthesizer",
    "TextModelLLM",
    "ToolFailedError",
    "UndefendedError",
    "VoteRules",
    "aassert_defended",
    "assert_defended",
    "audit_isolation",
    "robust_answer",
    "robust_answers",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until the program says where records go
