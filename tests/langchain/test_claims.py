"""Long answers and lists from chains: claims in the report, with prompts of ours and of one's own."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate

from langchain_robustrag import create_robust_documents_chain
from tests.langchain.fakes import Reader

OWN = ChatPromptTemplate.from_template("List from {context}: {input}")
DOCUMENTS = [Document(f"Page {i}.", metadata={"source": f"{i}.example"}) for i in range(4)]


def towns(prompt: str) -> str:
    return "- Kelford\n- Ashby" if "Page 0" in prompt or "Page 1" in prompt else "Kelford and Marrow."


@pytest.mark.parametrize("aggregation", [None, "consensus", "keyword"])
@pytest.mark.parametrize("prompt", [None, OWN])
def test_a_list_comes_with_its_claims(aggregation: str | None, prompt: ChatPromptTemplate | None) -> None:
    reader = Reader(answer=towns)
    chain = create_robust_documents_chain(reader, prompt, task="list", aggregation=aggregation, return_robustness=True)
    asked = {"input": "Which towns?", "query": "Which towns?", "context": DOCUMENTS}
    given = chain.invoke(asked)
    claims = [(c.text, c.support, c.origins) for c in given["robustness"].claims]
    both, last = ("0.example", "1.example"), ("2.example", "3.example")
    assert claims == [("Kelford", 4, both + last), ("Ashby", 2, both), ("Marrow", 2, last)]
    assert given["answer"] == "- Kelford\n- Ashby\n- Marrow"
    assert len(reader.prompts) == len(DOCUMENTS)
    assert all(("one per line" in asked) == (prompt is None) for asked in reader.prompts)

    assert chain.invoke({**asked, "context": []})["answer"] == "I don't know"


def test_there_is_no_final_call_to_shape() -> None:
    for idle in ({"final_llm": Reader()}, {"output_schema": {"type": "object", "properties": {}}}):
        with pytest.raises(ValueError, match=r"task='list' has no final call; leave it out"):
            create_robust_documents_chain(Reader(), task="list", aggregation="keyword", **idle)
