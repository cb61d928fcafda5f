"""What callbacks, event streams and graphs learn of an answer: each call once, in its place, and no source's words."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import Any

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

from langchain_robustrag import (
    VoteRules,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
)
from robustrag_integrations import RobustAnswer
from tests.contract.script import ABSTENTION
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, ListRetriever, Reader, Recorder, planted
from tests.langchain.test_chain import STYLES, called, given

ASKED = given()


def chain_of(model: Any = None, prompt: Any = PROMPT, **options: Any) -> Any:
    return create_robust_documents_chain(model or Reader(), prompt, **{**FINAL, **options})


# --- runs


@pytest.mark.parametrize("style", STYLES)
async def test_there_is_one_tree_with_every_call_its_prompt_and_its_model(style: str) -> None:
    recorder, run_id = Recorder(), uuid.uuid4()
    config = {"callbacks": [recorder], "tags": ["mine"], "metadata": {"user": 7}, "run_name": "mine", "run_id": run_id}
    await called(chain_of(), style, config)
    expected = [("mine",), ("StrOutputParser", "mine")]
    for call in (*(f"source:{i}" for i in range(5)), "final"):
        expected += [(call, "mine"), ("ChatPromptTemplate", call, "mine"), ("model", call, "mine")]
    found = Counter((str(run["name"]), *recorder.ancestors(run)) for run in recorder.runs.values())
    assert found == Counter(expected)
    assert [run["id"] for run in recorder.roots()] == [run_id]
    assert {run["metadata"]["robustrag_source"] for run in recorder.named("source:")} == set(range(5))
    assert all("mine" in run["tags"] and run["metadata"]["user"] == 7 for run in recorder.runs.values())
    assert recorder.errors == []


@pytest.mark.parametrize("style", STYLES)
async def test_a_retrieval_chain_is_one_tree_without_private_names(poisoned: ListRetriever, style: str) -> None:
    recorder = Recorder()
    rag = create_robust_retrieval_chain(poisoned, Reader(), PROMPT, **FINAL)
    made = getattr(rag, style)({"input": QUESTION}, {"callbacks": [recorder]})
    if style == "ainvoke":
        await made
    elif style == "stream":
        keys = [next(iter(chunk)) for chunk in made]
        assert (keys[-1], keys.count("context")) == ("robustness", 1)
    elif style == "astream":
        [chunk async for chunk in made]
    names = {*(f"source:{i}" for i in range(6)), "robust_retrieval_chain", "robust_documents_chain", "final"}
    assert {run["name"] for run in recorder.runs.values()} == (
        names | {"retriever", "ChatPromptTemplate", "model", "StrOutputParser"}
    )
    assert [run["name"] for run in recorder.roots()] == ["robust_retrieval_chain"]
    assert recorder.errors == []


# --- the same calls, whether anybody learns of them


# --- completion models


# --- nothing of a source is shown


def final_tags(chain: Any, style: str = "invoke") -> tuple[list[Any], list[Any]]:
    """The tags of the models' isolated runs, and of the others."""
    recorder = Recorder()
    asyncio.run(called(chain, style, {"callbacks": [recorder]}))
    models = recorder.named("model")
    isolated = [run for run in models if any(str(n).startswith("source:") for n in recorder.ancestors(run))]
    return [run["tags"] for run in isolated], [run["tags"] for run in models if run not in isolated]


@pytest.mark.parametrize("style", STYLES)
def test_all_calls_are_hidden_from_streams(style: str) -> None:
    for chain in (chain_of(), create_robust_documents_chain(Reader(), PROMPT)):
        isolated, final = final_tags(chain, style)
        assert len(isolated) == 5
        assert all("nostream" in tags for tags in [*isolated, *final])


