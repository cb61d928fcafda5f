"""Long answers and lists from a synthesizer, with prompts of ours and of one's own."""

from __future__ import annotations

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_robustrag import RobustRAGSynthesizer
from tests.llamaindex.fakes import FactReader

NODES = [NodeWithScore(node=TextNode(text=f"The capital of France is {city}.", metadata={"file_path": f"{i}.txt"}))
         for i, city in enumerate(["Paris", "Paris", "Lyon"])]  # fmt: skip


@pytest.mark.parametrize("own", [None, PromptTemplate("From {context_str}: {query_str}")])
def test_a_list_comes_with_its_items(own: PromptTemplate | None) -> None:
    llm = FactReader()
    given = {} if own is None else {"text_qa_template": own}
    response = RobustRAGSynthesizer(llm, task="list", **given).synthesize("Which cities?", NODES)
    report = response.metadata["robustrag"]
    assert [(c["text"], c["support"], c["origins"]) for c in report["claims"]] == [("Paris", 2, ["0.txt", "1.txt"])]
    assert [c["text"] for c in report["evidence"]["left_out"]] == ["Lyon"]
    assert str(response) == "Paris"
    assert len(llm.seen) == len(NODES)


@pytest.mark.parametrize("aggregation", ["consensus", "keyword"])
def test_a_long_answer_is_worded_of_what_most_carry(aggregation: str) -> None:
    llm = FactReader()
    more = {"min_words": 1} if aggregation == "keyword" else {}
    made = RobustRAGSynthesizer(llm, task="long_form", aggregation=aggregation, **more)
    report = made.synthesize("Tell me of the capital.", NODES).metadata["robustrag"]
    assert report["evidence"]["retained"] == (["paris"] if aggregation == "keyword" else [])
    assert len(llm.seen) == len(NODES) + (aggregation == "keyword")
