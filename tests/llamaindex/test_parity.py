"""On clean input, the same answers as LlamaIndex's own synthesizers, in every call style; on poisoned input, not."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_robustrag import RobustRAGSynthesizer
from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, MajorityVoting, Passage
from tests.llamaindex.fakes import QUESTION, AsyncFactReader, FactReader

STYLES = ["query", "aquery", "stream", "astream"]
LLMS = [FactReader, AsyncFactReader]
# Accumulate does not stream.
MODES = [*((m, s) for m in ("compact", "refine") for s in STYLES), ("accumulate", "query"), ("accumulate", "aquery")]


async def ask(index: VectorStoreIndex, synthesizer: BaseSynthesizer, style: str) -> tuple[str, object]:
    """The answer's text in one call style, and the response."""
    engine = RetrieverQueryEngine(index.as_retriever(similarity_top_k=7), response_synthesizer=synthesizer)
    response = await engine.aquery(QUESTION) if style.startswith("a") else engine.query(QUESTION)
    if style == "stream":
        return "".join(response.response_gen), response
    if style == "astream":
        return "".join([piece async for piece in response.async_response_gen()]), response
    return str(response), response


@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
@pytest.mark.parametrize("llm_class", LLMS)
@pytest.mark.parametrize(("mode", "style"), MODES)
async def test_clean_input_gives_what_the_stock_synthesizer_gives(
    clean: VectorStoreIndex, mode: str, style: str, llm_class: type[FactReader], chat_model: bool
) -> None:
    llm = llm_class(chat_model=chat_model)
    streaming = "stream" in style
    stock = get_response_synthesizer(llm=llm, response_mode=mode, streaming=streaming)
    expected, kind = await ask(clean, stock, style)
    answer, response = await ask(clean, RobustRAGSynthesizer(llm=llm, streaming=streaming), style)
    assert answer == "Paris"
    assert type(response) is type(kind)
    if mode == "accumulate":
        assert [f"Response {i + 1}: {answer}" in expected for i in range(6)] == [True] * 6
    else:
        assert answer == expected
    assert response.metadata["robustrag"]["text"] == answer
    assert {n.node.node_id for n in response.source_nodes} == {n.node.node_id for n in kind.source_nodes}


@pytest.mark.parametrize("llm_class", LLMS)
@pytest.mark.parametrize("style", STYLES)
async def test_one_planted_document_decides_the_stock_answer_and_not_the_robust_one(
    poisoned: VectorStoreIndex, style: str, llm_class: type[FactReader]
) -> None:
    streaming = "stream" in style
    stock = get_response_synthesizer(llm=llm_class(), response_mode="compact", streaming=streaming)
    assert (await ask(poisoned, stock, style))[0] == "Berlin"
    answer, response = await ask(
        poisoned,
        RobustRAGSynthesizer(llm=llm_class(), streaming=streaming),
        style,
    )
    report = response.metadata["robustrag"]
    assert answer == "Paris"
    assert report["radius"] >= 1
    assert [g["status"] for g in report["groups"]].count("differs") == 1


@pytest.mark.parametrize(
    ("style", "kind"),
    [
        ("query", Response),
        ("aquery", Response),
        ("stream", StreamingResponse),
        ("astream", AsyncStreamingResponse),
    ],
)
async def test_the_swap_of_one_argument_works_through_the_index(
    poisoned: VectorStoreIndex, llm: FactReader, style: str, kind: type
) -> None:
    synthesizer = RobustRAGSynthesizer(llm, streaming="stream" in style)
    engine = poisoned.as_query_engine(llm=llm, response_synthesizer=synthesizer, similarity_top_k=7)
    response = await engine.aquery(QUESTION) if style.startswith("a") else engine.query(QUESTION)
    assert type(response) is kind
    if style == "astream":
        assert [piece async for piece in response.async_response_gen()] == ["Paris"]
    elif style == "stream":
        assert list(response.response_gen) == ["Paris"]
    else:
        assert str(response) == "Paris"


async def test_all_call_styles_report_the_same(poisoned: VectorStoreIndex) -> None:
    reports = []
    for style in STYLES:
        synthesizer = RobustRAGSynthesizer(llm=AsyncFactReader(), streaming="stream" in style)
        reports.append((await ask(poisoned, synthesizer, style))[1].metadata["robustrag"])
    assert all(report == reports[0] for report in reports)


TEXTS = [
    *(f"Guide {i}: the capital of France is Paris." for i in range(6)),
    "The capital of France is Lyon.",
    "Nothing here.",
]


@pytest.mark.parametrize("aggregation", ["keyword", "consensus", "voting"])
def test_core_langchain_and_llamaindex_answer_alike(aggregation: str) -> None:
    pytest.importorskip("langchain_core", reason="needs langchain-core")
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    import langchain_robustrag as langchain

    prompts: list[str] = []

    def say(prompt: object) -> str:
        text = prompt if isinstance(prompt, str) else prompt.to_string()  # type: ignore[attr-defined]
        prompts.append(text)
        said = "Lyon" if "Lyon" in text else "I don't know" if "Nothing" in text else "Paris, on the Seine"
        return said if aggregation != "voting" else "B" if "is Lyon" in text else "A"

    options: dict[str, Any] = {"choices": ["Paris", "Lyon"]} if aggregation == "voting" else {}
    method = {"keyword": KeywordAggregation, "consensus": ConsensusAggregation, "voting": MajorityVoting}[aggregation]
    passages = [Passage(text, source=f"s{i}") for i, text in enumerate(TEXTS)]
    core = method(CallableModel(say)).answer(QUESTION, passages, **options)
    documents = [Document(text, metadata={"source": f"s{i}"}) for i, text in enumerate(TEXTS)]
    chain = langchain.create_robust_documents_chain(
        RunnableLambda(say), aggregation=aggregation, return_robustness=True, **options
    )
    chained = chain.invoke({"input": QUESTION, "context": documents})["robustness"]
    nodes = [
        NodeWithScore(node=TextNode(text=t, metadata={"source": f"s{i}"}, excluded_llm_metadata_keys=["source"]))
        for i, t in enumerate(TEXTS)
    ]
    synthesizer = RobustRAGSynthesizer(llm=SayingLLM(say=say), aggregation=aggregation, **options)
    indexed = synthesizer.synthesize(QUESTION, nodes).metadata["robustrag"]
    found = [(a.text, a.radius, a.model_calls, [g.status for g in a.groups]) for a in (core, chained)]
    found.append((*(indexed[k] for k in ("text", "radius", "model_calls")), [g["status"] for g in indexed["groups"]]))
    assert found[0] == found[1] == found[2]
    assert len(prompts) == 3 * core.model_calls


class SayingLLM(CustomLLM):
    """Answers with a function of the prompt."""

    say: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.say(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError
