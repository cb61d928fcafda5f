"""Which rule is for which class. Subclasses that change nothing of a class share its rule; others are reported."""

from __future__ import annotations

from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.indices.base import BaseIndex
from llama_index.core.query_engine import (
    CitationQueryEngine,
    FLAREInstructQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    ToolRetrieverRouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.tools import BaseTool, FunctionTool, QueryEngineTool, QueryPlanTool, RetrieverTool
from llama_index.core.tools.eval_query_engine import EvalQueryEngineTool
from llama_index.core.tools.ondemand_loader_tool import OnDemandLoaderTool
from llama_index.core.tools.tool_spec.load_and_search.base import LoadAndSearchToolSpec
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.chat_engines import (
    ReportingChatEngine,
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
)
from llamaindex_robustrag.diverse import DiverseRetriever
from llamaindex_robustrag.query_engine import RobustRAGQueryEngine
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from llamaindex_robustrag.wiring import agents, engines, retrievers
from llamaindex_robustrag.wiring.walk import Rule

_OPEN: dict[type, Rule] = {
    BaseSynthesizer: engines.stock_synthesizer,
    BaseQueryEngine: agents.unknown,
    BaseChatEngine: agents.unknown,
    BaseTool: agents.unknown,
    BaseWorkflowAgent: agents.own_agent,
    BaseRetriever: retrievers.other,
    BaseIndex: retrievers.joint,
    Workflow: agents.workflow,
    **dict.fromkeys(retrievers.JOINT, retrievers.joint),
}
RULES: dict[type, Rule] = {
    **_OPEN,
    RobustRAGSynthesizer: engines.robust_synthesizer,
    CitationQueryEngine: engines.citation_engine,
    RetrieverQueryEngine: engines.retriever_engine,
    RobustRAGQueryEngine: engines.retriever_engine,
    RobustContextChatEngine: engines.robust_chat,
    RobustCondensePlusContextChatEngine: engines.robust_chat,
    ReportingChatEngine: engines.robust_chat,
    ContextChatEngine: engines.context_chat,
    CondensePlusContextChatEngine: engines.context_chat,
    CondenseQuestionChatEngine: engines.question_chat,
    SimpleChatEngine: agents.nothing,
    RouterQueryEngine: engines.router,
    ToolRetrieverRouterQueryEngine: engines.router,
    SubQuestionQueryEngine: engines.composed,
    MultiStepQueryEngine: engines.composed,
    QueryPlanTool: engines.composed,
    RetryQueryEngine: engines.judged,
    RetryGuidelineQueryEngine: engines.judged,
    RetrySourceQueryEngine: engines.judged,
    EvalQueryEngineTool: engines.judged,
    TransformQueryEngine: engines.inner_engine,
    FLAREInstructQueryEngine: engines.inner_engine,
    QueryEngineTool: engines.inner_engine,
    RetrieverTool: agents.retriever_tool,
    FunctionTool: agents.function_tool,
    LoadAndSearchToolSpec: agents.loading_tool,
    OnDemandLoaderTool: agents.loading_tool,
    FunctionAgent: agents.agent,
    ReActAgent: agents.agent,
    CodeActAgent: agents.agent,
    AgentWorkflow: agents.agent,
    DiverseRetriever: retrievers.diverse,
    **dict.fromkeys(retrievers.APART, retrievers.apart),
    **dict.fromkeys(retrievers.INDEXES, agents.nothing),
}
# Made to be derived from: their rules judge whatever a subclass does.
OPEN = frozenset(_OPEN)
KNOWN = (
    BaseSynthesizer,
    BaseQueryEngine,
    BaseChatEngine,
    BaseTool,
    BaseRetriever,
    BaseWorkflowAgent,
    AgentWorkflow,
    Workflow,
    LoadAndSearchToolSpec,
)
