"""What only a chain has: prompts and parsers of LangChain's, models in runnables, factories, documents as they are."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from langchain_robustrag import (
    CallOptions,
    VoteRules,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
    create_robust_retriever_tool,
)
from robustrag_integrations.text.prompts import REQUESTS
from tests.contract.langchain import Chat
from tests.contract.script import Script, Words
from tests.contract.script import read as scripted_read
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, ListRetriever, Reader, planted, truthful

STYLES = ["invoke", "ainvoke", "stream", "astream"]


def given(*more: Document, count: int = 5) -> dict[str, Any]:
    return {"input": QUESTION, "context": [*truthful(count), *more]}


async def called(chain: Any, style: str, config: Any = None, asked: Any = None) -> Any:
    """Call a chain of text in one of four ways."""
    asked = given() if asked is None else asked
    match style:
        case "invoke":
            return chain.invoke(asked, config)
        case "ainvoke":
            return await chain.ainvoke(asked, config)
        case "stream":
            return "".join(chain.stream(asked, config))
        case _:
            return "".join([piece async for piece in chain.astream(asked, config)])


# --- prompts


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (
            [HumanMessage([{"type": "text", "text": "Q"}, {"type": "image_url", "image_url": {"url": "data:,"}}])],
            [[{"type": "text", "text": "Q"}, {"type": "image_url", "image_url": {"url": "data:,"}}, "request"]],
        ),
        (
            [
                HumanMessage("Q"),
                AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
                ToolMessage("found", tool_call_id="1"),
            ],
            [f"Q\n\n{REQUESTS['short_answer']}", "", "found"],
        ),
    ],
    ids=["blocks", "tools"],
)
def test_where_the_request_stands(messages: list[Any], expected: list[Any]) -> None:
    seen: list[Any] = []

    def model(value: Any) -> str:
        seen.append([m.content for m in value.to_messages()])
        return "Paris"

    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), MessagesPlaceholder("said")])
    chain = create_robust_documents_chain(RunnableLambda(model), prompt, question=lambda inputs: QUESTION)
    chain.invoke({"context": truthful(2), "said": messages})
    block = {"type": "text", "text": REQUESTS["short_answer"]}
    want = [[block if b == "request" else b for b in c] if isinstance(c, list) else c for c in expected]
    assert seen[0][1:] == want
    assert messages[0].content != want[0] or len(want) > len(messages)  # the user's own are left as they are


def test_a_question_is_found_in_the_usual_places_named_or_computed() -> None:
    many = ChatPromptTemplate.from_template("{context} {topic} {style}")
    talk = [HumanMessage("first"), AIMessage("reply"), HumanMessage([{"type": "text", "text": "last"}])]
    more = {"topic": "tea", "style": "short", "context": truthful(2)}

    def query(inputs: dict[str, Any], **options: Any) -> str:
        chain = create_robust_documents_chain(Reader(), many, return_robustness=True, **options)
        return str(chain.invoke({**more, **inputs})["robustness"].query)

    for inputs, expected in (
        ({"input": "a", "question": "b"}, "a"),
        ({"question": "b", "query": "c"}, "b"),
        ({"query": "c"}, "c"),
        ({"messages": talk}, "last"),
        ({"input": talk}, "last"),
        ({"input": HumanMessage("one")}, "one"),
        ({"input": {"not": "text"}, "question": "b"}, "b"),
    ):
        assert query(inputs) == expected
    assert query({"input": "other"}, question="topic") == "tea"
    assert query({}, question=lambda i: f"{i['topic']}, {i['style']}") == "tea, short"
    with pytest.raises(ValueError, match=r"'style', 'topic'\]; name it: question="):
        query({})
    with pytest.raises(ValueError, match="empty"):
        query({"input": " "})
    with pytest.raises(TypeError, match="question='topic'"):
        query({"topic": 3}, question="topic")


# --- parsers


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "wrap",
    [lambda llm: llm | StrOutputParser(), lambda llm: llm | RunnableLambda(lambda message: {"winner": message.text})],
    ids=["text", "dict"],
)
async def test_what_a_parser_behind_the_model_makes_is_what_counts(wrap: Any, style: str) -> None:
    trace = "If absent, reply I don't know. London."
    llm = wrap(Chat(script=Script(lambda prompt: Words(scripted_read(prompt), trace))))
    said = await called(create_robust_documents_chain(llm, PROMPT), style, asked=given(planted()))
    assert "Paris" in said
    assert "London" not in said


@pytest.mark.parametrize("style", ["invoke", "ainvoke"])
async def test_how_a_reply_ended_is_known_behind_a_parser(style: str) -> None:
    def cut(prompt: str) -> Words:
        return Words(scripted_read(prompt), finish="length" if "Guide 1" in prompt else "stop")

    chain = create_robust_documents_chain(Chat(script=Script(cut)) | StrOutputParser(), PROMPT, return_robustness=True)
    found = chain.invoke(given()) if style == "invoke" else await chain.ainvoke(given())
    assert [g.note for g in found["robustness"].sources][:2] == [None, "cut at its limit of tokens"]


# --- models in runnables


@pytest.mark.parametrize(
    "wrap",
    [
        lambda m: m.with_retry().bind(stop=["x"]).with_fallbacks([Reader()]).with_config(tags=["t"]),
        lambda m: m | RunnableLambda(lambda message: message),
        lambda m: lambda value: m.invoke(value),
    ],
    ids=["all", "sequence", "function"],
)
async def test_wrapped_models_work(wrap: Any) -> None:
    chain = create_robust_documents_chain(wrap(Reader()), PROMPT, **FINAL)
    for style in STYLES:
        assert await called(chain, style, asked=given(planted())) == "It is Paris indeed"


async def test_max_concurrency_in_the_config_is_never_exceeded() -> None:
    cap = 2
    reader, areader = Reader(delay=0.01), Reader(delay=0.01)
    create_robust_documents_chain(reader, PROMPT).batch([given()] * 3, {"max_concurrency": cap})
    await create_robust_documents_chain(areader, PROMPT).abatch([given()] * 3, {"max_concurrency": cap})
    assert (reader.peak, areader.peak) == (cap, cap)
    reader = Reader(delay=0.01)
    create_robust_documents_chain(reader, PROMPT, calls=CallOptions(max_concurrency=3)).batch([given()] * 4)
    assert reader.peak == 3


# --- factories


def test_every_factory_takes_all_options() -> None:
    from langchain_robustrag.middleware import RobustRetrievalMiddleware

    retriever = ListRetriever(documents=truthful())
    options: dict[str, Any] = {
        "method": "consensus",
        "min_support": 3,
        "min_radius": 9,
        "calls": CallOptions(accept_sampling=True),
    }
    tool = create_robust_retriever_tool(retriever, Reader(), "notes", "Looks things up.", **options)
    artifact = tool.invoke({"type": "tool_call", "id": "1", "name": "notes", "args": {"query": QUESTION}}).artifact
    node = create_robust_node(Reader(), **options).invoke(given())
    rag = create_robust_retrieval_chain(retriever, Reader(), **options).invoke({"input": QUESTION})
    for report in (artifact["robustness"], node["robustness"], rag["robustness"].to_dict()):
        assert (report["abstained"], report["settings"]["min_support"]) == (True, 3)
    RobustRetrievalMiddleware(Reader(), tools=["notes"], **options)


# --- one source, and who reads

ALONE = [
    Document("The capital of France is Paris.", metadata={"source": "atlas.pdf"}),
    *(Document(f"Rain on day {n}.", metadata={"source": f"diary{n}.txt"}) for n in range(4)),
]
TIED = [
    Document(f"The capital of France is {c}.", metadata={"source": f"{n}"}) for n, c in enumerate(["Paris", "Rome"] * 2)
]


@pytest.mark.parametrize("options", [{}, {"method": "keyword"}], ids=["consensus", "keyword"])
def test_a_tool_withholds_what_one_source_says_unless_it_may(options: dict[str, Any]) -> None:
    def asked(documents: list[Document], **more: Any) -> Any:
        retriever = ListRetriever(documents=documents)
        made = create_robust_retriever_tool(retriever, Reader(), "search", "d", prompt=PROMPT, **options, **more)
        return made.invoke({"type": "tool_call", "id": "1", "name": "search", "args": {"query": QUESTION}})

    message = asked(ALONE)
    assert message.status == "error"
    assert "withheld" in message.content
    report = message.artifact["robustness"]
    assert (report["abstained"], report["radius"]) == (True, 0)
    assert "allow_sole_source=True" in report["warnings"][-1]
    assert "Paris" in asked(ALONE, votes=VoteRules(allow_sole_source=True)).content
    differing = [ALONE[0], Document("The capital of France is Berlin.", metadata={"source": "evil"})]
    assert "withheld" in asked(differing).content or asked(differing).content == "I don't know"


def test_messages_of_a_graph_withhold_it_and_other_keys_show_it() -> None:
    state = {"messages": [HumanMessage(QUESTION)], "context": ALONE, "input": QUESTION}
    shown = create_robust_node(Reader(), PROMPT).invoke(state)
    assert (shown["answer"], shown["robustness"]["sole_source"]) == ("Paris", "atlas.pdf")
    told = create_robust_node(Reader(), PROMPT, answer_key="messages").invoke(state)
    assert (told["messages"][0].content, told["robustness"]["abstained"]) == ("I don't know", True)
    allowed = VoteRules(allow_sole_source=True)
    said = create_robust_node(Reader(), PROMPT, answer_key="messages", votes=allowed).invoke(state)
    assert said["messages"][0].content == "Paris"
    tie = {**state, "context": TIED}
    assert create_robust_node(Reader(), PROMPT).invoke(tie)["answer"].startswith("The sources say:\n")
    assert create_robust_node(Reader(), PROMPT, reader="model").invoke(tie)["answer"] == "I don't know"
    assert create_robust_node(Reader(), answer_key="messages").invoke(tie)["messages"][0].content == "I don't know"
    for make in (
        lambda: create_robust_node(Reader(), answer_key="messages", reader="people"),
        lambda: create_robust_retriever_tool(ListRetriever(documents=[]), Reader(), "s", "S.", reader="people"),
    ):
        with pytest.raises(ValueError, match="reader='people': a model reads these answers"):
            make()


# --- documents


@pytest.mark.parametrize("style", STYLES)
async def test_fallbacks_fire_on_a_providers_error_whose_words_hold_a_key(style: str) -> None:
    openai, httpx = pytest.importorskip("openai"), pytest.importorskip("httpx")
    key = "sk-proj-abcdefghijklmnop123456"
    request = httpx.Request("POST", "https://api.example/v1", headers={"Authorization": f"Bearer {key}"})

    def refusing(prompt: str) -> str:
        said = f"Incorrect API key provided: {key}"
        raise openai.AuthenticationError(said, response=httpx.Response(401, request=request), body={"key": key})

    chain = create_robust_documents_chain(Reader(answer=refusing), PROMPT)
    spare = create_robust_documents_chain(Reader(), PROMPT)
    guarded = chain.with_fallbacks([spare], exceptions_to_handle=(openai.AuthenticationError,))
    assert await called(guarded, style) == "Paris"
    with pytest.raises(openai.AuthenticationError) as raised:
        await called(chain, style)
    assert raised.value.status_code == 401
    assert key not in repr((raised.value, vars(raised.value), raised.value.__cause__))
    assert not hasattr(raised.value, "request")
