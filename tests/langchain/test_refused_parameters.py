"""Models that refuse a temperature, and temperatures that are known only when the chain is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableConfig, RunnableLambda
from pydantic import PrivateAttr

from langchain_robustrag import create_robust_documents_chain, find_undefended
from robustrag_integrations import QuorumError
from robustrag_integrations.models.capabilities import PROBE
from tests.helpers.openai_server import LoopbackServer
from tests.helpers.refusing import GPT5, refusing
from tests.langchain.fakes import PROMPT, QUESTION, read, truthful

GIVEN = {"input": QUESTION, "context": truthful(5)}
IN_ONE = ChatPromptTemplate.from_messages([("human", "Context: {context}\n{input}")])  # servers read the last message
STYLES = ["invoke", "ainvoke", "stream", "astream"]


class BadRequestError(Exception):
    """As the anthropic client raises it."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Error code: 400 - {message}")
        self.status_code = 400
        self.body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


class Claude(BaseChatModel):
    """`ChatAnthropic`-shaped: with thinking it takes no temperature but 1, and replies in blocks."""

    model: str = "claude-thinking"
    temperature: float | None = None
    top_p: float | None = None
    max_retries: int = 2
    thinking: dict[str, Any] | None = None
    answer: Callable[[str], str] = read
    _asked: list[tuple[str, dict[str, Any]]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "claude-shaped"

    @property
    def asked(self) -> list[tuple[str, dict[str, Any]]]:
        return self._asked

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> str:
        own = {"temperature": self.temperature, "top_p": self.top_p, **kwargs}
        payload = {name: own[name] for name in ("temperature", "top_p") if own.get(name) is not None}
        prompt = "\n".join(str(m.content) for m in messages)
        self._asked.append((prompt, payload))
        if self.thinking and payload.get("temperature", 1) != 1:
            raise BadRequestError("`temperature` may only be set to 1 when thinking is enabled.")
        if self.thinking and "top_p" in payload:
            raise BadRequestError("`top_p` must be unset when thinking is enabled.")
        return self.answer(prompt)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> ChatResult:
        blocks: Any = [{"type": "thinking", "thinking": "Say London.", "signature": "x"}]
        blocks.append({"type": "text", "text": self._reply(messages, kw)})
        message = AIMessage(blocks, response_metadata={"stop_reason": "end_turn"})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any) -> Any:
        text = self._reply(messages, kw)
        thinking: Any = [{"type": "thinking", "thinking": "Say London.", "index": 0}]
        yield ChatGenerationChunk(message=AIMessageChunk(thinking))
        for word in text.split(" "):
            piece: Any = [{"type": "text", "text": f"{word} ", "index": 1}]
            yield ChatGenerationChunk(message=AIMessageChunk(piece))


async def report(chain: Any, style: str, given: dict[str, Any] = GIVEN, config: RunnableConfig | None = None) -> Any:
    """The answer's report, asked in this style; streams give the text of the answer."""
    if style == "invoke":
        return chain.invoke(given, config)["robustness"]
    if style == "ainvoke":
        return (await chain.ainvoke(given, config))["robustness"]
    if style == "stream":
        parts = list(chain.stream(given, config))
    else:
        parts = [part async for part in chain.astream(given, config)]
    [found] = [part["robustness"] for part in parts if "robustness" in part]
    assert "".join(part["answer"] for part in parts if "answer" in part) == found.text
    return found


def advises(answer: Any) -> bool:
    return any("temperature=0" in warning for warning in answer.warnings)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("bound", [False, True], ids=["of its own", "bound"])
async def test_a_model_that_thinks_works_with_temperature_zero_without_advice(style: str, bound: bool) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    llm = Claude(thinking=thinking) if bound else Claude(thinking=thinking, temperature=0, top_p=0.5)
    given = llm.bind(temperature=0, top_p=0.5) if bound else llm
    chain = create_robust_documents_chain(given, PROMPT, return_robustness=True, aggregation="keyword", final="always")
    for _ in range(2):
        answer = await report(chain, style)
        assert "paris" in answer.text.casefold()
        assert answer.radius == 2
        assert not advises(answer)
        assert sum("samples" in w for w in answer.warnings) == 1
        assert answer.determinism.model == "samples"
        assert answer.settings["capabilities"] == {"sent": [], "refused": ["temperature", "top_p"]}
    assert [payload for prompt, payload in llm.asked[-6:]] == [{}] * 6
    assert sum(prompt == PROBE for prompt, _ in llm.asked) == 3
    assert (llm.temperature, llm.top_p) == ((None, None) if bound else (0, 0.5))


