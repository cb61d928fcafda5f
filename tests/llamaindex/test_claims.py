"""Long answers and lists from a synthesizer: claims in the report, with prompts of ours and of one's own."""

from __future__ import annotations

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_robustrag import RobustRAGSynthesizer
from tests.llamaindex.fakes import FactReader

NODES = [NodeWithScore(node=TextNode(text=f"The capital of France is {city}.", metadata={"file_path": f"{i}.txt"}))
         for i, city in enumerate(["Paris", "Paris", "Lyon"])]  # fmt: skip


@pytest.mark.parametrize("task", ["list", "long_form"])
@pytest.mark.parametrize("own", [None, PromptTemplate("From {context_str}: {query_str}")])
def test_claims_come_with_the_response(task: str, own: PromptTemplate | None) -> None:
    llm = FactReader()
    given = {} if own is None else {"text_qa_template": own}
    response = RobustRAGSynthesizer(llm, task=task, **given).synthesize("Which cities?", NODES)
    report = response.metadata["robustrag"]
    assert [(c["text"], c["support"], c["origins"]) for c in report["claims"]] == [("Paris", 2, ["0.txt", "1.txt"])]
    assert [c["text"] for c in report["evidence"]["left_out"]] == ["Lyon"]
    assert str(response) == ("Paris" if task == "list" else "Paris.")
    assert len(llm.seen) == len(NODES)

    empty = RobustRAGSynthesizer(llm, task=task, **given).synthesize("Which cities?", [])
    assert "Paris" not in str(empty)


def test_there_is_no_final_call_to_shape() -> None:
    with pytest.raises(ValueError, match=r"task='list' has no final call; leave it out"):
        RobustRAGSynthesizer(MockLLM(), task="list", aggregation="keyword", final_llm=MockLLM())
