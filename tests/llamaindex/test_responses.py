"""What comes back: words, a report that is JSON, sources, structure; with nothing retrieved, too."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.tools import QueryEngineTool

from llamaindex_robustrag import Abstained, RobustRAGQueryEngine, RobustRAGSynthesizer
from robustrag_integrations.answers.answer import SCHEMA
from robustrag_integrations.text.prompts import ABSTENTION
from tests.llamaindex.fakes import EVIL, QUESTION, Capital, FactReader, index_of, nodes_of, truthful

STYLES = ["synthesize", "asynthesize"]


async def synthesize(style: str, synthesizer: RobustRAGSynthesizer, *arguments: object, **more: object) -> object:
    method = getattr(synthesizer, style)
    return await method(*arguments, **more) if style == "asynthesize" else method(*arguments, **more)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (["a text"], "a list of NodeWithScore, got str"),
        ([TextNode(text="a")], "a list of NodeWithScore, got TextNode"),
        (nodes_of(["a"])[0], "a list of NodeWithScore, got tuple"),
    ],
)
async def test_what_are_no_nodes_is_refused_with_the_fix(style: str, nodes: Any, message: str, llm: FactReader) -> None:
    with pytest.raises(TypeError, match=message):
        await synthesize(style, RobustRAGSynthesizer(llm), QUESTION, nodes)


@pytest.mark.parametrize("style", ["get_response", "aget_response"])
async def test_bare_texts_are_sources_of_their_own(style: str, llm: FactReader) -> None:
    method = getattr(RobustRAGSynthesizer(llm=llm), style)
    given = method(QUESTION, [*truthful(), EVIL])
    assert (given if style == "get_response" else await given) == "Paris"
    assert len(llm.seen) == 7


def test_voting_takes_choices_from_the_constructor_or_the_call(llm: FactReader) -> None:
    class Voter(FactReader):
        def _said(self, prompt: str) -> str:
            return "Berlin" if "right answer is Berlin" in prompt else "Paris"

    nodes = nodes_of([*truthful(), EVIL])
    choices = ["Berlin", "Paris", "Rome"]
    by_default = RobustRAGSynthesizer(llm=Voter(), method="voting", choices=choices).synthesize(QUESTION, nodes)
    by_call = RobustRAGSynthesizer(llm=Voter(), method="voting").synthesize(QUESTION, nodes, choices=choices)
    assert str(by_default) == str(by_call) == "Paris"
    assert by_default.metadata["robustrag"]["choice"] == 1
    with pytest.raises(ValueError, match="multiple choice needs choices"):
        RobustRAGSynthesizer(llm=llm, method="voting").synthesize(QUESTION, nodes)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_structured_abstention_has_a_form_of_its_own_and_is_never_the_text_none(
    llm: FactReader, streaming: bool
) -> None:
    index = index_of(["Rain falls."])
    engine = RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm, output_cls=Capital, streaming=streaming)
    response = engine.query("q?")
    if streaming:
        assert "".join(response.response_gen) == ABSTENTION
        return
    assert isinstance(response.response, Abstained)
    for one in (response, copy.deepcopy(response), pickle.loads(pickle.dumps(response))):
        assert str(one) == str(one.response) == ABSTENTION
    made = QueryEngineTool.from_defaults(engine, name="t", description="d")
    assert made("q?").content == ABSTENTION


def test_a_node_named_robustrag_cannot_stand_in_for_the_report(llm: FactReader) -> None:
    nodes = nodes_of(truthful())
    nodes[0].node.id_ = "robustrag"
    nodes[0].node.metadata = {"radius": 99}
    metadata = RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes).metadata
    assert metadata["robustrag"]["schema"] == SCHEMA
    assert set(metadata) == {"robustrag", *(f"node-{i}" for i in range(1, 6))}
