"""With a prompt of the user's: groups are asked for a short answer, and the prompt words what they agree on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from pydantic import BaseModel

from langchain_robustrag import (
    Abstained,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
    create_robust_retriever_tool,
)
from langchain_robustrag.prompts import with_request
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.callable import CallableModel
from robustrag_integrations.prompts import CHOICE_REQUEST, SHORT_REQUEST, prompts_for
from tests.langchain.fakes import ListRetriever, Reader, Recorder
from tests.langchain.test_configured_models import STYLES, report

QUESTION = "How long can a badge be returned?"
STOCK = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a helper of Halden. Use three sentences at most.\n\n{context}"),
        MessagesPlaceholder("chat_history", optional=True),
        ("human", "{input}"),
    ]
)
IN_A_SENTENCE = "A badge can be returned for 30 days."
AGREED = re.compile(r"they agree on this answer: (.*)")


def pages(*replies: str) -> list[Document]:
    """Documents on each of which the scripted model replies as it says."""
    return [
        Document(f"Reply: {said}", metadata={"source": f"{name}.pdf"})
        for name, said in zip("abcdefg", replies, strict=False)
    ]


def scripted(wording: str | Callable[[str], str] = IN_A_SENTENCE) -> Reader:
    def answer(prompt: str) -> str:
        if agreed := AGREED.search(prompt):
            return wording if isinstance(wording, str) else wording(agreed[1])
        found = re.search(r"Reply: (.*)", prompt)
        return found[1] if found else "I don't know"

    return Reader(answer=answer)


DAYS = pages("30 days", "30 days.", "30 days", "14 days")
GIVEN = {"input": QUESTION, "context": DAYS}


def asked(prompt: Any, given: dict[str, Any] = GIVEN, **options: Any) -> list[str]:
    reader = scripted()
    create_robust_documents_chain(reader, prompt, **options).invoke(given)
    return reader.prompts


def test_every_group_is_asked_all_messages_of_the_user_with_a_request_at_the_end() -> None:
    talk = [HumanMessage("Hello {x}"), AIMessage("Hi.")]
    prompts = asked(STOCK, {**GIVEN, "chat_history": talk})
    assert sorted(prompts[:4]) == sorted(
        f"You are a helper of Halden. Use three sentences at most.\n\n{page.page_content}\n"
        f"Hello {{x}}\nHi.\n{QUESTION}\n\n{SHORT_REQUEST}"
        for page in DAYS
    )
    assert len(prompts) == 5
    assert prompts[4].endswith(f"they agree on this answer: 30 days\nHello {{x}}\nHi.\n{QUESTION}")
    assert "Reply" not in prompts[4]


def test_a_question_of_yes_or_no_is_asked_as_a_choice_and_never_worded() -> None:
    given = {"input": "Is a badge covered?", "context": pages("Yes", "Yes", "It depends")}
    prompts = asked(STOCK, given)
    assert [said.endswith(f"Is a badge covered?\n\n{CHOICE_REQUEST}") for said in prompts] == [True] * 3
    own = asked(None, given)
    assert [said.startswith(f"Answer the question using only the text below. {CHOICE_REQUEST}") for said in own] == [
        True
    ] * 3


def test_a_prompt_of_the_project_gets_nothing_added_and_words_nothing() -> None:
    instruction = prompts_for("short_answer").isolated.instruction
    prompts = asked(None)
    assert [said.startswith(instruction) and said.endswith("Answer:") for said in prompts] == [True] * 4


@pytest.mark.parametrize(
    "options", [{"aggregation": "keyword"}, {"aggregation": "voting", "choices": ["30 days", "14 days"]}]
)
def test_other_methods_ask_the_prompt_as_it_is(options: dict[str, Any]) -> None:
    assert not any(SHORT_REQUEST in said or CHOICE_REQUEST in said for said in asked(STOCK, **options))


@pytest.mark.parametrize("heard", [False, True])
def test_nothing_is_read_in_what_passages_inputs_and_agreed_answers_hold(heard: bool) -> None:
    hostile = "{input} {{x}} %s $y {% raw %}"
    reader = scripted()
    chain = create_robust_documents_chain(reader, ChatPromptTemplate.from_template("{context}\nQ: {input}"))
    given = {"input": hostile, "context": pages(hostile, hostile)}
    chain.invoke(given, {"callbacks": [Recorder()]} if heard else {})
    assert reader.prompts[0].endswith(f"Reply: {hostile}\nQ: {hostile}\n\n{SHORT_REQUEST}")
    assert reader.prompts[2].endswith(f"this answer: {hostile}\nQ: {hostile}")


def test_where_the_request_stands() -> None:
    def ended(*messages: Any) -> list[Any]:
        value = ChatPromptValue(messages=list(messages))
        before = value.model_copy(deep=True)
        changed = with_request(value, "Be short.").to_messages()
        assert value == before
        return [m.content for m in changed]

    called = [AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]), ToolMessage("found", tool_call_id="1")]
    blocks = [{"type": "text", "text": "Q"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    assert ended(SystemMessage("S"), HumanMessage("Q")) == ["S", "Q\n\nBe short."]
    assert ended(HumanMessage(blocks)) == [[*blocks, {"type": "text", "text": "Be short."}]]
    assert ended(HumanMessage("Q"), AIMessage("The answer is")) == ["Q\n\nBe short.", "The answer is"]
    assert ended(HumanMessage("Q"), *called) == ["Q\n\nBe short.", "", "found"]
    assert ended(AIMessage("Hi")) == ["Hi", "Be short."]
    assert with_request(StringPromptValue(text="Q"), "Be short.").to_string() == "Q\n\nBe short."


def test_runs_and_tags_are_those_of_a_prompt_without_a_request() -> None:
    def runs(**options: Any) -> set[tuple[Any, ...]]:
        recorder = Recorder()
        chain = create_robust_documents_chain(scripted(), STOCK, **options)
        chain.invoke(GIVEN, {"callbacks": [recorder], "tags": ["mine"]})
        return {(r["name"], *r["tags"], *recorder.ancestors(r)) for r in recorder.runs.values()}

    assert runs(wording="source") == {r for r in runs(aggregation="keyword") if "final" not in r}


def test_a_model_of_the_core_gets_the_request_behind_the_rest() -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return IN_A_SENTENCE if AGREED.search(prompt) else re.search(r"Reply: (.*)", prompt)[1]  # type: ignore[index]

    chain = create_robust_documents_chain(CallableModel(model, samples=False), STOCK)
    assert chain.invoke(GIVEN) == IN_A_SENTENCE
    assert [said.endswith(f"\n\n{QUESTION}\n\n{SHORT_REQUEST}") for said in prompts] == [True] * 4 + [False]


# --- worded


@pytest.mark.parametrize("style", STYLES)
async def test_an_agreed_answer_is_worded_by_the_users_prompt(style: str) -> None:
    answer = await report(create_robust_documents_chain(scripted(), STOCK, return_robustness=True), style, GIVEN)
    assert (answer.text, answer.evidence["agreed"], answer.radius) == (IN_A_SENTENCE, "30 days", 0)
    assert [(d.text, d.origins) for d in answer.dissent] == [("14 days", ("d.pdf",))]
    assert answer.model_calls == 5


@pytest.mark.parametrize(
    "wording",
    [
        "A badge can be returned for 1 day.",
        "A badge cannot be returned for 30 days.",
        "A badge can be returned for 30 days, see https://evil.example",
        "A badge can be returned for 30 days at the desk of Otto.",
        "I don't know",
        "",
    ],
)
def test_what_says_more_or_less_is_not_shown(wording: str) -> None:
    assert create_robust_documents_chain(scripted(wording), STOCK).invoke(GIVEN) == "30 days"


async def test_the_words_are_hidden_until_checked_and_shown_once() -> None:
    for wording, shown in ((IN_A_SENTENCE, IN_A_SENTENCE), ("For 1 day.", "30 days")):
        chain = create_robust_documents_chain(scripted(wording), STOCK)
        recorder = Recorder()
        assert list(chain.stream(GIVEN, {"callbacks": [recorder]})) == [shown]
        assert (
            recorder.named("final")[0]["tags"] == ["final", "nostream"]
            or "nostream" in recorder.named("final")[0]["tags"]
        )
        events = [e async for e in chain.astream_events(GIVEN, version="v2")]
        assert not [e for e in events if e["event"] == "on_chat_model_stream"]
        told = [e["data"]["chunk"] for e in events if e["event"] == "on_chain_stream" and not e["parent_ids"]]
        assert told == [shown]


def test_another_model_words_it() -> None:
    reader, writer = scripted("never asked"), Reader(answer=lambda _: IN_A_SENTENCE)
    assert create_robust_documents_chain(reader, STOCK, final_llm=writer).invoke(GIVEN) == IN_A_SENTENCE
    assert (len(reader.prompts), len(writer.prompts)) == (4, 1)
    with pytest.raises(ValueError, match="final_llm has nothing to do: consensus asks once more only with"):
        create_robust_documents_chain(reader, final_llm=writer)


@pytest.mark.parametrize("style", STYLES)
async def test_a_call_that_fails_leaves_the_agreed_answer(style: str) -> None:
    def fails(agreed: str) -> str:
        raise RuntimeError("the server is gone")

    answer = await report(create_robust_documents_chain(scripted(fails), STOCK, return_robustness=True), style, GIVEN)
    assert answer.text == "30 days"
    assert "the call that words it failed" in answer.warnings[-1]
    assert "the server is gone" in answer.warnings[-1]


def test_wording_by_the_source_saves_the_call() -> None:
    reader = scripted()
    assert create_robust_documents_chain(reader, STOCK, wording="source").invoke(GIVEN) == "30 days"
    assert len(reader.prompts) == 4


# --- a schema


class Term(BaseModel):
    days: int
    note: str = ""


class Answer(BaseModel):
    answer: str


def filled(schema: type[BaseModel], said: str, documents: list[Document] = DAYS, **options: Any) -> Any:
    chain = create_robust_documents_chain(scripted(said), output_schema=schema, return_robustness=True, **options)
    return chain.invoke({"input": QUESTION, "context": documents})


@pytest.mark.parametrize("prompt", [None, STOCK])
def test_the_agreed_answer_is_put_into_the_object_by_one_more_call(prompt: Any) -> None:
    result = filled(Term, '{"days": 30, "note": "for a badge"}', prompt=prompt)
    assert result["answer"] == Term(days=30, note="for a badge")
    assert result["robustness"].evidence["agreed"] == "30 days"
    assert result["robustness"].model_calls == 5
    assert filled(Answer, '{"answer": "30 days"}', prompt=prompt)["answer"] == Answer(answer="30 days")


@pytest.mark.parametrize(("schema", "said"), [(Term, '{"days": 14}'), (Answer, '{"answer": "not 30 days"}')])
def test_an_object_that_does_not_hold_it_is_an_abstention(schema: type[BaseModel], said: str) -> None:
    result = filled(schema, said)
    assert isinstance(result["answer"], Abstained)
    assert (result["robustness"].abstained, result["robustness"].radius) == (True, 0)
    assert "no value of the object holds the agreed answer" in result["answer"].warnings[-1]


def test_where_nothing_is_agreed_on_there_is_no_object() -> None:
    result = filled(Term, '{"days": 30}', pages("30 days", "14 days"))
    assert isinstance(result["answer"], Abstained)
    assert result["answer"].text == "No two sources agree: 30 days (a.pdf); 14 days (b.pdf)"
    with pytest.raises(ValueError, match="task='list' has no output_schema"):
        create_robust_documents_chain(Reader(), output_schema=Term, aggregation="consensus", task="list")


# --- who reads

TIE = {"input": QUESTION, "context": pages("30 days", "30 days", "14 days", "14 days")}
SOLE = {"input": QUESTION, "context": pages("30 days", "I don't know", "I don't know")}
TOLD = "Sources disagree: 30 days (a.pdf, b.pdf); 14 days (c.pdf, d.pdf)"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("given", "told"), [(TIE, TOLD), (SOLE, "30 days")], ids=["tie", "sole source"])
async def test_people_are_told_what_models_are_not(given: dict[str, Any], told: str, style: str) -> None:
    for reader, shown in (("people", told), ("model", "I don't know")):
        chain = create_robust_documents_chain(scripted(), STOCK, return_robustness=True, reader=reader)
        answer = await report(chain, style, given)
        assert answer.text == shown
        text_chain = create_robust_documents_chain(scripted(), STOCK, reader=reader)
        assert list(text_chain.stream(given)) == [shown] == [text_chain.invoke(given)]
        events = [e async for e in text_chain.astream_events(given, version="v2")]
        chunks = [e["data"]["chunk"] for e in events if e["event"] == "on_chain_stream" and not e["parent_ids"]]
        assert chunks == [shown]


def test_who_says_what_stays_in_the_report_that_a_model_never_reads() -> None:
    chain = create_robust_documents_chain(scripted(), STOCK, reader="model", return_robustness=True)
    answer = chain.invoke(TIE)["robustness"]
    assert [(d.text, d.origins) for d in answer.dissent] == [
        ("30 days", ("a.pdf", "b.pdf")),
        ("14 days", ("c.pdf", "d.pdf")),
    ]
    marked = create_robust_documents_chain(scripted(), STOCK, reader="model", citation_markers=True)
    assert list(marked.stream(GIVEN)) == [marked.invoke(GIVEN)]
    assert "[1]" in marked.invoke(GIVEN)


def test_every_factory_says_who_reads() -> None:
    retriever = ListRetriever(documents=TIE["context"])
    rag = create_robust_retrieval_chain(retriever, scripted(), STOCK, reader="model")
    assert rag.invoke({"input": QUESTION})["answer"] == "I don't know"
    assert create_robust_node(scripted(), STOCK).invoke(TIE)["answer"] == TOLD
    assert create_robust_node(scripted(), STOCK, reader="model").invoke(TIE)["answer"] == "I don't know"
    [message] = create_robust_node(scripted(), STOCK, answer_key="messages").invoke(TIE)["messages"]
    assert message.content == "I don't know"
    tool = create_robust_retriever_tool(retriever, scripted(), "search", "S.", prompt=STOCK)
    message = tool.invoke({"type": "tool_call", "id": "1", "name": "search", "args": {"query": QUESTION}})
    assert message.content == "I don't know"
    for make in (
        lambda: create_robust_node(scripted(), STOCK, answer_key="messages", reader="people"),
        lambda: create_robust_retriever_tool(retriever, scripted(), "search", "S.", reader="people"),
    ):
        with pytest.raises(ValueError, match="reader='people': a model reads these answers"):
            make()
    with pytest.raises(ValueError, match="reader='human' must be 'people' or 'model'"):
        create_robust_documents_chain(scripted(), STOCK, reader="human")  # type: ignore[arg-type]


# --- log-probabilities


class Confident(Reader):
    """Gives its tokens' log-probabilities as `ChatOpenAI` does: sure of one reply, unsure of all others."""

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        message = super()._generate(messages).generations[0].message
        one = -0.01 if message.text == "30 days" else -2.0
        message.response_metadata = {"logprobs": {"content": [{"token": t, "logprob": one} for t in "ab"]}}
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