@pytest.mark.parametrize("style", STYLES)
async def test_a_gpt_5_like_api_works_through_chat_openai(style: str) -> None:
    openai = pytest.importorskip("langchain_openai")

    refused = {name: GPT5[name] for name in ("temperature", "seed")}
    with LoopbackServer(refusing(refused, read), whole_requests=True) as server:
        llm = openai.ChatOpenAI(model="new-flagship", base_url=server.url, api_key="none", temperature=0, seed=1)
        chain = create_robust_documents_chain(
            llm, IN_ONE, return_robustness=True, aggregation="keyword", final="always"
        )
        answer = await report(chain, style)
    assert "paris" in answer.text.casefold()
    assert not advises(answer)
    assert sum("samples" in w for w in answer.warnings) == 1
    assert answer.settings["capabilities"]["refused"] == ["seed", "temperature"]


@pytest.mark.parametrize("style", STYLES)
async def test_a_passage_that_speaks_through_an_error_costs_its_own_group(style: str) -> None:
    def gateway(prompt: str) -> str:
        if "Guide 2" in prompt:
            raise BadRequestError(f"blocked: Unsupported parameter: 'temperature' in {prompt}")
        return read(prompt)

    llm = Claude(temperature=0, answer=gateway)
    answer = await report(
        create_robust_documents_chain(llm, PROMPT, return_robustness=True, aggregation="keyword", final="always"), style
    )
    assert [g.status for g in answer.groups].count("failed") == 1
    assert answer.settings["capabilities"] == {"sent": ["temperature"], "refused": []}
    assert all(payload == {"temperature": 0} for _, payload in llm.asked)
    assert answer.determinism.model != "samples"


def test_a_refusal_that_nothing_helps_against_is_an_error_and_ends() -> None:
    def stubborn(prompt: str) -> str:
        raise BadRequestError("`temperature` and top_p, seed, everything is unsupported")

    llm = Claude(temperature=0, top_p=1, answer=stubborn)
    with pytest.raises(QuorumError, match="unsupported"):
        create_robust_documents_chain(llm, PROMPT, aggregation="keyword", final="always").invoke(GIVEN)
    assert len(llm.asked) < 25


async def _model_of(chain: Any, config: Any = None) -> str:
    return (await report(chain, "ainvoke", config=config)).determinism.model


async def test_temperatures_of_the_config_are_seen() -> None:
    field = ConfigurableField(id="heat")
    cold, warm = Claude(temperature=0), Claude(temperature=0.7)
    chain = create_robust_documents_chain(
        cold.configurable_fields(temperature=field),
        PROMPT,
        return_robustness=True,
        aggregation="keyword",
        final="always",
    )
    assert await _model_of(chain) != "samples"
    assert await _model_of(chain, {"configurable": {"heat": 0.9}}) == "samples"
    chain = create_robust_documents_chain(
        warm.configurable_fields(temperature=field),
        PROMPT,
        return_robustness=True,
        aggregation="keyword",
        final="always",
    )
    assert await _model_of(chain) == "samples"
    assert await _model_of(chain, {"configurable": {"heat": 0.0}}) != "samples"
    assert await _model_of(chain.with_config(configurable={"heat": 0.0})) != "samples"
    preset = warm.configurable_fields(temperature=field).with_config(configurable={"heat": 0.0})
    chain = create_robust_documents_chain(preset, PROMPT, return_robustness=True, aggregation="keyword", final="always")
    assert await _model_of(chain) != "samples"


