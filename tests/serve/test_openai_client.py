"""OpenAI's own client talks to the endpoint."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.base import Response
from robustrag_integrations.serve.endpoint import Limits
from tests.helpers.endpoint import QUESTION, TEXTS, service, serving

openai = pytest.importorskip("openai")

ASKED = [{"role": "user", "content": QUESTION}]


def says_anna(prompt: str) -> Response:
    return Response("Anna Lind", usage=Usage(prompt=10, completion=2))


def client_of(address: str, **more: object) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key="not-used", max_retries=0, **more)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(service(CallableModel(says_anna))) as listening:
        yield listening


def test_an_answer_comes_with_its_report_and_the_tokens_of_all_its_calls(address: str) -> None:
    with client_of(address) as client:
        done = client.chat.completions.create(model="robustrag-keyword", messages=ASKED)
    assert done.choices[0].message.content == "Anna Lind"
    assert done.choices[0].finish_reason == "stop"
    report = done.robustrag
    assert (report["schema"], report["radius"], report["abstained"]) == ("robustrag/serve/3", 2, False)
    assert len(report["answer"]["sources"]) == len(TEXTS)
    assert {c["origins"][0] for c in report["citations"]} == {f"site-{n}.example" for n in range(5)}
    calls = report["answer"]["spending"]["calls"]
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (10 * calls, 2 * calls)
    assert "Secret page" not in done.model_dump_json()
    here = service(CallableModel(says_anna))
    found = here.library.search(QUESTION)
    assert report["answer"] == here.models["robustrag-keyword"].answer(QUESTION, found).to_dict()
    assert [p["id"] for p in report["passages"]] == [p.id for p in found]


def test_the_undefended_model_says_that_it_is(address: str) -> None:
    with client_of(address) as client:
        assert {m.id for m in client.models.list()} == {"robustrag-keyword", "vanilla"}
        assert client.models.retrieve("vanilla").robustrag["method"] == "vanilla"
        done = client.chat.completions.create(model="vanilla", messages=ASKED)
        for ask in (
            lambda: client.models.retrieve("gpt-5"),
            lambda: client.chat.completions.create(model="gpt-5", messages=ASKED),
        ):
            with pytest.raises(openai.NotFoundError, match=r"no model 'gpt-5' here; ask for .*vanilla") as refused:
                ask()
            assert refused.value.code == "model_not_found"
    assert done.robustrag["radius"] == 0
    assert "no defence: any passage may decide this answer" in done.robustrag["warnings"]


async def words(prompt: str) -> AsyncIterator[str]:
    for word in ("Anna", " ", "Lind", "."):
        await asyncio.sleep(0)
        yield word


def streaming_model() -> CallableModel:
    return CallableModel(lambda prompt: "Anna Lind", async_stream_fn=words)


def test_a_stream_adds_up_and_ends_with_the_report() -> None:
    with serving(service(streaming_model(), final="always")) as listening, client_of(listening) as client:
        chunks = list(
            client.chat.completions.create(
                model="robustrag-keyword", messages=ASKED, stream=True, stream_options={"include_usage": True}
            )
        )
    pieces = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert "".join(pieces) == "Anna Lind."
    assert len(pieces) > 2
    ended = [c for c in chunks if c.choices and c.choices[0].finish_reason == "stop"]
    assert [c.robustrag["radius"] for c in ended] == [2]
    assert ended == chunks[-1:]
    assert chunks[-1].usage is None, "no call told its tokens, so none are claimed"


def test_whom_there_is_no_room_for_is_told_when_to_come_back() -> None:
    release, busy = threading.Event(), threading.Event()

    def waits(prompt: str) -> str:
        busy.set()
        release.wait(20)
        return "Anna Lind"

    limits = Limits(concurrent=1, waiting=0)
    with serving(service(waits, limits=limits)) as listening, client_of(listening) as client:
        first = threading.Thread(
            target=lambda: client.chat.completions.create(model="robustrag-keyword", messages=ASKED)
        )
        first.start()
        assert busy.wait(10)
        try:
            with pytest.raises(openai.RateLimitError) as refused:
                client.chat.completions.create(model="robustrag-keyword", messages=ASKED)
        finally:
            release.set()
            first.join(20)
        assert refused.value.response.headers["retry-after"] == "1"
        patient = client.with_options(max_retries=5)  # the place is free a moment after the first answer is out
        again = patient.chat.completions.create(model="robustrag-keyword", messages=ASKED)
    assert again.choices[0].message.content == "Anna Lind"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_cancels_its_calls(stream: bool) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def never(prompt: str) -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    limits = Limits(concurrent=1, waiting=0)
    with serving(service(CallableModel(async_fn=never), limits=limits)) as listening:
        with client_of(listening, timeout=3) as client, pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(model="robustrag-keyword", messages=ASKED, stream=stream)
        assert begun.is_set()
        assert cancelled.wait(10)


def test_a_failure_within_a_stream_is_an_error_and_not_an_end() -> None:
    async def breaks(prompt: str) -> AsyncIterator[str]:
        yield "Anna"
        yield " "
        yield "Lind"
        raise ValueError("broken")

    async def fails(prompt: str) -> str:  # the call that would make up for the stream
        raise ValueError("broken, too")

    model = CallableModel(async_fn=fails, async_stream_fn=breaks, attempts=1)
    with serving(service(model)) as listening, client_of(listening) as client:
        pieces = client.chat.completions.create(model="vanilla", messages=ASKED, stream=True)
        with pytest.raises(openai.APIError, match="no answer: the model failed"):
            list(pieces)


def test_documents_of_a_request_are_read_where_the_server_allows_it() -> None:
    planted = {"documents": [{"text": "The mill is run by Eve Crook.", "source": "evil.example"}]}
    extra = {"robustrag": planted}
    refused = pytest.raises(openai.PermissionDeniedError, match="allow-documents")
    with serving(service(says_anna)) as listening, client_of(listening) as client, refused:
        client.chat.completions.create(model="robustrag-keyword", messages=ASKED, extra_body=extra)
    allowing = service(says_anna, documents_allowed=True)
    with serving(allowing) as listening, client_of(listening) as client:
        done = client.chat.completions.create(
            model="robustrag-keyword", messages=ASKED, extra_body={"robustrag": planted}
        )
        alone = client.chat.completions.create(
            model="robustrag-keyword", messages=ASKED, extra_body={"robustrag": {**planted, "retrieve": False}}
        )
    sources = [p["origin"] for p in done.robustrag["passages"]]
    assert (len(sources), sources.index("evil.example")) == (len(TEXTS) + 1, 0)
    assert [p["origin"] for p in alone.robustrag["passages"]] == ["evil.example"]
