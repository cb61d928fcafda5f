"""How the LLM is called: its own prompts and settings honoured, loops never blocked, failures kept in their group."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.prompts import PromptTemplate

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer
from llamaindex_robustrag.llm_calls import LLMModel
from llamaindex_robustrag.llm_traits import blocks_the_loop
from robustrag_integrations.prompts import Prompt
from tests.llamaindex.fakes import EVIL, QUESTION, AsyncFactReader, FactReader, nodes_of, truthful


def failing(llm: FactReader, words: str, times: int = 1_000_000) -> FactReader:
    llm.fails_on, llm.fail_times = words, times
    return llm


@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
def test_a_prompt_reaches_the_llm_as_predict_would_send_it(chat_model: bool) -> None:
    settings: dict[str, Any] = {
        "chat_model": chat_model,
        "system_prompt": "Be brief.",
        "query_wrapper_prompt": PromptTemplate("<<{query_str}>>"),
        "completion_to_prompt": lambda text: f"[[{text}]]",
    }
    expected, found = FactReader(**settings), FactReader(**settings)
    expected.predict(PromptTemplate("{text}"), text="What {query_str}?")
    LLMModel(found, CallOptions(), PromptHelper()).generate([Prompt("What {query_str}?")], "isolated")
    assert found.seen == expected.seen


@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
async def test_trap_call_settings_reach_the_model_which_predict_takes_for_template_variables(chat_model: bool) -> None:
    stock = FactReader(chat_model=chat_model)
    stock.predict(PromptTemplate("{text}"), text="a", temperature=0.0)
    assert "temperature" not in stock.kwargs[0]
    for llm in (FactReader(chat_model=chat_model), AsyncFactReader(chat_model=chat_model)):
        synthesizer = RobustRAGSynthesizer(llm=llm, calls=CallOptions(llm_kwargs={"temperature": 0.0}))
        synthesizer.synthesize(QUESTION, nodes_of(truthful(3)))
        await synthesizer.asynthesize(QUESTION, nodes_of(truthful(3)))
        assert [kwargs["temperature"] for kwargs in llm.kwargs] == [0.0] * 6


def test_custom_llms_are_known_to_block_and_others_not() -> None:
    assert blocks_the_loop(FactReader(), "acomplete")
    assert blocks_the_loop(FactReader(), "achat")
    assert not blocks_the_loop(AsyncFactReader(), "acomplete")
    assert not blocks_the_loop(AsyncFactReader(), "astream_chat")


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
async def test_trap_a_blocking_llm_is_called_in_threads(chat_model: bool, streaming: bool) -> None:
    llm = FactReader(chat_model=chat_model)
    response = await RobustRAGSynthesizer(llm=llm, streaming=streaming).asynthesize(QUESTION, nodes_of(truthful()))
    if streaming:
        assert [piece async for piece in response.async_response_gen()]
    assert threading.get_ident() not in llm.threads


async def test_an_llm_with_async_methods_of_its_own_is_awaited(llm: FactReader) -> None:
    awaited = AsyncFactReader()
    await RobustRAGSynthesizer(llm=awaited).asynthesize(QUESTION, nodes_of(truthful()))
    assert set(awaited.threads) == {threading.get_ident()}


async def test_trap_a_synchronous_query_works_inside_a_running_loop(llm: FactReader) -> None:
    loop = asyncio.get_running_loop()
    assert str(RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes_of(truthful()))) == "Paris"
    assert type(loop).__module__.startswith(("asyncio", "uvloop"))  # nobody has patched it


async def test_the_loop_goes_on_while_a_slow_blocking_llm_answers() -> None:
    llm, beats = FactReader(delay=0.05), []

    async def beat() -> None:
        while True:
            beats.append(len(llm.seen))
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    await RobustRAGSynthesizer(llm=llm).asynthesize(QUESTION, nodes_of(truthful()))
    heart.cancel()
    assert {0, 6} <= set(beats)  # it beat before the first call ended and while the last was under way


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("style", ["sync", "async"])
async def test_no_more_calls_are_under_way_than_num_workers(workers: int, style: str) -> None:
    llm = FactReader(delay=0.02)
    synthesizer = RobustRAGSynthesizer(llm=llm, calls=CallOptions(num_workers=workers))
    if style == "sync":
        synthesizer.synthesize(QUESTION, nodes_of(truthful(8)))
    else:
        await synthesizer.asynthesize(QUESTION, nodes_of(truthful(8)))
    assert 1 <= llm.most_at_once <= workers


@pytest.mark.parametrize("style", ["sync", "async"])
async def test_a_call_that_fails_once_is_tried_again(style: str) -> None:
    llm = failing(FactReader(), "number 0", times=1)
    synthesizer = RobustRAGSynthesizer(llm=llm, calls=CallOptions(attempts=2))
    nodes = nodes_of(truthful(4))
    response = (
        synthesizer.synthesize(QUESTION, nodes) if style == "sync" else await synthesizer.asynthesize(QUESTION, nodes)
    )
    assert [g["status"] for g in response.metadata["robustrag"]["groups"]] == ["supports"] * 4


def test_other_exceptions_are_tried_again_when_named(llm: FactReader) -> None:
    class Busy(Exception):
        pass

    class Flaky(FactReader):
        def _said(self, prompt: str) -> str:
            if "number 0" in prompt and sum("number 0" in p for p in self.seen) == 1:
                raise Busy("429")
            return super()._said(prompt)

    given_up = RobustRAGSynthesizer(llm=Flaky()).synthesize(QUESTION, nodes_of(truthful(4)))
    assert given_up.metadata["robustrag"]["groups"][0]["error"] == "Busy: 429"
    tried = RobustRAGSynthesizer(llm=Flaky(), calls=CallOptions(retry_on=(Busy,))).synthesize(
        QUESTION, nodes_of(truthful(4))
    )
    assert tried.metadata["robustrag"]["groups"][0]["status"] == "supports"


@pytest.mark.parametrize("style", ["sync", "async"])
async def test_a_call_without_an_answer_in_time_is_a_failed_group(style: str) -> None:
    over = threading.Event()

    class Stuck(FactReader):
        def _said(self, prompt: str) -> str:
            if "right answer" in prompt:
                over.wait(60)
            return super()._said(prompt)

    synthesizer = RobustRAGSynthesizer(llm=Stuck(), calls=CallOptions(timeout=2.0, attempts=1))
    nodes = nodes_of([EVIL, *truthful()])
    try:
        response = (
            synthesizer.synthesize(QUESTION, nodes)
            if style == "sync"
            else await synthesizer.asynthesize(QUESTION, nodes)
        )
    finally:
        over.set()
    assert response.metadata["robustrag"]["groups"][0]["error"].startswith("TimeoutError")
    assert str(response) == "Paris"


def raising(error: type[BaseException], base: type[FactReader] = FactReader) -> FactReader:
    class Raising(base):  # type: ignore[misc, valid-type]
        def _said(self, prompt: str) -> str:
            if "number 0" in prompt:
                raise error
            return super()._said(prompt)

    return Raising()


def test_an_interrupt_is_never_taken_for_a_failed_group() -> None:
    with pytest.raises(KeyboardInterrupt):
        RobustRAGSynthesizer(llm=raising(KeyboardInterrupt)).synthesize(QUESTION, nodes_of(truthful()))


@pytest.mark.parametrize("base", [FactReader, AsyncFactReader])
@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("error", [SystemExit, GeneratorExit])
async def test_a_model_that_exits_costs_its_group_alone(
    error: type[BaseException], style: str, base: type[FactReader]
) -> None:
    synthesizer = RobustRAGSynthesizer(llm=raising(error, base))
    nodes = nodes_of(truthful())
    response = (
        synthesizer.synthesize(QUESTION, nodes) if style == "sync" else await synthesizer.asynthesize(QUESTION, nodes)
    )
    first, *others = response.metadata["robustrag"]["groups"]
    assert (first["status"], first["error"]) == ("failed", f"ModelError: the model's function raised {error.__name__}")
    assert {group["status"] for group in others} == {"supports"}


async def test_cancelling_cancels_the_calls() -> None:
    started = asyncio.Event()

    class Endless(AsyncFactReader):
        async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self._seen.append("cancelled")
                raise

    llm = Endless()
    task = asyncio.create_task(RobustRAGSynthesizer(llm=llm).asynthesize(QUESTION, nodes_of(truthful(3))))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert llm.seen == ["cancelled"] * 3


@pytest.mark.parametrize("style", ["sync", "async"])
async def test_the_llms_rate_limiter_is_asked_for_every_request(style: str) -> None:
    limits = pytest.importorskip("llama_index.core.rate_limiter", reason="this llama-index-core has no rate limiters")

    class Counting(limits.BaseRateLimiter):
        asked = 0

        def acquire(self, num_tokens: int = 0) -> None:
            self.asked += 1

        async def async_acquire(self, num_tokens: int = 0) -> None:
            self.asked += 1

    limiter = Counting()
    llm = AsyncFactReader()
    object.__setattr__(llm, "rate_limiter", limiter)
    synthesizer = RobustRAGSynthesizer(llm=llm)
    if style == "sync":
        synthesizer.synthesize(QUESTION, nodes_of(truthful(4)))
    else:
        await synthesizer.asynthesize(QUESTION, nodes_of(truthful(4)))
    assert limiter.asked == 4


def test_trap_a_callback_manager_is_not_put_into_the_llm_that_others_share(llm: FactReader) -> None:
    own, manager = llm.callback_manager, CallbackManager([])
    synthesizer = RobustRAGSynthesizer(llm=llm, callback_manager=manager)
    assert synthesizer.callback_manager is manager
    synthesizer.callback_manager = CallbackManager([])
    assert llm.callback_manager is own


def test_without_an_llm_the_error_says_what_to_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: object, **kwargs: object) -> None:
        raise ImportError("`llama-index-llms-openai` package not found")

    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr("llama_index.core.settings.resolve_llm", missing)
    with pytest.raises(ValueError, match=r"pass llm=, or set Settings\.llm"):
        RobustRAGSynthesizer()


def test_the_global_llm_is_used_when_none_is_passed(llm: FactReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", llm)
    assert str(RobustRAGSynthesizer().synthesize(QUESTION, nodes_of(truthful()))) == "Paris"


def test_something_else_as_llm_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"llm must be a LlamaIndex LLM or a TextModel .*got 'gpt'; give an LLM, such as"
    ):
        RobustRAGSynthesizer(llm="gpt")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"aggregation": "average"}, ValueError, "aggregation='average' is unknown; use one of 'keyword', 'decoding'"),
        ({"gamma": 0.9}, TypeError, "unknown arguments gamma; keyword aggregation takes alpha, beta"),
        ({"alhpa": 0.9}, TypeError, "unknown arguments alhpa; did you mean alpha"),
        ({"alpha": 2}, ValueError, "alpha=2 must lie in"),
        ({"num_workers": 2}, TypeError, r"pass calls=CallOptions\(num_workers=...\)"),
        ({"calls": 3}, TypeError, r"calls must be CallOptions\(...\), got int"),
        ({"aggregation": "decoding"}, TypeError, "does not give; use a HuggingFaceLLM"),
        ({"choices": ["a", "b"]}, ValueError, "does not take choices; use MajorityVoting"),
        ({"streaming": "no"}, TypeError, "streaming='no' must be True or False"),
        ({"supporting_only": "no"}, TypeError, "supporting_only='no' must be True or False"),
        ({"citation_markers": "no"}, TypeError, "citation_markers='no' must be True or False"),
        ({"output_cls": dict}, TypeError, "output_cls must be a pydantic class, got <class 'dict'>"),
        ({"callback_manager": 3}, TypeError, "callback_manager must be a CallbackManager, got 3"),
    ],
)
def test_bad_arguments_are_named(
    llm: FactReader, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        RobustRAGSynthesizer(llm=llm, **{"aggregation": "keyword", **arguments}).synthesize(
            QUESTION, nodes_of(truthful())
        )


def test_a_sampling_llm_is_warned_of_on_every_answer_and_once_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Warm(FactReader):
        temperature: float = 0.7

    def warnings_of(**arguments: Any) -> list[str]:
        response = RobustRAGSynthesizer(llm=Warm(), **arguments).synthesize(QUESTION, nodes_of(truthful()))
        return response.metadata["robustrag"]["warnings"]

    with caplog.at_level(logging.WARNING, logger="llamaindex_robustrag"):
        assert any("the model samples (temperature 0.7; set temperature=0)" in w for w in warnings_of())
    assert [r.message for r in caplog.records if "temperature 0.7" in r.message]
    assert not any("samples" in w for w in warnings_of(calls=CallOptions(llm_kwargs={"temperature": 0.0})))
    assert not any("samples" in w for w in warnings_of(calls=CallOptions(accept_sampling=True)))


@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
def test_a_conversation_stands_in_front_of_every_prompt_and_is_named_in_the_report(chat_model: bool) -> None:
    llm = FactReader(chat_model=chat_model)
    history = [ChatMessage(role="user", content="Hello {text}"), ChatMessage(role="assistant", content="Hi")]
    synthesizer = RobustRAGSynthesizer(llm=llm).with_changes(conversation=history)
    response = synthesizer.synthesize(QUESTION, nodes_of(truthful(3)))
    assert all("Hello {text}" in prompt and prompt.index("Hi") < prompt.index(QUESTION) for prompt in llm.seen)
    assert "every prompt shows 1 earlier answer:" in response.metadata["robustrag"]["warnings"][0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"num_workers": 0}, "num_workers=0"),
        ({"num_workers": "x"}, "num_workers='x'"),
        ({"timeout": "x"}, "timeout='x'"),
        ({"attempts": 0}, "attempts=0"),
        ({"retry_on": [5]}, "retry_on="),
        ({"llm_kwargs": [1]}, r"llm_kwargs must be a mapping such as .*, got \[1\]"),
    ],
)
def test_call_options_that_make_no_sense_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        CallOptions(**given)
