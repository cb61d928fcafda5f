"""Local transformers models: decoding aggregation out of a HuggingFaceLLM, one BOS, and what is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the extra local is not installed")
pytest.importorskip("llama_index.llms.huggingface", reason="llama-index-llms-huggingface is not installed")

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.llms.huggingface import HuggingFaceLLM

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer, TextModelLLM, local_model_of
from llamaindex_robustrag.llm_calls import LLMModel
from robustrag_integrations import DecodingAggregation, LocalModel
from robustrag_integrations.prompts import Prompt, prompts_for
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer
from tests.llamaindex.fakes import FactReader, nodes_of
from tests.llamaindex.library import ASKED, FACTS, PLANTED

TEXTS = [*FACTS, PLANTED]
STYLES = ["query", "aquery", "stream", "astream"]


def huggingface(model: Any, tokenizer: Any, **arguments: Any) -> HuggingFaceLLM:
    given = {
        "context_window": 1024,
        "max_new_tokens": 16,
        "generate_kwargs": {"do_sample": False},
        "tokenizer_outputs_to_remove": ["token_type_ids"],
        **arguments,
    }
    return HuggingFaceLLM(model=model, tokenizer=tokenizer, **given)


@pytest.fixture(scope="module")
def loaded(reader_folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(reader_folder, dtype="float32").eval()
    return model, AutoTokenizer.from_pretrained(reader_folder)


@pytest.fixture
def reader(loaded: tuple[Any, Any]) -> HuggingFaceLLM:
    return huggingface(*loaded, is_chat_model=True)


async def answer(synthesizer: RobustRAGSynthesizer, style: str, texts: list[str] = TEXTS) -> tuple[str, dict[str, Any]]:
    nodes = nodes_of(texts)
    if style.startswith("a"):
        response = await synthesizer.asynthesize(ASKED, nodes)
    else:
        response = synthesizer.synthesize(ASKED, nodes)
    if style == "astream":
        text = "".join([piece async for piece in response.async_response_gen()])
    else:
        text = "".join(response.response_gen) if style == "stream" else str(response)
    return text, response.metadata["robustrag"]


@pytest.mark.parametrize("style", STYLES)
async def test_keyword_aggregation_through_huggingface(reader: HuggingFaceLLM, style: str) -> None:
    synthesizer = RobustRAGSynthesizer(llm=reader, streaming="stream" in style, calls=CallOptions(num_workers=1))
    text, report = await answer(synthesizer, style)
    assert "tarsk" in text.casefold()
    assert [g["status"] for g in report["groups"]][:5] == ["supports"] * 5
    about_documents = ("hold the same text", "told apart by document ids")
    assert [w for w in report["warnings"] if not any(part in w for part in about_documents)] == []


@pytest.mark.parametrize("style", STYLES)
async def test_decoding_aggregation_works_in_every_style(reader: HuggingFaceLLM, style: str) -> None:
    local = local_model_of(reader, max_context_tokens=48)
    streaming = "stream" in style
    synthesizer = RobustRAGSynthesizer(llm=local, aggregation="decoding", streaming=streaming)
    text, report = await answer(synthesizer, style)
    assert text == "Tarsk"
    assert report["defense"] == "decoding"
    assert report["radius"] == DecodingAggregation(local).answer(ASKED, TEXTS).radius


def test_decoding_aggregation_takes_the_model_out_of_huggingface(reader: HuggingFaceLLM) -> None:
    synthesizer = RobustRAGSynthesizer(llm=reader, aggregation="decoding")
    assert str(synthesizer.synthesize(ASKED, nodes_of(TEXTS[:3]))) == "Tarsk"
    with pytest.raises(TypeError, match="use a HuggingFaceLLM or llm=LocalModel"):
        local_model_of(FactReader())


def test_decoding_aggregation_takes_a_local_model(loaded: tuple[Any, Any]) -> None:
    local = LocalModel(*loaded, max_context_tokens=48)
    response = RobustRAGSynthesizer(local, aggregation="decoding", gamma=0.9).synthesize(ASKED, nodes_of(TEXTS))
    assert str(response) == "Tarsk"
    assert response.metadata["robustrag"]["settings"]["gamma"] == 0.9


@pytest.mark.parametrize("style", STYLES)
async def test_a_local_model_is_an_llm_too(loaded: tuple[Any, Any], style: str) -> None:
    local = LocalModel(*loaded, max_new_tokens=16, max_context_tokens=48)
    synthesizer = RobustRAGSynthesizer(llm=local, streaming="stream" in style, calls=CallOptions(num_workers=1))
    text, report = await answer(synthesizer, style)
    assert "tarsk" in text.casefold()
    assert report["model_calls"] == 6
    assert local_model_of(TextModelLLM(local)) is local


async def test_no_documents_and_decoding_give_words(reader: HuggingFaceLLM) -> None:
    for style in ("query", "aquery"):
        text, report = await answer(RobustRAGSynthesizer(llm=reader, aggregation="decoding"), style, [])
        assert text == "I don't know"
        assert report["abstained"]


def test_decoding_cannot_be_structured_and_leaves_the_system_prompt_out_with_a_warning(loaded: tuple[Any, Any]) -> None:
    from llama_index.core.bridge.pydantic import BaseModel

    with pytest.raises(ValueError, match="leave out output_cls"):
        RobustRAGSynthesizer(llm=huggingface(*loaded), aggregation="decoding", output_cls=BaseModel)
    talkative = huggingface(*loaded, system_prompt="Be brief.")
    response = RobustRAGSynthesizer(llm=talkative, aggregation="decoding").synthesize(ASKED, nodes_of(TEXTS))
    assert "does not read the LLM's system_prompt" in response.metadata["robustrag"]["warnings"][0]


@pytest.mark.parametrize("chat", [False, True], ids=["base", "chat"])
def test_trap_huggingface_writes_two_bos_and_the_local_model_one(chat: bool) -> None:
    tokenizer = tiny_tokenizer(chat=chat)
    llm = huggingface(tiny_model("llama"), tokenizer, is_chat_model=chat, max_new_tokens=2)
    read: list[list[int]] = []
    forward = llm._model.forward

    def spy(*arguments: Any, **named: Any) -> Any:
        if (ids := named.get("input_ids")) is not None and ids.shape[1] > 1:
            masks = named["attention_mask"][:, -ids.shape[1] :]
            read.extend(row[mask.bool()].tolist() for row, mask in zip(ids, masks, strict=True))
        return forward(*arguments, **named)

    llm._model.forward = spy
    synthesizer = RobustRAGSynthesizer(llm=llm, calls=CallOptions(num_workers=1))
    synthesizer.synthesize(ASKED, nodes_of(TEXTS[:2]))
    assert {ids.count(tokenizer.bos_token_id) for ids in read} == {2 if chat else 1}
    decoding = RobustRAGSynthesizer(llm=llm, aggregation="decoding", max_new_tokens=1)
    decoding.synthesize(ASKED, nodes_of(TEXTS[:2]))  # the first time the model is probed as well
    read.clear()
    decoding.synthesize(ASKED, nodes_of(TEXTS[:2]))
    prompts = [ids for ids in read if len(ids) > 10]  # the others spell the abstention behind them
    assert [ids.count(tokenizer.bos_token_id) for ids in prompts] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "warned"),
    [({"generate_kwargs": {"do_sample": True, "temperature": 0.7}}, True), ({"generate_kwargs": {}}, False)],
)
def test_local_sampling_is_warned_of(arguments: dict[str, Any], warned: bool) -> None:
    llm = huggingface(tiny_model("llama"), tiny_tokenizer(), **arguments)
    report = RobustRAGSynthesizer(llm=llm).synthesize(ASKED, nodes_of(TEXTS[:2])).metadata["robustrag"]
    assert any("the model samples (do_sample" in w for w in report["warnings"]) is warned
    assert report["determinism"]["model"] == ("samples" if warned else "unknown")


def test_a_tokenizer_without_a_chat_template_can_still_have_a_conversation() -> None:
    from llama_index.core.base.llms.types import ChatMessage

    llm = huggingface(tiny_model("llama"), tiny_tokenizer(), max_new_tokens=2)
    history = [ChatMessage(role="user", content="Hello"), ChatMessage(role="assistant", content="Hi")]
    synthesizer = RobustRAGSynthesizer(llm=llm).with_changes(conversation=history)
    report = synthesizer.synthesize(ASKED, nodes_of(TEXTS[:2])).metadata["robustrag"]
    assert [g["error"] for g in report["groups"]] == [None, None]


def test_both_ways_to_ask_the_reader_give_the_same_isolated_answers(
    reader: HuggingFaceLLM, loaded: tuple[Any, Any]
) -> None:
    prompts = [prompts_for("short_answer").isolated.render(context=text, query=ASKED) for text in TEXTS]
    ours = [r.text for r in LocalModel(*loaded, max_new_tokens=16, max_context_tokens=48).generate(prompts, "isolated")]
    report = (
        RobustRAGSynthesizer(llm=reader, calls=CallOptions(num_workers=1))
        .synthesize(ASKED, nodes_of(TEXTS))
        .metadata["robustrag"]
    )
    assert [g["response"].strip() for g in report["groups"]] == ours


async def test_a_model_of_the_core_scores_given_replies_behind_a_conversation_too() -> None:
    model, texts = LocalModel(tiny_model("llama"), tiny_tokenizer()), ("Anna Lind", "Bo")
    prompts = (Prompt("Who runs the mill?"), Prompt("Who?"))
    bound = LLMModel(TextModelLLM(model), CallOptions(), PromptHelper())
    expected = model.score(prompts, texts)
    assert bound.can_score
    assert bound.score(prompts, texts) == expected
    assert await bound.ascore(prompts, texts) == expected
    talked = LLMModel(TextModelLLM(model), CallOptions(), PromptHelper(), [ChatMessage(role="user", content="Hello.")])
    assert talked.score(prompts, texts) != expected
    assert not LLMModel(FactReader(), CallOptions(), PromptHelper()).can_score
