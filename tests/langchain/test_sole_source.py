"""What one document alone says: shown to the user, and an abstention wherever another model would read it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage

from langchain_robustrag import (
    VoteRules,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retriever_tool,
)
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader

ALONE = [
    Document("The capital of France is Paris.", metadata={"source": "atlas.pdf"}),
    *(Document(f"Rain on day {n}.", metadata={"source": f"diary{n}.txt"}) for n in range(4)),
]
CHUNKS = [Document("It has a river.", metadata={"source": "atlas.pdf"}), *ALONE]
SAID = "It is Paris indeed"  # `Reader` words keywords so
METHODS: list[tuple[dict[str, Any], str]] = [
    ({"aggregation": "consensus"}, "Paris"),
    ({"aggregation": "keyword"}, SAID),
]


@pytest.mark.parametrize(("options", "said"), METHODS, ids=["consensus", "keyword"])
def test_a_chain_shows_it_with_its_source(options: dict[str, Any], said: str) -> None:
    reader = Reader()
    chain = create_robust_documents_chain(reader, PROMPT, return_robustness=True, **options)
    found = chain.invoke({"input": QUESTION, "context": CHUNKS})
    assert found["answer"] == said
    assert (found["robustness"].sole_source, found["robustness"].radius) == ("atlas.pdf", 0)
    [asked] = [prompt for prompt in reader.prompts if "capital of France is" in prompt]
    assert "It has a river." in asked  # both chunks of the document, in one prompt


@pytest.mark.parametrize(("options", "said"), METHODS, ids=["consensus", "keyword"])
def test_a_tool_withholds_it_unless_it_may(options: dict[str, Any], said: str) -> None:
    def called(**more: Any) -> Any:
        made = create_robust_retriever_tool(
            ListRetriever(documents=ALONE), Reader(), "search", "d", prompt=PROMPT, **options, **more
        )
        return made.invoke({"type": "tool_call", "id": "1", "name": "search", "args": {"query": QUESTION}})

    message = called()
    assert message.status == "error"
    assert message.content.startswith("The answer was withheld: too few sources say it")
    assert "Paris" not in message.content
    report = message.artifact["robustness"]
    assert (report["abstained"], report["radius"]) == (True, 0)
    assert "allow_sole_source=True" in report["warnings"][-1]
    assert called(votes=VoteRules(allow_sole_source=True)).content == said


def test_two_documents_that_differ_do_not_put_their_words_into_a_prompt() -> None:
    evil = Document("The capital of France is Berlin.", metadata={"source": "evil"})
    made = create_robust_retriever_tool(
        ListRetriever(documents=[ALONE[0], evil]), Reader(), "search", "d", prompt=PROMPT, aggregation="keyword"
    )
    message = made.invoke({"type": "tool_call", "id": "1", "name": "search", "args": {"query": QUESTION}})
    assert (message.status, "withheld" in message.content) == ("error", True)


def test_messages_of_a_graph_withhold_it_and_other_keys_show_it() -> None:
    state = {"messages": [HumanMessage(QUESTION)], "context": ALONE, "input": QUESTION}
    shown = create_robust_node(Reader(), PROMPT).invoke(state)
    assert (shown["answer"], shown["robustness"]["sole_source"]) == ("Paris", "atlas.pdf")
    told = create_robust_node(Reader(), PROMPT, answer_key="messages").invoke(state)
    assert told["messages"][0].content == "I don't know"
    assert told["robustness"]["abstained"]
    allowed = create_robust_node(
        Reader(), PROMPT, answer_key="messages", votes=VoteRules(allow_sole_source=True)
    ).invoke(state)
    assert allowed["messages"][0].content == "Paris"
