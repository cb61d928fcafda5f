"""The user's own prompt, of any kind: asked about every document, to word what was agreed on, shown and changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate, RichPromptTemplate
from llama_index.core.prompts.base import SelectorPromptTemplate
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer

from llamaindex_robustrag import RobustContextChatEngine, RobustRAGQueryEngine, RobustRAGSynthesizer
from robustrag_integrations.text.prompts import REQUESTS
from tests.llamaindex.fakes import QUESTION, AsyncFactReader, Capital, FactReader, nodes_of, truthful


class Chats(AsyncFactReader):
    """Keeps the messages that it was sent."""

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        self.sent.append([(m.role.value, m.content or "") for m in messages])
        return super().chat(messages)

    @property
    def sent(self) -> list[list[tuple[str, str]]]:
        return self.__dict__.setdefault("_sent_messages", [])


TEXT = "Talk like a pirate.\n{context_str}\nQ: {query_str}"
MESSAGES = ChatPromptTemplate.from_messages(
    [
        ("system", "Talk like a pirate."),
        ("user", "Who are you?"),
        ("assistant", "A parrot."),
        ("user", "{context_str}\nQ: {query_str}"),
    ]
)
RICH = RichPromptTemplate(
    "{% chat role='system' %}Talk like a pirate.{% endchat %}"
    "{% chat role='user' %}{{ context_str }}\nQ: {{ query_str }}{% endchat %}"
)
SELECTOR = SelectorPromptTemplate(
    PromptTemplate("{context_str} {query_str}"), [(lambda llm: llm.metadata.is_chat_model, MESSAGES)]
)
KEYWORD: dict[str, Any] = {"method": "keyword", "beta": 1}


@pytest.mark.parametrize("template", [MESSAGES, RICH, SELECTOR], ids=["messages", "rich", "selector"])
def test_messages_are_sent_as_messages_and_the_last_of_the_users_has_the_request(template: Any) -> None:
    llm = Chats()
    response = RobustRAGSynthesizer(llm, text_qa_template=template).synthesize(QUESTION, nodes_of(truthful(3)))
    assert str(response) == "Paris"
    assert all(sent[0] == ("system", "Talk like a pirate.") for sent in llm.sent)
    asked = [("user", f"{text}\nQ: {QUESTION}\n\n{REQUESTS['short_answer']}") for text in truthful(3)]
    assert sorted(sent[-1] for sent in llm.sent[:3]) == asked
    assert (("assistant", "A parrot.") in llm.sent[0]) == (template is not RICH)
    assert len(llm.sent) == 3


def test_long_passages_are_cut_within_their_message_and_before_the_request() -> None:
    llm = Chats(window=400)
    synthesizer = RobustRAGSynthesizer(llm, text_qa_template=MESSAGES)
    response = synthesizer.synthesize(QUESTION, nodes_of([" word" * 2000]))
    assert response.metadata["robustrag"]["sources"][0]["truncated"]
    assert len(llm.sent) == 1
    assert [role for role, _ in llm.sent[0]] == ["system", "user", "assistant", "user"]
    assert llm.sent[0][-1][1].endswith(f"word\nQ: {QUESTION}\n\n{REQUESTS['short_answer']}")
    assert len(llm.sent[0][-1][1]) < 2000


@pytest.mark.parametrize("options", [{}, KEYWORD], ids=["consensus", "keyword"])
def test_a_parser_formats_the_final_prompt_alone(options: dict[str, Any]) -> None:
    template = PromptTemplate(TEXT, output_parser=PydanticOutputParser(Capital))
    llm = FactReader()
    response = RobustRAGSynthesizer(llm, text_qa_template=template, **options).synthesize(
        QUESTION, nodes_of(truthful(3))
    )
    assert str(response) == '{"name": "Paris"}'
    assert not any("schema" in prompt for prompt in llm.seen[:3])
    assert "schema" in llm.seen[3]
    assert "Talk like a pirate." in llm.seen[3]


def test_a_conversation_stands_behind_the_system_message(clean: VectorStoreIndex) -> None:
    llm = Chats()
    engine = RobustContextChatEngine.from_defaults(
        clean.as_retriever(),
        llm=llm,
        text_qa_template=MESSAGES,
        chat_history=[ChatMessage(role="user", content="Ahoy"), ChatMessage(role="assistant", content="Ahoy you")],
    )
    assert str(engine.chat(QUESTION)) == "Paris"
    first = [("system", "Talk like a pirate."), ("user", "Ahoy"), ("assistant", "Ahoy you")]
    assert all(sent[:3] == first for sent in llm.sent)
    assert [sent[-1][1].endswith(REQUESTS["short_answer"]) for sent in llm.sent] == [True, True]


@pytest.mark.parametrize(
    ("template", "error", "message"),
    [
        (PromptTemplate("{query_str}"), ValueError, "must show {context_str} once"),
        (PromptTemplate("{context_str} {context_str}"), ValueError, "it shows it 2 times"),
        (RichPromptTemplate("{{ context_str | upper }}"), ValueError, "without filters"),
        (RichPromptTemplate("{% for c in context_str %}{{ c }}-{% endfor %}"), ValueError, "once and as it is"),
        (PromptTemplate("{context_str}"), ValueError, r"must show {query_str}"),
        ("{context_str}", TypeError, "must be a template of LlamaIndex"),
    ],
)
def test_a_template_that_cannot_isolate_is_refused_at_once(template: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RobustRAGSynthesizer(FactReader(), text_qa_template=template)
    with pytest.raises(error, match=message):
        RobustRAGSynthesizer(FactReader()).update_prompts({"text_qa_template": template})


def test_partial_values_and_renamed_variables_are_kept(llm: FactReader) -> None:
    template = PromptTemplate(
        "{tone}: {documents} ? {query_str}", template_var_mappings={"context_str": "documents"}, tone="Dry {x}"
    )
    synthesizer = RobustRAGSynthesizer(llm=llm)
    synthesizer.update_prompts({"text_qa_template": template})
    synthesizer.synthesize(QUESTION, nodes_of(["Rain."]))
    assert llm.seen[0] == f"Dry {{x}}: Rain. ? {QUESTION}\n\n{REQUESTS['short_answer']}"


def test_prompts_of_stock_synthesizers_are_left_out_with_one_warning(
    clean: VectorStoreIndex, llm: FactReader, caplog: pytest.LogCaptureFixture
) -> None:
    stock = {name: p for mode in ResponseMode if mode not in (ResponseMode.CONTEXT_ONLY, ResponseMode.NO_TEXT)
             for name, p in get_response_synthesizer(llm, response_mode=mode).get_prompts().items()}  # fmt: skip
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), llm=llm)
    engine.update_prompts({f"response_synthesizer:{name}": prompt for name, prompt in stock.items()})
    [warning] = [r.getMessage() for r in caplog.records if "not used" in r.getMessage()]
    assert all(name in warning for name in stock.keys() - {"text_qa_template"})
    assert list(engine.get_prompts()) == ["response_synthesizer:text_qa_template"]
    assert engine.get_prompts()["response_synthesizer:text_qa_template"] == stock["text_qa_template"]


def test_the_prompt_that_can_be_set_is_shown_as_it_is_asked(clean: VectorStoreIndex) -> None:
    llm, other = FactReader(), FactReader()
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), llm=llm)
    [(name, shipped)] = engine.get_prompts().items()
    engine.update_prompts({name: shipped})  # changes nothing
    engine.query(QUESTION)
    nodes = clean.as_retriever().retrieve(QUESTION)
    texts = [node.node.get_content() for node in nodes]
    assert sorted(llm.seen) == sorted(shipped.format(context_str=text, query_str=QUESTION) for text in texts)
    RobustRAGSynthesizer(other, text_qa_template=shipped).synthesize(QUESTION, nodes)
    assert sorted(other.seen) == sorted(llm.seen)
