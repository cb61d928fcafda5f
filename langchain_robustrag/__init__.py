"""LangChain with a retrieval step that a few planted documents cannot take over.

`create_robust_documents_chain` replaces `create_stuff_documents_chain`; the rest of the program stays as it is.
`langchain_robustrag.middleware`, for agents of langchain 1.x, is a module of its own.
"""

from __future__ import annotations

import logging

from robustrag_integrations._util.errors import missing

try:
    import langchain_core  # noqa: F401 - the error below says what to install
except ImportError as error:
    raise missing("langchain_robustrag needs langchain-core", "langchain") from error

from langchain_robustrag.audit import IsolationAudit, audit_isolation
from langchain_robustrag.callbacks import REPORT_EVENT
from langchain_robustrag.calls import CallOptions
from langchain_robustrag.chain import RobustOptions, create_robust_documents_chain
from langchain_robustrag.check import aassert_defended, assert_defended
from langchain_robustrag.diverse import DiverseRetriever
from langchain_robustrag.messages import for_prompts, history_message
from langchain_robustrag.retrieval import RobustResult, RobustRetrievalChain, create_robust_retrieval_chain
from langchain_robustrag.runnable import RobustDocuments
from langchain_robustrag.tool import create_robust_node, create_robust_retriever_tool
from robustrag_integrations._util.errors import UndefendedError
from robustrag_integrations.answers.abstained import Abstained
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.audit.check import CheckedRun
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.grouping.votes import VoteRules

__all__ = [
    "REPORT_EVENT",
    "Abstained",
    "CallOptions",
    "CheckedRun",
    "DiverseRetriever",
    "Finding",
    "IsolationAudit",
    "RobustAnswer",
    "RobustDocuments",
    "RobustOptions",
    "RobustResult",
    "RobustRetrievalChain",
    "UndefendedError",
    "VoteRules",
    "aassert_defended",
    "assert_defended",
    "audit_isolation",
    "create_robust_documents_chain",
    "create_robust_node",
    "create_robust_retrieval_chain",
    "create_robust_retriever_tool",
    "for_prompts",
    "history_message",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until the program says where records go
