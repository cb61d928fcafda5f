"""LLMs whose model refuses a temperature, and what else their integrations send unasked."""

from __future__ import annotations

from typing import Any

import pytest

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer
from robustrag_integrations import QuorumError
from robustrag_integrations.models.capabilities import PROBE
from tests.helpers.openai_server import LoopbackServer, Reply
from tests.helpers.refusing import GPT5, refusing
from tests.llamaindex.fakes import QUESTION, AsyncFactReader, Capital, FactReader, nodes_of, truthful

STYLES = ["query", "aquery", "stream", "astream"]


async def report(synthesizer: RobustRAGSynthesizer, style: str, texts: list[str] | None = None) -> dict[str, Any]:
    """The answer's report, asked in this style; streams give the text of the answer."""
    chosen = synthesizer.with_changes(streaming="stream" in style)
    nodes = nodes_of(truthful(5) if texts is None else texts)
    response: Any
    if style.startswith("a"):
        response = await chosen.asynthesize(QUESTION, nodes)
        pieces = [p async for p in response.async_response_gen()] if style == "astream" else [str(response)]
    else:
        response = chosen.synthesize(QUESTION, nodes)
        pieces = list(response.response_gen) if style == "stream" else [str(response)]
    assert "".join(pieces) == response.metadata["robustrag"]["text"]
    found: dict[str, Any] = response.metadata["robustrag"]
    return found


def advises(answer: dict[str, Any]) -> bool:
    return any("temperature=0" in warning for warning in answer["warnings"])


