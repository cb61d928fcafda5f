"""On clean documents, every way of calling gives what `create_stuff_documents_chain` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import CommaSeparatedListOutputParser, JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda

from langchain_robustrag import CallOptions, VoteRules, create_robust_documents_chain, create_robust_retrieval_chain
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, ListRetriever, Reader, truthful

pytest.importorskip("langchain_classic", reason="needs langchain-classic to compare with")
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain

INPUT = {"input": QUESTION}


def summed(chunks: list[Any]) -> Any:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    return whole


async def invoke(chain: Any, given: Any) -> Any:
    return chain.invoke(given)


async def ainvoke(chain: Any, given: Any) -> Any:
    return await chain.ainvoke(given)


async def batch(chain: Any, given: Any) -> Any:
    return chain.batch([given, given])[1]


async def abatch(chain: Any, given: Any) -> Any:
    return (await chain.abatch([given, given]))[1]


async def batch_as_completed(chain: Any, given: Any) -> Any:
    return dict(chain.batch_as_completed([given, given]))[1]


async def abatch_as_completed(chain: Any, given: Any) -> Any:
    return {i: out async for i, out in chain.abatch_as_completed([given, given])}[1]


async def stream(chain: Any, given: Any) -> Any:
    return summed(list(chain.stream(given)))


async def astream(chain: Any, given: Any) -> Any:
    return summed([chunk async for chunk in chain.astream(given)])


async def transform(chain: Any, given: Any) -> Any:
    return summed(list(chain.transform(iter([given]))))


async def astream_events(chain: Any, given: Any) -> Any:
    events = [event async for event in chain.astream_events(given, version="v2")]
    return events[-1]["data"]["output"]


async def piped(chain: Any, given: Any) -> Any:
    return (RunnableLambda(lambda x: x) | chain | RunnableLambda(lambda x: x)).invoke(given)


async def mapped(chain: Any, given: Any) -> Any:
    return chain.map().invoke([given, given])[1]


STYLES = [
    invoke,
    ainvoke,
    batch,
    abatch,
    batch_as_completed,
    abatch_as_completed,
    stream,
    astream,
    transform,
    astream_events,
    piped,
    mapped,
]


def says_paris(prompt: str) -> str:
    return "Paris"


@pytest.mark.parametrize("aggregation", ["keyword", "voting"])
@pytest.mark.parametrize("style", STYLES, ids=lambda f: f.__name__)
async def test_bare_chain(style: Callable[..., Any], aggregation: Any) -> None:
    options = {"choices": ["Paris", "London"]} if aggregation == "voting" else {}
    given = {**INPUT, "context": truthful()}
    plain = await style(create_stuff_documents_chain(Reader(answer=says_paris), PROMPT), given)
    robust = create_robust_documents_chain(Reader(answer=says_paris), PROMPT, aggregation=aggregation, **options)
    assert await style(robust, given) == plain == "Paris"


@pytest.mark.parametrize("style", STYLES, ids=lambda f: f.__name__)
async def test_inside_a_retrieval_chain(style: Callable[..., Any]) -> None:
    retriever = ListRetriever(documents=truthful())
    plain = create_retrieval_chain(retriever, create_stuff_documents_chain(Reader(answer=says_paris), PROMPT))
    robust = create_retrieval_chain(
        retriever, create_robust_documents_chain(Reader(answer=says_paris), PROMPT, **FINAL)
    )
    expected, got = await style(plain, INPUT), await style(robust, INPUT)
    assert dict(got) == dict(expected)
    assert isinstance(got["answer"], str)


HISTORY = ChatPromptTemplate.from_messages(
    [("system", "Context: {context}"), MessagesPlaceholder("chat_history", optional=True), ("human", "{question}")]
)
PROMPTS: list[tuple[Any, dict[str, Any], str]] = [
    (PROMPT, INPUT, QUESTION),
    (PromptTemplate.from_template("{context}\n\nQ: {question}"), {"question": QUESTION}, QUESTION),
    (HISTORY, {"question": QUESTION, "chat_history": [HumanMessage("Hello"), AIMessage("Hi")]}, QUESTION),
    (HISTORY, {"question": QUESTION}, QUESTION),
    (
        ChatPromptTemplate.from_messages([("system", "{context}"), MessagesPlaceholder("messages")]),
        {"messages": [HumanMessage("Hello"), AIMessage("Hi"), HumanMessage(QUESTION)]},
        QUESTION,
    ),
    (ChatPromptTemplate.from_messages([("system", "Name the capital:\n\n{context}")]), {}, "Name the capital:"),
    (ChatPromptTemplate.from_template("{context} Topic: {topic}"), {"topic": "capitals"}, "capitals"),
    (PromptTemplate.from_template("{{ context }} {{ input }}", template_format="mustache"), INPUT, QUESTION),
]


@pytest.mark.parametrize(("prompt", "given", "question"), PROMPTS)
def test_prompts_of_all_shapes(prompt: Any, given: dict[str, Any], question: str) -> None:
    inputs = {**given, "context": truthful()}
    plain = create_stuff_documents_chain(Reader(answer=says_paris), prompt).invoke(inputs)
    robust = create_robust_documents_chain(Reader(answer=says_paris), prompt, return_robustness=True, **FINAL).invoke(
        inputs
    )
    assert robust["answer"] == plain
    assert robust["robustness"].query == question


def test_a_group_sees_exactly_what_the_plain_chain_would_show_of_it() -> None:
    plain, robust = Reader(), Reader()
    [document] = truthful(1)
    options: dict[str, Any] = {
        "document_prompt": PromptTemplate.from_template("[{source}] {page_content}"),
        "document_variable_name": "docs",
    }
    prompt = ChatPromptTemplate.from_messages([("system", "Docs: {docs}"), ("human", "{input}")])
    create_stuff_documents_chain(plain, prompt, **options).invoke({**INPUT, "docs": [document]})
    create_robust_documents_chain(robust, prompt, **{**FINAL, **options}).invoke({**INPUT, "docs": [document]})
    assert robust.prompts[0] == plain.prompts[0]


def test_document_separator_stands_between_documents_of_one_group() -> None:
    plain, robust = Reader(), Reader()
    given = {**INPUT, "context": truthful(3)}
    create_stuff_documents_chain(plain, PROMPT, document_separator="\n---\n").invoke(given)
    create_robust_documents_chain(
        robust, PROMPT, document_separator="\n---\n", votes=VoteRules(group_size=3), **FINAL
    ).invoke(given)
    assert robust.prompts[0] == plain.prompts[0]


@pytest.mark.parametrize(
    ("parser", "said", "expected"),
    [
        (CommaSeparatedListOutputParser(), "Paris, France", ["Paris", "France"]),
        (JsonOutputParser(), '{"capital": "Paris"}', {"capital": "Paris"}),
    ],
)
@pytest.mark.parametrize("style", [invoke, ainvoke], ids=lambda f: f.__name__)
async def test_output_parsers(style: Callable[..., Any], parser: Any, said: str, expected: Any) -> None:
    given = {**INPUT, "context": truthful()}
    plain = create_stuff_documents_chain(Reader(answer=lambda _: said), PROMPT, output_parser=parser)
    robust = create_robust_documents_chain(Reader(answer=lambda _: said), PROMPT, output_parser=parser, **FINAL)
    assert await style(robust, given) == await style(plain, given) == expected


def test_output_parsers_see_the_stream() -> None:
    robust = create_robust_documents_chain(
        Reader(answer=lambda _: "Paris, Lyon, Nice"), PROMPT, output_parser=CommaSeparatedListOutputParser(), **FINAL
    )
    assert list(robust.stream({**INPUT, "context": truthful()})) == [["Paris"], ["Lyon"], ["Nice"]]


def test_a_prompt_without_context_is_refused_in_the_same_words() -> None:
    prompt = ChatPromptTemplate.from_template("{input}")
    with pytest.raises(ValueError, match="Prompt must accept context") as plain:
        create_stuff_documents_chain(Reader(), prompt)
    with pytest.raises(ValueError, match="Prompt must accept context") as robust:
        create_robust_documents_chain(Reader(), prompt, **FINAL)
    assert str(robust.value) == str(plain.value)
    assert type(robust.value) is ValueError


def test_a_missing_input_is_a_key_error() -> None:
    given = {"question": QUESTION, "context": truthful()}
    for make in (create_stuff_documents_chain, create_robust_documents_chain):
        with pytest.raises(KeyError, match="missing variables"):
            make(Reader(), PROMPT).invoke(given)


def test_input_schema_names_the_same_fields() -> None:
    schema = create_robust_documents_chain(Reader(), PROMPT, **FINAL).get_input_jsonschema()
    assert set(schema["properties"]) == {"context", "input"}
    assert set(schema["required"]) == {"context", "input"}
    inside = create_retrieval_chain(
        ListRetriever(documents=[]), create_robust_documents_chain(Reader(), PROMPT, **FINAL)
    )
    assert "answer" in inside.get_output_jsonschema()["properties"]


def test_without_documents_it_abstains() -> None:
    assert create_robust_documents_chain(Reader(), PROMPT, **FINAL).invoke({**INPUT, "context": []}) == "I don't know"


@pytest.mark.parametrize("bad", ["one text", Document(page_content="one"), ["text"], 3, None])
def test_what_is_not_a_list_of_documents_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="must be a"):
        create_robust_documents_chain(Reader(), PROMPT, **FINAL).invoke({**INPUT, "context": bad})


@pytest.mark.parametrize(
    ("bad", "fix"), [("text", r"make it Document\("), ((Document("a"), 0.5), "leave out the score")]
)
def test_what_is_no_document_is_refused_with_the_fix(bad: Any, fix: str) -> None:
    with pytest.raises(TypeError, match=rf"documents\[1\] must be a Document, got {type(bad).__name__}; {fix}"):
        create_robust_documents_chain(Reader(), PROMPT, **FINAL).invoke({**INPUT, "context": [Document("a"), bad]})


async def test_arguments_that_no_model_would_be_given_are_refused() -> None:
    given = {**INPUT, "context": truthful()}
    robust = create_robust_documents_chain(Reader(), PROMPT, **FINAL)
    rag: Any = create_robust_retrieval_chain(ListRetriever(documents=truthful()), Reader(), PROMPT, **FINAL)
    for chain in (robust, rag):
        with pytest.raises(TypeError, match=r"passes no arguments on, got stop; .*llm\.bind\(stop=\.\.\.\)"):
            chain.bind(stop=["."]).invoke(given)
        with pytest.raises(TypeError, match="passes no arguments on"):
            await chain.ainvoke(given, stop=["."])
        with pytest.raises(TypeError, match="passes no arguments on"):
            list(chain.stream(given, stop=["."]))
        with pytest.raises(TypeError, match="passes no arguments on"):
            [piece async for piece in chain.astream(given, stop=["."])]


def test_settings_of_another_method_are_refused() -> None:
    chain = create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword")
    chosen = chain.configurable_fields(aggregation=ConfigurableField(id="aggregation"))
    given = {**INPUT, "context": truthful()}
    assert chosen.invoke(given) == chain.invoke(given)
    with pytest.raises(ValueError, match=r"'voting' needs VotingSettings, got .*configurable_alternatives"):
        chosen.with_config(configurable={"aggregation": "voting"}).invoke(given)


def test_the_cap_on_calls_cannot_be_changed_without_effect() -> None:
    chain = create_robust_documents_chain(Reader(), PROMPT, **FINAL)
    with pytest.raises(ValueError, match="frozen"):
        chain.calls = CallOptions(max_concurrency=1)
