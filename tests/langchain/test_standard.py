"""LangChain's own standard suites, run on the retriever tool."""

from __future__ import annotations

import pytest
from langchain_core.tools import BaseTool

from langchain_robustrag import create_robust_retriever_tool
from tests.langchain.fakes import FINAL, QUESTION, ListRetriever, Reader, truthful

pytest.importorskip("langchain_tests", reason="needs langchain-tests")
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests


def make_tool() -> BaseTool:
    return create_robust_retriever_tool(
        ListRetriever(documents=truthful()), Reader(), "search", "Answers questions.", **FINAL
    )


class TestRobustToolUnit(ToolsUnitTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return make_tool()

    @property
    def tool_invoke_params_example(self) -> dict[str, str]:
        return {"query": QUESTION}


class TestRobustToolIntegration(ToolsIntegrationTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return make_tool()

    @property
    def tool_invoke_params_example(self) -> dict[str, str]:
        return {"query": QUESTION}


def test_the_agent_is_asked_for_a_query_alone() -> None:
    assert list(make_tool().args) == ["query"]
