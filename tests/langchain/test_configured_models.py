"""Temperatures and models that are known only when the chain is called."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableConfig

from langchain_robustrag import create_robust_documents_chain
from tests.helpers.openai_server import LoopbackServer
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, Reader, read, truthful

GIVEN = {"input": QUESTION, "context": truthful(5)}
IN_ONE = ChatPromptTemplate.from_messages([("human", "Context: {context}\n{input}")])  # servers read the last message


async def report(chain: Any, config: Any = None) -> Any:
    return (await chain.ainvoke(GIVEN, config))["robustness"]


async def _model_of(chain: Any, config: Any = None) -> str:
    return (await report(chain, config)).determinism.model


async def test_temperatures_of_the_config_are_seen() -> None:
    field = ConfigurableField(id="heat")
    cold, warm = Reader(temperature=0), Reader(temperature=0.7)
    chain = create_robust_documents_chain(
        cold.configurable_fields(temperature=field), PROMPT, return_robustness=True, **FINAL
    )
    assert await _model_of(chain) != "samples"
    assert await _model_of(chain, {"configurable": {"heat": 0.9}}) == "samples"
    chain = create_robust_documents_chain(
        warm.configurable_fields(temperature=field), PROMPT, return_robustness=True, **FINAL
    )
    assert await _model_of(chain) == "samples"
    assert await _model_of(chain, {"configurable": {"heat": 0.0}}) != "samples"
    assert await _model_of(chain.with_config(configurable={"heat": 0.0})) != "samples"
    preset = warm.configurable_fields(temperature=field).with_config(configurable={"heat": 0.0})
    chain = create_robust_documents_chain(preset, PROMPT, return_robustness=True, **FINAL)
    assert await _model_of(chain) != "samples"


async def test_a_bound_temperature_counts_and_not_the_models_own() -> None:
    for own, bound, expected in ((0.7, 0, False), (0, 0.7, True), (None, 0, False)):
        llm = Reader(temperature=own).bind(temperature=bound)
        answer = await report(create_robust_documents_chain(llm, PROMPT, return_robustness=True, **FINAL))
        assert (answer.determinism.model == "samples") is expected


async def test_init_chat_model_with_the_model_in_the_config() -> None:
    pytest.importorskip("langchain_openai")
    chat_models = pytest.importorskip("langchain.chat_models")
    with LoopbackServer(read) as server:
        llm = chat_models.init_chat_model(temperature=0, base_url=server.url, api_key="none")
        chain = create_robust_documents_chain(llm, IN_ONE, return_robustness=True, **FINAL)
        config: RunnableConfig = {"configurable": {"model": "m", "model_provider": "openai"}}
        answer = await report(chain, config)
        assert "paris" in answer.text.casefold()
        assert answer.determinism.model != "samples"
        any_field = chat_models.init_chat_model(
            temperature=0, configurable_fields="any", base_url=server.url, api_key="none"
        )
        chain = create_robust_documents_chain(any_field, IN_ONE, return_robustness=True, **FINAL)
        warm: RunnableConfig = {"configurable": {"model": "m", "model_provider": "openai", "temperature": 0.8}}
        assert (await report(chain, warm)).determinism.model == "samples"
        assert {request["temperature"] for request in server.requests} == {0, 0.8}


def test_a_model_that_the_config_chooses_is_refused_with_a_tool_that_its_provider_runs() -> None:
    pytest.importorskip("langchain_openai")
    chat_models = pytest.importorskip("langchain.chat_models")
    llm = chat_models.init_chat_model(temperature=0, api_key="none").bind_tools([{"type": "web_search_preview"}])
    chain = create_robust_documents_chain(llm, PROMPT)
    with pytest.raises(ValueError, match="llm has a tool that its provider runs"):
        chain.invoke(GIVEN, {"configurable": {"model": "m", "model_provider": "openai"}})
