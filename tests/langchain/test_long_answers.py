"""Long answers and lists from chains, with prompts of ours and of one's own."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate

from langchain_robustrag import create_robust_documents_chain
from tests.langchain.fakes import Reader

OWN = ChatPromptTemplate.from_template("Write from {context}: {input}")
DOCUMENTS = [Document(f"Page {i}.", metadata={"source": f"{i}.example"}) for i in range(4)]
ASKED = {"input": "Which towns?", "query": "Which towns?", "context": DOCUMENTS}


@pytest.mark.parametrize("prompt", [None, OWN])
def test_a_list_comes_with_its_items(prompt: ChatPromptTemplate | None) -> None:
    reader = Reader(answer=lambda asked: "- Kelford" if "Page 3" in asked else "- Kelford\n- Ashby")
    chain = create_robust_documents_chain(reader, prompt, task="list", return_robustness=True)
    given = chain.invoke(ASKED)
    first = ("0.example", "1.example", "2.example")
    assert [(c.text, c.support, c.origins) for c in given["robustness"].claims] == [
        ("Ashby", 3, first),
        ("Kelford", 4, (*first, "3.example")),
    ]
    assert given["answer"] == "- Ashby\n- Kelford"
    assert len(reader.prompts) == len(DOCUMENTS)
    assert all(("one per line" in asked) == (prompt is None) for asked in reader.prompts)


@pytest.mark.parametrize("aggregation", ["consensus", "keyword"])
@pytest.mark.parametrize("prompt", [None, OWN])
def test_a_long_answer_is_worded_of_shared_phrases(aggregation: str, prompt: ChatPromptTemplate | None) -> None:
    reader = Reader(answer=lambda asked: "red mill, built in 1871" if "Page" in asked else "The red mill is of 1871.")
    chain = create_robust_documents_chain(reader, prompt, task="long_form", aggregation=aggregation)
    assert chain.invoke(ASKED) == "The red mill is of 1871."
    final = reader.prompts[-1]
    assert len(reader.prompts) == len(DOCUMENTS) + 1
    assert "Phrases: built in 1871, red mill" in final
    assert "Page" not in final
    assert ("Write from" in final) == (prompt is not None)
