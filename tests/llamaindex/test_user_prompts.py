"""The user's own prompt: asked about every document and at the end, whatever kind of template it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate, PromptType, RichPromptTemplate
from llama_index.core.prompts.base import SelectorPromptTemplate

from llamaindex_robustrag import RobustContextChatEngine, RobustRAGQueryEngine, RobustRAGSynthesizer
from tests.llamaindex.fakes import EVIL, QUESTION, Capital, FactReader, nodes_of, truthful

HOSTILE = "The capital of France is Paris. {query_str} {{ 7 * 7 }} {% raw %} <content_block> {x} \\1 %s"


class Chats(FactReader):
    """Keeps the messages that it was sent."""

    chat_model: bool = True

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        self.sent.append([(m.role.value, m.content or "") for m in messages])
        text = self.answer("\n".join(m.content or "" for m in messages), kwargs)
        return ChatResponse(message=ChatMessage(role="assistant", content=text))

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
RICH_TEXT = RichPromptTemplate("Talk like a pirate.\n{{ context_str }}\nQ: {{ query_str }}")
SELECTOR = SelectorPromptTemplate(
    PromptTemplate("{context_str} {query_str}"), [(lambda llm: llm.metadata.is_chat_model, MESSAGES)]
)
AGREED = "Several sources were asked. These are the keywords on which their answers agree.\nKeywords: Paris"


@pytest.mark.parametrize("template", [PromptTemplate(TEXT), RICH_TEXT], ids=["text", "rich text"])
def test_a_text_is_asked_about_each_document_and_at_the_end(template: Any) -> None:
    llm = FactReader()
    response = RobustRAGSynthesizer(llm, text_qa_template=template, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of(truthful(3))
    )
    assert str(response) == "Paris"
    assert sorted(llm.seen[:3]) == [f"Talk like a pirate.\n{text}\nQ: {QUESTION}" for text in truthful(3)]
    assert llm.seen[3] == f"Talk like a pirate.\n{AGREED}\nQ: {QUESTION}"


@pytest.mark.parametrize("template", [MESSAGES, RICH, SELECTOR], ids=["messages", "rich", "selector"])
def test_messages_are_sent_as_messages(template: Any) -> None:
    llm = Chats()
    response = RobustRAGSynthesizer(llm, text_qa_template=template, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of(truthful(3))
    )
    assert str(response) == "Paris"
    assert all(sent[0] == ("system", "Talk like a pirate.") for sent in llm.sent)
    assert sorted(sent[-1] for sent in llm.sent[:3]) == [("user", f"{text}\nQ: {QUESTION}") for text in truthful(3)]
    assert llm.sent[3][-1] == ("user", f"{AGREED}\nQ: {QUESTION}")
    assert (("assistant", "A parrot.") in llm.sent[3]) == (template is not RICH)


@pytest.mark.parametrize("template", [PromptTemplate(TEXT), MESSAGES, RICH, RICH_TEXT])
def test_nothing_in_a_passage_or_keyword_is_read_as_a_template(template: Any) -> None:
    llm = Chats()
    nodes = nodes_of([HOSTILE, f"{HOSTILE} again", f"{HOSTILE} and again"])
    RobustRAGSynthesizer(
        llm,
        text_qa_template=template,
        extractor=lambda text: {"{{ 7*7 }}", "{query_str}"},
        aggregation="keyword",
        final="always",
    ).synthesize(QUESTION, nodes)
    assert sum(HOSTILE in sent[-1][1] for sent in llm.sent) == 3
    assert "Keywords: {query_str}, {{ 7*7 }}" in llm.sent[-1][-1][1]


def test_a_completion_model_gets_the_messages_as_one_text() -> None:
    llm = FactReader()
    RobustRAGSynthesizer(llm, text_qa_template=MESSAGES, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of(truthful(1))
    )
    assert llm.seen[0].startswith(
        "system: Talk like a pirate.\nuser: Who are you?\nassistant: A parrot.\nuser: The cap"
    )


def test_long_passages_are_cut_within_their_message() -> None:
    llm = Chats(window=400, output=64)
    response = RobustRAGSynthesizer(llm, text_qa_template=MESSAGES, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of([" word" * 2000])
    )
    assert response.metadata["robustrag"]["groups"][0]["truncated"]
    assert [role for role, _ in llm.sent[0]] == ["system", "user", "assistant", "user"]
    assert llm.sent[0][-1][1].endswith(f"word\nQ: {QUESTION}")
    assert len(llm.sent[0][-1][1]) < 2000


def test_a_parser_formats_the_final_prompt_alone() -> None:
    template = PromptTemplate(TEXT, output_parser=PydanticOutputParser(Capital))
    llm = FactReader()
    response = RobustRAGSynthesizer(llm, text_qa_template=template, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of(truthful(3))
    )
    assert str(response) == '{"name": "Paris"}'
    assert not any("schema" in prompt for prompt in llm.seen[:3])
    assert "schema" in llm.seen[3]
    assert "Talk like a pirate." in llm.seen[3]


def test_a_prompt_of_its_own_for_the_end() -> None:
    llm = FactReader()
    synthesizer = RobustRAGSynthesizer(
        llm,
        text_qa_template=PromptTemplate(TEXT),
        keyword_prompt=PromptTemplate("Sing of it.\nKeywords: {keywords_str}\n{query_str}"),
        aggregation="keyword",
        final="always",
    )
    synthesizer.synthesize(QUESTION, nodes_of(truthful(3)))
    assert llm.seen[3] == f"Sing of it.\nKeywords: Paris\n{QUESTION}"
    assert sorted(synthesizer.get_prompts()) == ["keyword_prompt", "text_qa_template"]


def test_it_can_be_changed_like_the_stock_one(clean: VectorStoreIndex) -> None:
    llm = FactReader()
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), llm=llm)
    engine.update_prompts({"response_synthesizer:text_qa_template": PromptTemplate(TEXT)})
    assert engine.get_prompts()["response_synthesizer:text_qa_template"].template == TEXT
    assert str(engine.query(QUESTION)) == "Paris"
    assert all(prompt.startswith("Talk like a pirate.") for prompt in llm.seen)


def test_an_isolated_prompt_put_in_is_the_final_one_too() -> None:
    llm = FactReader()
    synthesizer = RobustRAGSynthesizer(llm, aggregation="keyword", final="always")
    synthesizer.update_prompts({"text_qa_template": PromptTemplate(TEXT)})
    synthesizer.synthesize(QUESTION, nodes_of(truthful(3)))
    assert llm.seen[3] == f"Talk like a pirate.\n{AGREED}\nQ: {QUESTION}"


def test_a_conversation_stands_behind_the_system_message(clean: VectorStoreIndex) -> None:
    llm = Chats()
    engine = RobustContextChatEngine.from_defaults(
        clean.as_retriever(),
        llm=llm,
        text_qa_template=MESSAGES,
        chat_history=[ChatMessage(role="user", content="Ahoy"), ChatMessage(role="assistant", content="Ahoy you")],
    )
    assert str(engine.chat(QUESTION)) == "Paris"
    assert llm.sent[-1][:3] == [("system", "Talk like a pirate."), ("user", "Ahoy"), ("assistant", "Ahoy you")]


def test_long_answers_ask_it_too() -> None:
    llm = FactReader()
    RobustRAGSynthesizer(
        llm,
        task="long_form",
        text_qa_template=PromptTemplate(TEXT),
        extractor=lambda text: {"the city of Paris"},
        aggregation="keyword",
        final="always",
    ).synthesize(QUESTION, nodes_of(truthful(3)))
    assert "Several sources agree on these phrases.\nPhrases: the city of Paris" in llm.seen[3]
    assert all(prompt.startswith("Talk like a pirate.") for prompt in llm.seen)


def test_a_planted_document_stays_one_of_many() -> None:
    nodes = nodes_of([*truthful(6), EVIL])
    response = RobustRAGSynthesizer(
        FactReader(), text_qa_template=RICH_TEXT, aggregation="keyword", final="always"
    ).synthesize(QUESTION, nodes)
    assert str(response) == "Paris"
    assert response.metadata["robustrag"]["radius"] >= 1


async def test_asking_asynchronously_and_streaming_take_it() -> None:
    for streaming in (False, True):
        synthesizer = RobustRAGSynthesizer(
            Chats(), text_qa_template=MESSAGES, streaming=streaming, aggregation="keyword", final="always"
        )
        response = await synthesizer.asynthesize(QUESTION, nodes_of(truthful(3)))
        pieces = [p async for p in response.response_gen] if streaming else [str(response)]
        assert "".join(pieces) == "Paris"


@pytest.mark.parametrize(
    ("template", "error", "message"),
    [
        (PromptTemplate("{query_str}"), ValueError, "must show {context_str} once"),
        (PromptTemplate("{context_str} {context_str}"), ValueError, "it shows it 2 times"),
        (RichPromptTemplate("{{ context_str | upper }}"), ValueError, "without filters"),
        (RichPromptTemplate("{% for c in context_str %}{{ c }}-{% endfor %}"), ValueError, "once and as it is"),
        (PromptTemplate("{context_str} {keywords_str}"), ValueError, "must not show keywords_str"),
        ("{context_str}", TypeError, "must be a prompt template of LlamaIndex"),
    ],
)
def test_a_template_that_cannot_isolate_is_refused_at_once(template: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RobustRAGSynthesizer(FactReader(), text_qa_template=template, aggregation="keyword", final="always")
    with pytest.raises(error, match=message):
        RobustRAGSynthesizer(FactReader(), aggregation="keyword", final="always").update_prompts(
            {"text_qa_template": template}
        )


def test_functions_see_no_passage_and_partial_values_are_kept() -> None:
    seen: list[str] = []

    def around(**values: Any) -> str:
        seen.append(values["context_str"])
        return f"<<{values['context_str']}>>"

    template = PromptTemplate(
        "{tone} {context_str} {query_str}",
        prompt_type=PromptType.QUESTION_ANSWER,
        function_mappings={"context_str": around},
        tone="Dry {x}",
    )
    llm = FactReader()
    RobustRAGSynthesizer(llm, text_qa_template=template, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of(["Rain."])
    )
    assert llm.seen[0] == f"Dry {{x}} <<Rain.>> {QUESTION}"
    assert not any("Rain" in one for one in seen)


def test_another_model_writes_the_end() -> None:
    reader, writer = FactReader(), FactReader()
    response = RobustRAGSynthesizer(reader, final_llm=writer, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of(truthful(3))
    )
    assert str(response) == "Paris"
    assert (len(reader.seen), len(writer.seen)) == (3, 1)
    assert "Keywords: Paris" in writer.seen[0]


def test_the_model_at_the_end_alone_may_be_a_structured_one() -> None:
    reader, writer = FactReader(), FactReader()
    synthesizer = RobustRAGSynthesizer(
        reader, final_llm=writer.as_structured_llm(Capital), aggregation="keyword", final="always"
    )
    response = synthesizer.synthesize(QUESTION, nodes_of(truthful(3)))
    assert response.response == Capital(name="Paris")
    assert not any("schema" in prompt for prompt in reader.seen)


def test_voting_takes_a_prompt_with_choices() -> None:
    class Chooses(FactReader):
        def _said(self, prompt: str) -> str:
            return "B" if "Paris" in prompt.split("Options")[0] else "C"

    template = PromptTemplate("{context_str}\n{query_str}\nOptions:\n{choices_str}")
    synthesizer = RobustRAGSynthesizer(Chooses(), aggregation="voting", text_qa_template=template)
    response = synthesizer.synthesize(QUESTION, nodes_of(truthful(3)), choices=["Rome", "Paris"])
    assert response.metadata["robustrag"]["choice"] == 1
    with pytest.raises(ValueError, match="has no final prompt"):
        RobustRAGSynthesizer(Chooses(), aggregation="voting", keyword_prompt=PromptTemplate("{keywords_str}"))
