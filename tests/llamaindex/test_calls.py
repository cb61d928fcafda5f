"""How the LLM is called: its own prompts and settings honoured, loops never blocked, failures kept in their source."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.prompts import PromptTemplate

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer, VoteRules, robust_answer
from tests.llamaindex.fakes import QUESTION, Capital, FactReader, nodes_of, truthful


@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
def test_a_prompt_reaches_the_llm_as_predict_would_send_it(chat_model: bool) -> None:
    settings: dict[str, Any] = {
        "chat_model": chat_model,
        "system_prompt": "Be brief.",
        "query_wrapper_prompt": PromptTemplate("<<{query_str}>>"),
        "completion_to_prompt": lambda text: f"[[{text}]]",
    }
    expected, found = FactReader(**settings), FactReader(**settings)
    expected.predict(PromptTemplate("{text}"), text="Rain {x}. What {query_str}?")
    template = PromptTemplate("{context_str} {query_str}")
    synthesizer = RobustRAGSynthesizer(found, text_qa_template=template, method="keyword", final="never")
    synthesizer.synthesize("What {query_str}?", nodes_of(["Rain {x}."]))
    assert found.seen == expected.seen


def test_the_global_llm_is_used_when_none_is_passed(llm: FactReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", llm)
    assert str(RobustRAGSynthesizer().synthesize(QUESTION, nodes_of(truthful()))) == "Paris"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"votes": VoteRules(passages_per_source=2)}, ValueError, "leave passages_per_source out"),
        ({"gamma": 0.9}, ValueError, "gamma is for method='decoding' .* and not for method='keyword'"),
        ({"calls": 3}, TypeError, r"calls must be CallOptions\(...\), got int"),
        ({"method": "decoding"}, TypeError, "does not give. Use method"),
        ({"choices": ["a", "b"]}, ValueError, "does not take choices; use MajorityVoting"),
        ({"output_cls": dict}, TypeError, "output_cls must be a pydantic class, got <class 'dict'>"),
        ({"output_cls": Capital, "citation_markers": True}, ValueError, "citation_markers puts markers into text"),
        ({"llm": "gpt"}, TypeError, "llm must be a LlamaIndex LLM or a TextModel .*got 'gpt'; give an LLM, such as"),
        ({"llm": FactReader().as_structured_llm(Capital)}, TypeError, "the class of a structured one as output_cls="),
    ],
)
def test_bad_arguments_are_named(
    llm: FactReader, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        RobustRAGSynthesizer(**{"llm": llm, "method": "keyword", **arguments}).synthesize(
            QUESTION, nodes_of(truthful())
        )


def test_determinism_can_be_declared_of_a_server() -> None:
    llm = pytest.importorskip("llama_index.llms.openai_like").OpenAILike(
        model="m", api_key="none", is_chat_model=True, temperature=0.0
    )
    for samples, model in ((None, "unknown"), (False, "deterministic"), (True, "samples")):
        synthesizer = RobustRAGSynthesizer(llm, calls=CallOptions(samples=samples))
        assert robust_answer(synthesizer.synthesize(QUESTION, [])).determinism.model == model
    with pytest.raises(TypeError, match="samples=0 must be True, False, or None"):
        CallOptions(samples=0)  # type: ignore[arg-type]
