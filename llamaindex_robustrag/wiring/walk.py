"""The walk over what an engine is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.tools import BaseTool
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.wiring.postprocessors import postprocessor_findings
from robustrag_integrations.undefended import Finding

ENGINE = "RobustRAGQueryEngine.from_args(retriever, llm=llm)"
KNOWN = (
    BaseSynthesizer,
    BaseQueryEngine,
    BaseChatEngine,
    BaseTool,
    BaseRetriever,
    BaseWorkflowAgent,
    AgentWorkflow,
    Workflow,
)
HOLDERS = (BaseSynthesizer, BaseQueryEngine, BaseChatEngine, BaseTool, BaseRetriever)

Rules: TypeAlias = Sequence[tuple[type | tuple[type, ...], Callable[["Walk", Any, str], Iterator[Finding]]]]


@dataclass
class Walk:
    """One walk over what an engine is made of; each object is visited once.

    Attributes:
        rules: what to say about which kinds of object; the first kind that fits decides.
        streaming: whether streamed responses are expected, if that is known.
        trusted: classes that are not looked into.
        seen: what has been visited, by identity.
    """

    rules: Rules
    streaming: bool | None
    trusted: tuple[type, ...]
    seen: dict[int, object] = field(default_factory=dict)

    def visit(self, thing: object, path: str) -> Iterator[Finding]:
        """The findings about an object and what it is made of."""
        if id(thing) in self.seen or isinstance(thing, self.trusted):
            return
        self.seen[id(thing)] = thing
        if isinstance(thing, Mapping):
            for key, value in thing.items():
                yield from self.visit(value, f"{path}[{key!r}]")
        elif isinstance(thing, (list, tuple)):
            for at, value in enumerate(thing):
                yield from self.visit(value, f"{path}[{at}]")
        else:
            for kinds, rule in self.rules:
                if isinstance(thing, kinds):
                    yield from rule(self, thing, path)
                    return

    def parts(self, thing: object, path: str, *names: str) -> Iterator[Finding]:
        """Visit these attributes, as far as there are any."""
        for name in names:
            if (part := getattr(thing, name, None)) is not None:
                yield from self.visit(part, f"{path}.{name}")

    def postprocessors(self, thing: object, path: str) -> Iterator[Finding]:
        """The findings about an engine's postprocessors."""
        listed = getattr(thing, "_node_postprocessors", None) or ()
        return postprocessor_findings(listed, f"{path}._node_postprocessors", self.trusted)