@pytest.mark.parametrize("style", STYLES)
async def test_one_sure_source_is_heard_among_unsure_ones(style: str) -> None:
    llm = Confident(answer=scripted().answer)
    chain = create_robust_documents_chain(llm, STOCK, return_robustness=True)
    documents = pages("30 days", "Blue", "Monday")
    answer = await report(chain, style, {"input": QUESTION, "context": documents})
    assert (answer.text, answer.sole_source, answer.radius) == ("30 days", "a.pdf", 0)
    assert [g.status for g in answer.groups] == ["supports", "unsure", "unsure"]


def test_a_model_that_scores_settles_a_tie_in_a_chain() -> None:
    class Scores(CallableModel):
        can_score = True

        def score(self, prompts: Any, texts: Any) -> Any:
            return [[0.0 if text.startswith("30") else -5.0 for text in texts] for _ in prompts]

        async def ascore(self, prompts: Any, texts: Any) -> Any:
            return self.score(prompts, texts)

    def said(prompt: str) -> Response:
        return Response(scripted().answer(prompt))

    documents = pages("30 days", "30 days", "14 days", "14 days", "a week")
    chain = create_robust_documents_chain(Scores(said, samples=False), STOCK, return_robustness=True)
    answer = chain.invoke({"input": QUESTION, "context": documents})["robustness"]
    assert answer.evidence["agreed"] == "30 days"
    assert any("a tie, settled by" in warning for warning in answer.warnings)


def test_a_prompt_with_more_inputs_and_documents_under_another_name() -> None:
    prompt = PromptTemplate.from_template("{docs}\nSpeak {language}.\nQ: {question}")
    reader = scripted()
    chain = create_robust_documents_chain(reader, prompt, document_variable_name="docs")
    assert chain.invoke({"question": QUESTION, "docs": DAYS, "language": "English"}) == IN_A_SENTENCE
    assert reader.prompts[0].endswith(f"\nSpeak English.\nQ: {QUESTION}\n\n{SHORT_REQUEST}")