@pytest.mark.parametrize(
    ("options", "wording", "shown"),
    [
        (FINAL, "It is Paris indeed", "It is Paris indeed"),
        ({}, "It is London.", "Paris"),
        ({"votes": VoteRules(min_radius=9)}, "Paris", ABSTENTION),
    ],
    ids=["final", "of a source", "withheld"],
)
async def test_graphs_and_event_streams_show_the_aggregated_answer_alone(
    options: dict[str, Any], wording: str, shown: str
) -> None:
    graph = pytest.importorskip("langgraph.graph")

    def say(prompt: str) -> str:
        final = "Keywords:" in prompt or "agree on this answer" in prompt
        return wording if final else "London" if "London" in prompt else "Paris"

    asked = given(planted())
    chain = create_robust_documents_chain(Reader(answer=say), PROMPT, **options)
    events = [e async for e in chain.astream_events(asked, version="v2")]
    told = [e["data"]["chunk"] for e in events if e["event"] == "on_chain_stream" and not e["parent_ids"]]
    assert "".join(told) == "".join(chain.stream(asked)) == shown
    assert (len(told) > 1) is (options is FINAL)
    # ... and behind another runnable
    assert "".join((RunnableLambda(lambda x: x) | chain).stream(asked)) == shown

    answering = [
        create_retrieval_chain(ListRetriever(documents=asked["context"]), chain),
        create_robust_retrieval_chain(ListRetriever(documents=asked["context"]), Reader(answer=say), PROMPT, **options),
        RunnableLambda(lambda asked: chain.invoke(asked)) | RunnableLambda(str.upper),
    ]
    for key in ("answer", "reply", "messages"):
        builder = graph.StateGraph(dict)
        builder.add_node("generate", create_robust_node(Reader(answer=say), PROMPT, answer_key=key, **options))
        builder.add_edge(graph.START, "generate")
        builder.add_edge("generate", graph.END)
        compiled = builder.compile()
        answering.append(compiled)
        for messages in (
            [message async for message, _ in compiled.astream(asked, stream_mode="messages")],
            [message for message, _ in compiled.stream(asked, stream_mode="messages")],
        ):
            assert "".join(message.content for message in messages) == shown
            assert len({message.id for message in messages}) == 1
            assert messages[-1].additional_kwargs["robustness"]["abstained"] is (shown == ABSTENTION)
    for runnable in answering:
        events = [e async for e in runnable.astream_events(asked, version="v2")]
        tokens = [e for e in events if e["event"] == "on_chat_model_stream"]
        assert "".join(e["data"]["chunk"].content for e in tokens) == shown
        assert {e["name"] for e in tokens} == {"answer"}
        [ended] = [e for e in events if e["event"] == "on_chat_model_end" and e["name"] == "answer"]
        assert ended["data"]["output"].content == shown


class Typing(FakeListChatModel):
    """A model that streams in every call."""

    streaming: bool = True


class Tokens(BaseCallbackHandler):
    """What a front end prints, and how it ended."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        self.said.append(token)

    def on_llm_error(self, error: BaseException, *, tags: Any = None, **kwargs: Any) -> None:
        if "nostream" not in (tags or ()):
            self.said.append(type(error).__name__)


@pytest.mark.parametrize("style", STYLES)
async def test_handlers_of_tokens_get_the_answers_alone_and_how_it_failed(style: str) -> None:
    model = Typing(responses=["Paris"])
    tokens = Tokens()
    await called(create_robust_documents_chain(model), style, {"callbacks": [tokens]})
    assert "".join(tokens.said) == "Paris"
    tokens = Tokens()
    await called(create_robust_documents_chain(model), style, {"callbacks": [tokens], "tags": ["nostream"]})
    assert tokens.said == []

    def down(prompt: str) -> str:
        raise ConnectionError("down")

    tokens = Tokens()
    with pytest.raises(ConnectionError):
        await called(create_robust_documents_chain(Reader(answer=down), PROMPT), style, {"callbacks": [tokens]})
    assert tokens.said == ["QuorumError"]


# --- the report


@pytest.mark.parametrize("style", STYLES)
async def test_the_report_is_an_event_for_those_who_listen(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[None] = []
    to_dict = RobustAnswer.to_dict
    monkeypatch.setattr(RobustAnswer, "to_dict", lambda answer: written.append(None) or to_dict(answer))
    chain, recorder = create_robust_documents_chain(Reader(), PROMPT), Recorder()
    answer = await called(chain, style)
    assert (answer, written) == ("Paris", [])
    await called(chain, style, {"callbacks": [recorder]})
    [(name, data)] = recorder.events
    assert (name, data["text"], data["radius"], len(written)) == ("robustrag_report", answer, 2, 1)
    events = [event async for event in chain.astream_events(ASKED, version="v2")]
    [report] = [event for event in events if event["event"] == "on_custom_event"]
    assert report["data"] == data


@pytest.mark.parametrize("style", STYLES)
async def test_a_missed_quorum_is_reported_too(style: str) -> None:
    def down(prompt: str) -> str:
        raise ConnectionError("down")

    recorder = Recorder()
    with pytest.raises(ConnectionError) as caught:
        await called(chain_of(Reader(answer=down)), style, {"callbacks": [recorder]})
    assert recorder.events == [("robustrag_report", vars(caught.value)["robustness"].to_dict())]