class BadRequestError(Exception):
    """As the anthropic client raises it."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Error code: 400 - {message}")
        self.status_code = 400
        self.body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


class Thinker(AsyncFactReader):
    """An LLM with fields of its own for what it sends, that refuses a temperature."""

    temperature: float | None = 0.1
    top_p: float | None = None

    def answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        own = {"temperature": self.temperature, "top_p": self.top_p, **kwargs}
        sent = {name: value for name, value in own.items() if value is not None}
        said = super().answer(prompt, sent)
        if sent.get("temperature", 1) != 1:
            raise BadRequestError("`temperature` may only be set to 1 when thinking is enabled.")
        return said


class BlockingThinker(Thinker):
    """The same with synchronous calls alone."""

    acomplete = FactReader.acomplete
    achat = FactReader.achat
    astream_complete = FactReader.astream_complete
    astream_chat = FactReader.astream_chat


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
@pytest.mark.parametrize("kind", [Thinker, BlockingThinker])
@pytest.mark.parametrize("asked", ["field", "argument"])
async def test_a_model_that_thinks_works_without_a_warning_that_cannot_be_followed(
    style: str, chat_model: bool, kind: type[Thinker], asked: str
) -> None:
    llm = kind(chat_model=chat_model, temperature=0.0 if asked == "field" else None)
    kwargs = {} if asked == "field" else {"temperature": 0.0}
    synthesizer = RobustRAGSynthesizer(
        llm=llm, calls=CallOptions(llm_kwargs=kwargs), aggregation="keyword", final="always"
    )
    for _ in range(2):
        answer = await report(synthesizer, style)
        assert answer["text"] == "Paris"
        assert answer["radius"] == 2
        assert not advises(answer)
        assert sum("samples" in w for w in answer["warnings"]) == 1
        assert answer["settings"]["capabilities"] == {"sent": [], "refused": ["temperature"]}
        assert answer["determinism"]["model"] == "samples"
    assert sum(PROBE in prompt for prompt in llm.seen) == 2
    assert all("temperature" not in kwargs for kwargs in llm.kwargs[-6:])


@pytest.mark.parametrize("style", STYLES)
async def test_a_gpt_5_like_api_works_through_open_ai_like(style: str) -> None:
    llms = pytest.importorskip("llama_index.llms.openai_like")
    with LoopbackServer(refusing(GPT5, _reader), whole_requests=True) as server:
        llm = llms.OpenAILike(
            model="new-flagship", api_base=server.url, api_key="none", is_chat_model=True, context_window=4000,
            max_tokens=60, additional_kwargs={"seed": 3},
        )  # fmt: skip
        synthesizer = RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always")
        assert (await report(synthesizer, style))["text"] == "Paris"
        answer = await report(synthesizer, style)
        assert answer["text"] == "Paris"
        assert not advises(answer)
        assert sum("samples" in w for w in answer["warnings"]) == 1
        assert answer["settings"]["capabilities"]["refused"] == ["max_tokens", "seed", "temperature"]
        assert answer["settings"]["capabilities"]["sent"] == ["max_completion_tokens"]
        assert all(request.get("max_completion_tokens") == 60 for request in server.requests[-6:])
        assert llm.temperature == 0.1


def _reader(prompt: str) -> str:
    return FactReader()._said(prompt)


@pytest.mark.parametrize("style", STYLES)
async def test_a_system_prompt_that_is_refused_goes_in_front_of_the_prompt(style: str) -> None:
    llms = pytest.importorskip("llama_index.llms.openai_like")

    def gemma(request: dict[str, Any]) -> str | Reply:
        if request["messages"][0]["role"] == "system":
            return Reply("System role not supported", status=400)
        assert request["messages"][0]["content"].startswith("Be brief.\n\n")
        return _reader(request["messages"][-1]["content"])

    with LoopbackServer(gemma, whole_requests=True) as server:
        llm = llms.OpenAILike(
            model="gemma", api_base=server.url, api_key="none", is_chat_model=True, context_window=4000,
            temperature=0.0, system_prompt="Be brief.",
        )  # fmt: skip
        answer = await report(RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always"), style)
    assert answer["text"] == "Paris"
    assert answer["settings"]["capabilities"] == {"sent": ["temperature"], "refused": ["system"]}


async def test_a_passage_that_speaks_through_an_error_costs_its_own_group() -> None:
    class Gateway(AsyncFactReader):
        temperature: float = 0.0

        def answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
            said = super().answer(prompt, kwargs)
            if "number 2" in prompt:
                raise BadRequestError(f"Unsupported parameter: 'temperature' {prompt}")
            return said

    answer = await report(RobustRAGSynthesizer(llm=Gateway(), aggregation="keyword", final="always"), "aquery")
    assert [g["status"] for g in answer["groups"]].count("failed") == 1
    assert answer["settings"]["capabilities"] == {"sent": ["temperature"], "refused": []}


def test_a_structured_final_answer_leaves_out_what_is_refused_too() -> None:
    llm = BlockingThinker(temperature=0.0)
    response: Any = RobustRAGSynthesizer(llm=llm, output_cls=Capital, aggregation="keyword", final="always").synthesize(
        QUESTION, nodes_of(truthful(5))
    )
    assert response.response.name == "Paris"


def test_a_model_that_refuses_everything_is_an_error_and_ends() -> None:
    class Stubborn(Thinker):
        def answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
            super(Thinker, self).answer(prompt, kwargs)
            raise BadRequestError("`temperature`, top_p and everything else is unsupported")

    llm = Stubborn(temperature=0.0)
    with pytest.raises(QuorumError, match="unsupported"):
        RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always").synthesize(QUESTION, nodes_of(truthful(5)))
    assert len(llm.seen) < 20


@pytest.mark.parametrize(
    ("temperature", "model", "advice"), [(0.0, "unknown", False), (0.7, "samples", True), (1.0, "samples", False),
                                         (None, "samples", False)]
)  # fmt: skip
async def test_what_is_known_of_a_temperature(temperature: float | None, model: str, advice: bool) -> None:
    class Warm(AsyncFactReader):
        temperature: float | None = None

    answer = await report(
        RobustRAGSynthesizer(llm=Warm(temperature=temperature), aggregation="keyword", final="always"), "aquery"
    )
    assert answer["determinism"]["model"] == model
    assert advises(answer) is advice


class TooMany(Exception):
    """A 429."""

    def __init__(self) -> None:
        super().__init__("Error code: 429")
        self.status_code = 429


class Rationed(AsyncFactReader):
    """Refuses each prompt once."""

    def answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        first = prompt not in self.seen
        said = super().answer(prompt, kwargs)
        if first:
            raise TooMany
        return said


class PatientRationed(Rationed):
    """One whose client tries again by itself."""

    max_retries: int = 3


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
async def test_a_429_is_tried_again(style: str, chat_model: bool) -> None:
    llm = Rationed(chat_model=chat_model)
    answer = await report(RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always"), style)
    assert answer["text"] == "Paris"
    assert [g["status"] for g in answer["groups"]] == ["supports"] * 5
    assert len(llm.seen) == 12


async def test_the_tries_of_a_client_are_not_multiplied_and_a_group_that_gave_up_says_so() -> None:
    llm = PatientRationed()
    with pytest.raises(QuorumError, match="429"):
        await report(RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always"), "aquery")
    assert len(llm.seen) == 5
    with pytest.raises(QuorumError) as caught:
        await report(
            RobustRAGSynthesizer(llm=Stuck(), calls=CallOptions(attempts=2), aggregation="keyword", final="always"),
            "aquery",
        )
    assert caught.value.causes[0] == "gave up after 2 tries: TooMany: Error code: 429"


class Stuck(AsyncFactReader):
    """Refuses everything."""

    def answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        raise TooMany
