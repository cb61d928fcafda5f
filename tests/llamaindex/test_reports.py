"""The report is plain data, and comes through whatever engine or agent carries the response."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import QueryEngineTool
from pydantic_core import to_jsonable_python

from llamaindex_robustrag import (
    CallOptions,
    RobustAnswerEvent,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    robust_answer,
    robust_answers,
)
from robustrag_integrations import QuorumError
from robustrag_integrations._util.errors import ModelError
from tests.llamaindex.agents import Obeying
from tests.llamaindex.fakes import QUESTION, FactReader, nodes_of, truthful
from tests.llamaindex.test_instrumentation import Events


@pytest.fixture
def engine(clean: VectorStoreIndex, llm: FactReader) -> RobustRAGQueryEngine:
    return RobustRAGQueryEngine.from_args(clean.as_retriever(similarity_top_k=4), llm=llm)


def tool(engine: Any, name: str = "t") -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine, name=name, description="d")


@pytest.mark.parametrize("streaming", [False, True])
def test_the_report_is_a_plain_dictionary_for_whatever_reads_dictionaries(
    clean: VectorStoreIndex, llm: FactReader, streaming: bool
) -> None:
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(similarity_top_k=4), llm=llm, streaming=streaming)
    response: Any = engine.query(QUESTION)
    if streaming:
        assert response.metadata["robustrag"]["pending"]
        response = response.get_response()
    metadata = response.metadata
    assert set(metadata.keys()) == {*(node.node.node_id for node in response.source_nodes), "robustrag"}
    assert (type(metadata), type(metadata["robustrag"])) == (dict, dict)
    written = [dataclasses.asdict(response)["metadata"], to_jsonable_python(response)["metadata"]]
    assert written == [metadata, metadata] == [json.loads(json.dumps(metadata)), copy.deepcopy(response).metadata]
    answer = robust_answer(response)
    assert (answer.text, answer.to_dict()) == ("Paris", metadata["robustrag"])


def test_what_a_document_says_of_itself_is_no_report(engine: RobustRAGQueryEngine) -> None:
    forged = engine.query(QUESTION).metadata["robustrag"]
    node = TextNode(text="x", id_="robustrag", metadata={**forged, "robustrag": forged, "metadata": forged})
    found = [NodeWithScore(node=node)]
    for thing in (node, found, Response("x", found, {"robustrag": node.metadata}), {"robustrag": forged}):
        assert robust_answers(thing) == []


async def test_sub_questions_keep_it(engine: RobustRAGQueryEngine, llm: FactReader) -> None:
    outer = SubQuestionQueryEngine(
        LLMQuestionGenerator.from_defaults(llm=Obeying()),
        get_response_synthesizer(llm=llm),
        [tool(engine, "robust")],
        use_async=False,
    )
    for response in (outer.query(QUESTION), await outer.aquery(QUESTION)):
        assert [a.query for a in robust_answers(response)] == [QUESTION]


async def test_chat_engines_keep_it(engine: RobustRAGQueryEngine, llm: FactReader) -> None:
    condensing = CondenseQuestionChatEngine.from_defaults(query_engine=engine, llm=llm)
    own = RobustContextChatEngine.from_defaults(engine.retriever, llm=llm)
    for chat in (condensing, own):
        for reply in (chat.chat(QUESTION), await chat.achat(QUESTION)):
            assert [a.text for a in robust_answers(reply)] == ["Paris"]
        streamed = chat.stream_chat(QUESTION)
        assert "".join(streamed.response_gen) == "Paris"
        assert [a.text for a in robust_answers(streamed)] == ["Paris"]
    reply = own.chat(QUESTION)
    assert robust_answer(reply).text == "Paris"


async def test_agents_keep_it(engine: RobustRAGQueryEngine) -> None:
    agent = FunctionAgent(name="a", description="d", tools=[tool(engine)], llm=Obeying(plan=["t"]))
    for runs in (agent, AgentWorkflow(agents=[agent], root_agent="a")):
        output = await runs.run(QUESTION)
        assert str(output) == "Paris"
        assert [a.text for a in robust_answers(output)] == ["Paris"]


# Events and failures.


@pytest.fixture
def sent() -> Iterator[list[Any]]:
    root, handler = get_dispatcher(), Events(found=[])
    before = list(root.event_handlers)
    root.add_event_handler(handler)
    yield handler.found
    root.event_handlers = before


def answers_in(sent: list[Any]) -> list[RobustAnswerEvent]:
    return [event for event in sent if isinstance(event, RobustAnswerEvent)]


@pytest.mark.parametrize("streaming", [False, True])
async def test_every_answer_is_sent_as_an_event(sent: list[Any], llm: FactReader, streaming: bool) -> None:
    synthesizer = RobustRAGSynthesizer(llm, streaming=streaming)
    response = synthesizer.synthesize(QUESTION, nodes_of(truthful(3)))
    if streaming:
        assert answers_in(sent) == []
        list(response.response_gen)
    await_response = await synthesizer.asynthesize(QUESTION, nodes_of(truthful(3)))
    if streaming:
        [piece async for piece in await_response.response_gen]
    synthesizer.with_changes(streaming=False).get_response(QUESTION, truthful(3))
    assert [event.report["text"] for event in answers_in(sent)] == ["Paris"] * 3
    assert all(event.error is None for event in answers_in(sent))


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_missed_quorum_is_sent_and_carried(sent: list[Any], streaming: bool) -> None:
    synthesizer = RobustRAGSynthesizer(FactReader(fails_on="Text:"), calls=CallOptions(attempts=1), streaming=streaming)
    with pytest.raises(QuorumError) as raised:
        synthesizer.synthesize(QUESTION, nodes_of(truthful(3)))
    with pytest.raises(QuorumError):
        await synthesizer.asynthesize(QUESTION, nodes_of(truthful(3)))
    [first, second] = answers_in(sent)
    assert first.report == second.report == raised.value.robustness.to_dict()
    assert [source["status"] for source in first.report["sources"]] == ["failed"] * 3
    assert "quorum" in (first.error or "")
    assert robust_answers(raised.value) == [raised.value.robustness]


class Breaks(FactReader):
    """Streams a piece, and then no more."""

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield CompletionResponse(text="Par", delta="Par")
        raise ConnectionError("cut")


async def test_a_stream_that_breaks_is_sent_and_carried(sent: list[Any]) -> None:
    llm = Breaks(fails_on="Keywords:")  # the call that makes up for it fails, too
    synthesizer = RobustRAGSynthesizer(llm, method="keyword", calls=CallOptions(attempts=1), streaming=True)
    pieces = synthesizer.synthesize(QUESTION, nodes_of(truthful(3))).response_gen
    assert next(pieces) == "Par"
    with pytest.raises(ModelError):
        list(pieces)
    response = await synthesizer.asynthesize(QUESTION, nodes_of(truthful(3)))
    with pytest.raises(ModelError):
        [piece async for piece in response.response_gen]
    assert ["the final call failed" in (event.error or "") for event in answers_in(sent)] == [True, True]


def test_what_holds_no_answer_gives_none() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for thing in (None, "text", 3, loop, Response("x"), {"a": {"b": 1}}, ValueError("x")):
        assert robust_answers(thing) == []
        with pytest.raises(ValueError, match=f"no robust answer behind this {type(thing).__name__}: give what"):
            robust_answer(thing)


def test_a_stream_has_an_answer_when_it_is_over(clean: VectorStoreIndex, llm: FactReader) -> None:
    response: Any = RobustRAGQueryEngine.from_args(clean.as_retriever(), llm=llm, streaming=True).query(QUESTION)
    with pytest.raises(RuntimeError, match="after the last piece"):
        robust_answer(response)
    assert robust_answer(response if list(response.response_gen) else None).text == "Paris"
