"""What all groups share is marked for Anthropic, where priming is on, and for no other model."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.prompts import ChatPromptTemplate
from pydantic import PrivateAttr

from langchain_robustrag import CallOptions, create_robust_documents_chain
from langchain_robustrag.cache_marks import marked
from tests.langchain.fakes import QUESTION, Reader, read

DOCUMENTS = [Document(page_content=f"The capital of France is Paris. ({i})") for i in range(4)]
GIVEN = {"input": QUESTION, "context": DOCUMENTS}
ORDERED = ChatPromptTemplate.from_messages(
    [("system", "Be brief."), ("human", "Question: {input}\nPages: {context}\nAnswer:")]
)
SYSTEM_FIRST = ChatPromptTemplate.from_messages([("system", "Be brief. {input}"), ("human", "{context}")])


class Recording(Reader):
    _messages: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *more: Any, **named: Any) -> Any:
        self._messages.append(messages)
        plain = [m.model_copy(update={"content": str(m.text)}) for m in messages]
        return super()._generate(plain, *more, **named)


class ChatAnthropic(Recording):
    """Known by its name, as the real one is."""


def blocks(message: BaseMessage) -> list[Any]:
    return message.content if isinstance(message.content, list) else []


def asked_of(llm: Recording, prompt: Any, **more: Any) -> list[list[BaseMessage]]:
    chain = create_robust_documents_chain(
        llm, prompt, return_robustness=True, **{"aggregation": "keyword", "final": "always", **more}
    )
    assert "Paris" in chain.invoke(GIVEN)["answer"]
    return llm._messages


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_part_before_the_documents_ends_in_a_mark(wrapped: bool) -> None:
    llm = ChatAnthropic(answer=read)
    chain = create_robust_documents_chain(
        llm.bind(stop=["x"]) if wrapped else llm,
        ORDERED,
        calls=CallOptions(prime=1),
        aggregation="keyword",
        final="always",
    )
    chain.invoke(GIVEN)
    isolated = llm._messages[:5]  # the priming call is marked as well: it is what fills the cache
    assert len({str(blocks(m[1])[0]) for m in isolated}) == 1
    first, second = blocks(isolated[1][1])
    assert first["cache_control"] == {"type": "ephemeral"}
    assert first["text"] == f"Question: {QUESTION}\nPages: "
    assert "cache_control" not in second
    assert isolated[1][0].text == "Be brief."
    assert all(not blocks(m) for m in llm._messages[5])  # the final prompt is asked once


def test_a_message_before_that_of_the_documents_is_marked_as_a_whole() -> None:
    isolated = asked_of(ChatAnthropic(answer=read), SYSTEM_FIRST, calls=CallOptions(prime=1))[1]
    assert blocks(isolated[0])[0]["cache_control"]
    assert not blocks(isolated[1])


def test_the_projects_own_prompt_is_marked() -> None:
    isolated = asked_of(ChatAnthropic(answer=read), None, calls=CallOptions(prime=1))[1]
    head, tail = blocks(isolated[0])
    assert head["cache_control"]
    assert "Paris" not in head["text"]
    assert "Paris" in tail["text"]


def test_without_priming_and_for_other_models_nothing_is_marked() -> None:
    for llm, more in ((ChatAnthropic(answer=read), {}), (Recording(answer=read), {"calls": CallOptions(prime=1)})):
        assert not any(blocks(m) for messages in asked_of(llm, ORDERED, **more) for m in messages)
    too_short = asked_of(ChatAnthropic(answer=read), ORDERED, calls=CallOptions(prime=True))
    assert not any(blocks(m) for messages in too_short for m in messages)


@pytest.mark.parametrize("shared", range(0, 40))
def test_a_mark_changes_no_text_and_makes_no_empty_block(shared: int) -> None:
    given = [SystemMessage("  "), SystemMessage("Be brief."), HumanMessage(" \n"), HumanMessage("Who? It is so. ")]
    found = marked(ChatPromptValue(messages=given), shared)
    assert ["".join(b["text"] for b in blocks(m)) or m.content for m in found] == [m.content for m in given]
    made = [b for m in found for b in blocks(m)]
    assert all(b["text"].strip() for b in made)
    assert sum("cache_control" in b for b in made) <= 1
