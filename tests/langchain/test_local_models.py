"""A real language model through langchain-huggingface: keywords, votes and decoding, as text and as chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate

from langchain_robustrag import create_robust_documents_chain
from tests.contract.drivers import driver
from tests.langchain.fakes import FINAL, Reader

pytest.importorskip("langchain_huggingface", reason="needs langchain-huggingface")
pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")
from robustrag_integrations import LocalModel

QUESTION = "Who is the mayor of Vokar?"
FACTS = [
    "The mayor of Vokar is Tilen Marosk.",
    "Vokar has a mayor named Tilen Marosk.",
    "In Vokar, the mayor is Tilen Marosk.",
    "The people of Vokar elected Tilen Marosk as mayor.",
]
GIVEN = {"input": QUESTION, "context": [Document(text, metadata={"source": text}) for text in FACTS]}


@pytest.fixture(scope="module")
def huggingface(reader_folder: Path) -> Any:
    return driver("langchain").local(reader_folder)


def responses(llm: Any, **options: Any) -> list[str]:
    chain = create_robust_documents_chain(llm, return_robustness=True, **{**FINAL, **options})
    return [str(g.response) for g in chain.invoke(GIVEN)["robustness"].sources]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda m: m.bind(pipeline_kwargs={"max_new_tokens": 16, "return_full_text": True}),
        lambda m: m.with_retry().with_config(tags=["t"]),
        lambda m: Reader(answer=lambda _: 1 / 0).with_fallbacks([m]),  # type: ignore[arg-type,return-value]
    ],
    ids=["return_full_text", "wrapped", "fallback"],
)
def test_no_prompt_is_ever_among_the_responses(huggingface: Any, wrap: Any) -> None:
    answers = responses(wrap(huggingface))
    assert len(answers) == 4
    assert not any("Question" in a or "Text:" in a for a in answers)
    assert sum("Tilen Marosk" in a for a in answers) >= 2


def test_decoding_takes_the_users_prompts(huggingface: Any) -> None:
    seen: list[Any] = []

    class Watched(LocalModel):
        def open_session(self, prompts: Any, no_retrieval: Any, max_new_tokens: int) -> Any:
            seen.extend([*prompts, no_retrieval])
            return super().open_session(prompts, no_retrieval, max_new_tokens)

    model = Watched(huggingface.pipeline.model, huggingface.pipeline.tokenizer, chat=False)
    prompt = ChatPromptTemplate.from_messages([("system", "Read: {context}"), ("human", "{input}\nAnswer:")])
    chain = create_robust_documents_chain(model, prompt, method="decoding")
    chain.invoke({**GIVEN, "context": [Document(page_content="{input} a fact"), *GIVEN["context"]]})
    assert seen[0].text == f"Read: {{input}} a fact\n\n{QUESTION}\nAnswer:"
    assert seen[0].text[slice(*seen[0].context)] == "{input} a fact"


def test_models_without_probabilities_are_pointed_to_keywords() -> None:
    for llm in (Reader(), Reader().with_retry()):
        with pytest.raises(TypeError, match="method='keyword'"):
            create_robust_documents_chain(llm, method="decoding")


def test_a_local_model_is_the_llm_alone(reader_folder: Path) -> None:
    model = LocalModel.from_pretrained(str(reader_folder), chat=False)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    refused: list[dict[str, Any]] = [{"llm": model, "final_llm": Reader()}, {"llm": model, "output_schema": schema}]
    refused += [{"llm": Reader(), "final_llm": model}]
    for options in refused:
        with pytest.raises(TypeError, match="is taken as llm= alone"):
            create_robust_documents_chain(method="keyword", **options)
