"""The prompts mixin: what an engine shows, changed through it."""

from __future__ import annotations

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.prompts import PromptTemplate

from llamaindex_robustrag import RobustRAGQueryEngine, RobustRAGSynthesizer
from robustrag_integrations.prompts import SHORT_REQUEST, prompts_for
from tests.llamaindex.fakes import QUESTION, FactReader, nodes_of, truthful


def test_an_engine_shows_the_prompts(clean: VectorStoreIndex, llm: FactReader) -> None:
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), llm=llm)
    assert list(engine.get_prompts()) == ["response_synthesizer:text_qa_template"]
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), llm=llm, aggregation="keyword")
    shown = engine.get_prompts()
    assert sorted(shown) == ["response_synthesizer:keyword_prompt", "response_synthesizer:text_qa_template"]
    assert sorted(shown["response_synthesizer:text_qa_template"].template_vars) == ["context_str", "query_str"]
    assert sorted(shown["response_synthesizer:keyword_prompt"].template_vars) == ["keywords_str", "query_str"]


@pytest.mark.parametrize(
    ("task", "aggregation"),
    [
        ("short_answer", "consensus"),
        ("short_answer", "keyword"),
        ("long_form", "keyword"),
        ("multiple_choice", "voting"),
    ],
)
def test_what_is_shown_can_be_put_back_and_changes_nothing(task: str, aggregation: str) -> None:
    prompts = prompts_for(task, exemplars=True)
    first = RobustRAGSynthesizer(llm=FactReader(), aggregation=aggregation, prompts=prompts)
    second = RobustRAGSynthesizer(llm=FactReader(), aggregation=aggregation, prompts=prompts)
    second.update_prompts(first.get_prompts())
    for synthesizer in (first, second):
        synthesizer.synthesize(
            QUESTION, nodes_of(truthful(3)), **({"choices": ["a", "b"]} if aggregation == "voting" else {})
        )
    assert sorted(first.plain_llm.seen) == sorted(second.plain_llm.seen)


def test_partial_values_and_renamed_variables_are_kept(llm: FactReader) -> None:
    template = PromptTemplate(
        "{tone}: {documents} ? {query_str}", template_var_mappings={"context_str": "documents"}, tone="Dry {x}"
    )
    synthesizer = RobustRAGSynthesizer(llm=llm)
    synthesizer.update_prompts({"text_qa_template": template})
    synthesizer.synthesize(QUESTION, nodes_of(["Rain."]))
    assert llm.seen[0] == f"Dry {{x}}: Rain. ? {QUESTION}\n\n{SHORT_REQUEST}"


def test_unknown_prompts_are_named(llm: FactReader) -> None:
    with pytest.raises(ValueError, match="unknown prompts refine_template; known here: text_qa_template, keyword_pro"):
        RobustRAGSynthesizer(llm=llm).update_prompts({"refine_template": PromptTemplate("{query_str}")})
