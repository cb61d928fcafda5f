"""Which rule is for which kind of object."""

from __future__ import annotations

from llama_index.core.agent.workflow import AgentWorkflow
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
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.chat_engines import ReportingChatEngine
from llamaindex_robustrag.wiring import agents, engines
from llamaindex_robustrag.wiring.walk import Rules

# The first kind that fits decides.
RULES: Rules = (
    (BaseSynthesizer, engines.synthesizer),
    (CitationQueryEngine, engines.citation_engine),
    (RetrieverQueryEngine, engines.retriever_engine),
    (ReportingChatEngine, engines.robust_chat),
    ((ContextChatEngine, CondensePlusContextChatEngine), engines.context_chat),
    (CondenseQuestionChatEngine, engines.question_chat),
    (SimpleChatEngine, agents.nothing),
    ((RouterQueryEngine, ToolRetrieverRouterQueryEngine), engines.router),
    ((SubQuestionQueryEngine, MultiStepQueryEngine, QueryPlanTool), engines.composed),
    ((RetryQueryEngine, RetryGuidelineQueryEngine, RetrySourceQueryEngine, EvalQueryEngineTool), engines.judged),
    ((TransformQueryEngine, FLAREInstructQueryEngine, QueryEngineTool), engines.inner_engine),
    (RetrieverTool, agents.retriever_tool),
    (FunctionTool, agents.function_tool),
    ((BaseWorkflowAgent, AgentWorkflow), agents.agent),
    (BaseRetriever, agents.retriever),
    (Workflow, agents.workflow),
    ((BaseQueryEngine, BaseChatEngine, BaseTool), agents.unknown),
)
