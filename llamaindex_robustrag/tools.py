"""A query engine tool whose answers other prompts may hold."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import QueryEngineTool, ToolMetadata, ToolOutput

from llamaindex_robustrag.llm_calls import steers
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from robustrag_integrations.errors import RobustRAGError, TooFewVotesError

_WITHHELD = (
    "The answer was withheld: too few sources say it, and their words may be an attacker's. Go on without it, or say "
    "that it is not known."
)


class ToolFailedError(RobustRAGError):
    """A tool could not answer. An agent's model reads the message, so it quotes nothing that was retrieved.

    Attributes:
        robustness: the failure as a `RobustAnswer`, an abstention that names every group; None if none was asked.
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
        metadata: name and description, for the agent.
        resolve_input_errors: see `QueryEngineTool`.

    Raises:
        TypeError: another engine.

    Examples:
        >>> facts = RobustQueryEngineTool.from_defaults(engine, name="facts", description="Answers about ...")
        >>> agent = FunctionAgent(tools=[facts], llm=llm)
    """

    def __init__(
        self, query_engine: BaseQueryEngine, metadata: ToolMetadata, resolve_input_errors: bool = True
    ) -> None:
        super().__init__(_for_prompts(query_engine), metadata, resolve_input_errors)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metadata.get_name()!r}, {self.query_engine!r})"

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Answer a question.

        Raises:
            ToolFailedError: the documents could not be searched or read; `__cause__` is the error.
            TooFewVotesError: as `VoteRules(below="raise")` says.
        """
        with _failures_told():
            return _marked(super().call(*args, **kwargs))

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """`call` without blocking the event loop."""
        with _failures_told():
            return _marked(await super().acall(*args, **kwargs))


def _marked(output: ToolOutput) -> ToolOutput:
    """Return a tool's output as an error if the answer was withheld."""
    answer = output.raw_output.metadata.robust_answer
    if answer.abstained and "radius" in answer.evidence:
        output.content, output.is_error = _WITHHELD, True
    return output


def _for_prompts(engine: BaseQueryEngine) -> BaseQueryEngine:
    own = isinstance(engine, RetrieverQueryEngine) and (type(engine)._query, type(engine)._aquery) == (
        RetrieverQueryEngine._query,
        RetrieverQueryEngine._aquery,
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
    """Turn failures in the block into errors that quote nothing."""
    try:
        yield
    except Exception as error:
        if steers(error) or isinstance(error, TooFewVotesError):
            raise
        said = f"the documents could not be searched or read ({type(error).__name__})"
        raise ToolFailedError(said, getattr(error, "robustness", None)) from error