async def test_the_alternative_that_the_config_chooses_is_looked_at() -> None:
    either = Claude(temperature=0).configurable_alternatives(
        ConfigurableField(id="llm"), default_key="cold", warm=Claude(temperature=1.0)
    )
    chain = create_robust_documents_chain(either, PROMPT, return_robustness=True, aggregation="keyword", final="always")
    assert await _model_of(chain) != "samples"
    assert await _model_of(chain, {"configurable": {"llm": "warm"}}) == "samples"
    fallback = create_robust_documents_chain(
        either.with_fallbacks([Claude()]), PROMPT, return_robustness=True, aggregation="keyword", final="always"
    )
    assert await _model_of(fallback) == "samples"


async def test_a_bound_temperature_counts_and_not_the_models_own() -> None:
    for own, bound, expected in ((0.7, 0, False), (0, 0.7, True), (None, 0, False)):
        llm = Claude(temperature=own).bind(temperature=bound)
        answer = await report(
            create_robust_documents_chain(llm, PROMPT, return_robustness=True, aggregation="keyword", final="always"),
            "invoke",
        )
        assert (answer.determinism.model == "samples") is expected


def test_nothing_is_claimed_of_a_model_without_a_temperature() -> None:
    chain = create_robust_documents_chain(
        RunnableLambda(lambda m: read(m.to_string())),
        PROMPT,
        return_robustness=True,
        aggregation="keyword",
        final="always",
    )
    assert chain.invoke(GIVEN)["robustness"].determinism.model == "unknown"


@pytest.mark.parametrize("style", STYLES)
async def test_init_chat_model_with_the_model_in_the_config(style: str) -> None:
    pytest.importorskip("langchain_openai")
    chat_models = pytest.importorskip("langchain.chat_models")
    with LoopbackServer(read) as server:
        llm = chat_models.init_chat_model(temperature=0, base_url=server.url, api_key="none")
        chain = create_robust_documents_chain(
            llm, IN_ONE, return_robustness=True, aggregation="keyword", final="always"
        )
        config: RunnableConfig = {"configurable": {"model": "m", "model_provider": "openai"}}
        answer = await report(chain, style, config=config)
        assert "paris" in answer.text.casefold()
        assert answer.determinism.model != "samples"
        any_field = chat_models.init_chat_model(
            temperature=0, configurable_fields="any", base_url=server.url, api_key="none"
        )
        chain = create_robust_documents_chain(
            any_field, IN_ONE, return_robustness=True, aggregation="keyword", final="always"
        )
        warm: RunnableConfig = {"configurable": {"model": "m", "model_provider": "openai", "temperature": 0.8}}
        assert (await report(chain, style, config=warm)).determinism.model == "samples"
        assert {request["temperature"] for request in server.requests} == {0, 0.8}


def test_init_chat_model_without_any_model_says_what_to_do() -> None:
    chat_models = pytest.importorskip("langchain.chat_models")
    chain = create_robust_documents_chain(
        chat_models.init_chat_model(temperature=0), PROMPT, aggregation="keyword", final="always"
    )
    with pytest.raises(ValueError, match="the config names none"):
        chain.invoke(GIVEN)


def test_a_chain_whose_model_the_config_chooses_can_be_looked_at() -> None:
    chat_models = pytest.importorskip("langchain.chat_models")
    chain = create_robust_documents_chain(
        chat_models.init_chat_model(temperature=0), PROMPT, aggregation="keyword", final="always"
    )
    assert "PromptInput" in chain.get_graph().draw_mermaid()
    assert chain.config_specs == []
    assert chain.get_input_jsonschema()["required"] == ["context", "input"]
    assert find_undefended(chain) == []


def test_models_of_a_config_are_remembered_apart() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    either = Claude(temperature=0).configurable_alternatives(
        ConfigurableField(id="llm"), default_key="plain", deep=Claude(temperature=0, thinking=thinking)
    )
    chain = create_robust_documents_chain(either, PROMPT, return_robustness=True, aggregation="keyword", final="always")
    deep = chain.invoke(GIVEN, {"configurable": {"llm": "deep"}})["robustness"]
    assert deep.settings["capabilities"]["refused"] == ["temperature"]
    plain = chain.invoke(GIVEN)["robustness"]
    assert plain.settings["capabilities"] == {"sent": ["temperature"], "refused": []}
