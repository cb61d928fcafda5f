"""What comes back: words, a report that is JSON, sources, structure; with nothing retrieved, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.base.response.schema import PydanticResponse, StreamingResponse
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.schema import TextNode

from llamaindex_robustrag import Abstained, CallOptions, RobustRAGSynthesizer
from robustrag_integrations.answers.answer import SCHEMA
from robustrag_integrations.prompts import ABSTENTION
from tests.llamaindex.fakes import EVIL, QUESTION, AsyncFactReader, Capital, FactReader, nodes_of, truthful

STYLES = ["synthesize", "asynthesize"]


async def synthesize(style: str, synthesizer: RobustRAGSynthesizer, *arguments: object, **more: object) -> object:
    method = getattr(synthesizer, style)
    return await method(*arguments, **more) if style == "asynthesize" else method(*arguments, **more)


async def text_of(response: object) -> str:
    if hasattr(response, "async_response_gen"):
        return "".join([piece async for piece in response.async_response_gen()])
    return str(response)


@pytest.mark.parametrize("style", STYLES)
async def test_metadata_is_the_base_classes_with_a_report_beside_it(style: str, llm: FactReader) -> None:
    nodes = nodes_of([*truthful(), EVIL])
    nodes[0].node.metadata["page"] = 3
    response = await synthesize(style, RobustRAGSynthesizer(llm=llm), QUESTION, nodes)
    assert set(response.metadata) == {n.node.node_id for n in nodes}
    assert response.metadata["node-0"] == {"page": 3}
    report = response.metadata["robustrag"]
    assert json.loads(json.dumps(report)) == report
    assert report["schema"] == SCHEMA
    assert [g["passage_ids"] for g in report["groups"]] == [[f"node-{i}"] for i in range(7)]


def test_a_node_named_robustrag_cannot_stand_in_for_the_report(llm: FactReader) -> None:
    nodes = nodes_of(truthful())
    nodes[0].node.id_ = "robustrag"
    nodes[0].node.metadata = {"radius": 99}
    metadata = RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes).metadata
    assert metadata["robustrag"]["schema"] == SCHEMA
    for copied in (dict(metadata), {**metadata}, json.loads(json.dumps(metadata))):
        assert set(copied) == {f"node-{i}" for i in range(1, 6)}


@pytest.mark.parametrize("style", STYLES)
async def test_nodes_that_can_be_read_once_are_answered_from_and_listed(style: str, llm: FactReader) -> None:
    nodes = nodes_of(truthful())
    response = await synthesize(style, RobustRAGSynthesizer(llm), QUESTION, (node for node in nodes))  # type: ignore[arg-type]
    assert response.source_nodes == nodes


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (["a text"], r"nodes\[0\] must be a NodeWithScore, got str; get_response\(query, texts\) takes texts"),
        (
            [TextNode(text="a")],
            r"nodes\[0\] must be a NodeWithScore, got TextNode; wrap it: NodeWithScore\(",
        ),
        (None, r"must be a list of NodeWithScore, got NoneType; give what retriever.retrieve\(query\) gave"),
        (nodes_of(["a"])[0], "must be a list of NodeWithScore, got NodeWithScore"),
        ("a text", "must be a list of NodeWithScore, got str"),
    ],
)
async def test_what_are_no_nodes_is_refused_with_the_fix(style: str, nodes: Any, message: str, llm: FactReader) -> None:
    with pytest.raises(TypeError, match=message):
        await synthesize(style, RobustRAGSynthesizer(llm), QUESTION, nodes)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("query", [None, 3])
async def test_what_is_no_question_is_refused(style: str, query: Any, llm: FactReader) -> None:
    with pytest.raises(TypeError, match=f"query must be a str or a QueryBundle, got {query}"):
        await synthesize(style, RobustRAGSynthesizer(llm), query, nodes_of(truthful()))


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("style", STYLES)
async def test_sources_and_additional_sources_come_back_and_the_latter_are_not_read(
    style: str, streaming: bool, llm: FactReader
) -> None:
    nodes, [extra] = nodes_of(truthful()), nodes_of(["an additional source"])
    response = await synthesize(
        style,
        RobustRAGSynthesizer(llm=llm, streaming=streaming),
        QUESTION,
        nodes,
        [extra],
    )
    assert response.source_nodes == [*nodes, extra]
    await text_of(response)
    assert not any("additional" in prompt for prompt in llm.seen)


def test_a_streamed_response_has_its_report_when_the_last_piece_is_out(llm: FactReader) -> None:
    synthesizer = RobustRAGSynthesizer(llm=llm, streaming=True, aggregation="keyword")
    response = synthesizer.synthesize(QUESTION, nodes_of(truthful()))
    assert isinstance(response, StreamingResponse)
    assert response.metadata["robustrag"] == {"schema": SCHEMA, "pending": True}
    assert next(response.response_gen) == "Pa"
    assert response.metadata["robustrag"]["pending"]
    assert "".join(response.response_gen) == "ris"
    assert response.metadata["robustrag"]["text"] == "Paris"
    assert "pending" not in response.metadata["robustrag"]


def test_a_closed_stream_stops_and_stays_without_a_report(llm: FactReader) -> None:
    response = RobustRAGSynthesizer(llm=llm, streaming=True).synthesize(QUESTION, nodes_of(truthful()))
    next(response.response_gen)
    response.response_gen.close()
    assert list(response.response_gen) == []
    assert response.metadata["robustrag"]["pending"]


@pytest.mark.parametrize("wrap", [True, False], ids=["StructuredLLM", "output_cls"])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("llm_class", [FactReader, AsyncFactReader])
async def test_the_final_call_alone_is_structured(llm_class: type[FactReader], style: str, wrap: bool) -> None:
    llm = llm_class()
    synthesizer = (
        RobustRAGSynthesizer(llm=llm.as_structured_llm(Capital))
        if wrap
        else RobustRAGSynthesizer(llm=llm, output_cls=Capital)
    )
    response = await synthesize(style, synthesizer, QUESTION, nodes_of([EVIL, *truthful()]))
    assert isinstance(response, PydanticResponse)
    assert response.response == Capital(name="Paris")
    assert response.metadata["robustrag"]["radius"] >= 1
    assert ["schema" in prompt for prompt in llm.seen] == [False] * 7 + [True]


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_structured_abstention_has_a_form_of_its_own(llm: FactReader, streaming: bool) -> None:
    synthesizer = RobustRAGSynthesizer(llm=llm, output_cls=Capital, streaming=streaming)
    nodes = nodes_of(["Rain falls."])
    for response in (synthesizer.synthesize(QUESTION, nodes), await synthesizer.asynthesize(QUESTION, nodes)):
        if not streaming:
            assert isinstance(response, PydanticResponse)
            assert isinstance(response.response, Abstained)
            assert response.response.text == ABSTENTION
            continue
        pieces = response.response_gen
        said = [p async for p in pieces] if hasattr(pieces, "__aiter__") else list(pieces)
        assert Abstained.model_validate_json("".join(said)).text == ABSTENTION
        assert response.metadata["robustrag"]["abstained"]


@pytest.mark.parametrize("style", ["get_response", "aget_response"])
async def test_bare_texts_are_groups_of_their_own(style: str, llm: FactReader) -> None:
    method = getattr(RobustRAGSynthesizer(llm=llm), style)
    given = method(QUESTION, [*truthful(), EVIL])
    assert (given if style == "get_response" else await given) == "Paris"
    assert len(llm.seen) == 7


class Fills(FactReader):
    """Puts into an object what it is told to."""

    filled: str

    def _said(self, prompt: str) -> str:
        return self.filled if "schema" in prompt else super()._said(prompt)


class Facts(BaseModel):
    """What is known."""

    city: str | None = None
    said: str | None = None
    certain: bool | None = None


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("filled", "holds"),
    [
        ('{"city": "Paris", "certain": true}', True),
        ('{"said": "The capital of France is not Paris."}', False),
        ("no JSON", False),
    ],
)
async def test_an_object_holds_the_agreed_answer_or_is_an_abstention(filled: str, holds: bool, streaming: bool) -> None:
    synthesizer = RobustRAGSynthesizer(
        Fills(filled=filled), output_cls=Facts, streaming=streaming, calls=CallOptions(attempts=1)
    )
    nodes = nodes_of(truthful(3))
    for response in (synthesizer.synthesize(QUESTION, nodes), await synthesizer.asynthesize(QUESTION, nodes)):
        if streaming:
            pieces = response.response_gen
            [text] = [p async for p in pieces] if hasattr(pieces, "__aiter__") else list(pieces)
            found: Any = (Facts if holds else Abstained).model_validate_json(text)
        else:
            found = response.response
        report = response.metadata["robustrag"]
        assert (report["abstained"], report["evidence"]["agreed"]) == (not holds, "Paris")
        if holds:
            assert found == Facts.model_validate_json(filled)
        else:
            assert (found.abstained, found.text) == (True, ABSTENTION)
            assert report["warnings"][-1].startswith("abstained: ")


def test_voting_takes_choices_from_the_constructor_or_the_call(llm: FactReader) -> None:
    class Voter(FactReader):
        def _said(self, prompt: str) -> str:
            return "Berlin" if "right answer is Berlin" in prompt else "Paris"

    nodes = nodes_of([*truthful(), EVIL])
    choices = ["Berlin", "Paris", "Rome"]
    by_default = RobustRAGSynthesizer(llm=Voter(), aggregation="voting", choices=choices).synthesize(QUESTION, nodes)
    by_call = RobustRAGSynthesizer(llm=Voter(), aggregation="voting").synthesize(QUESTION, nodes, choices=choices)
    assert str(by_default) == str(by_call) == "Paris"
    assert by_default.metadata["robustrag"]["choice"] == 1
    with pytest.raises(ValueError, match="multiple choice needs choices"):
        RobustRAGSynthesizer(llm=llm, aggregation="voting").synthesize(QUESTION, nodes)


def test_a_stream_whose_parts_hold_only_what_is_new_is_read_too() -> None:
    class OnlyNew(FactReader):
        chat_model: bool = True

        def stream_chat(self, messages: Any, **kwargs: Any) -> Any:
            for piece in ("Par", "is", " it is"):
                yield ChatResponse(message=ChatMessage(role="assistant", content=piece), delta=piece)

    synthesizer = RobustRAGSynthesizer(OnlyNew(), streaming=True, aggregation="keyword", final="always")
    assert list(synthesizer.synthesize(QUESTION, nodes_of(truthful())).response_gen) == ["Par", "is", " it is"]
