"""Tools that a model's provider runs are told from the program's own, in the formats of all providers."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations.audit.hosted import hosted_in

OWN: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "add", "parameters": {}}},
    {"type": "function", "name": "add", "parameters": {}, "strict": True},
    {"name": "add", "description": "adds", "input_schema": {}, "cache_control": {"type": "ephemeral"}},
    {"type": "custom", "name": "add", "input_schema": {"type": "object"}},
    {"toolSpec": {"name": "add"}},
    {"function_declarations": [{"name": "add"}]},
]


@pytest.mark.parametrize("tool", OWN, ids=str)
def test_tools_of_the_program_are_none(tool: dict[str, Any]) -> None:
    assert hosted_in({"tools": [tool, object()]}) == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"web_search_options": {}}, "web_search_options"),
        ({"search_parameters": {"mode": "on"}}, "search_parameters"),
        ({"extra_body": {"web_search_options": {}}}, "web_search_options"),
        ({"model_kwargs": {"extra_body": {"tools": [{"type": "web_search"}]}}}, "web_search"),
        ({"tools": [{"google_search": {}}]}, "google_search"),
        ({"tools": [{"functionDeclarations": [{"name": "add"}], "url_context": {}}]}, "url_context"),
        ({"tools": [{"type": "web_search", "parameters": {}}]}, "web_search"),
        ({"tools": {"type": "file_search"}}, "file_search"),
        ({"built_in_tools": [{"type": "web_search_preview"}]}, "web_search_preview"),
        ({"built_in_tool": ("an object of the client",)}, "built_in_tool"),
    ],
    ids=str,
)
def test_a_hosted_tool_is_named(arguments: dict[str, Any], name: str) -> None:
    assert hosted_in(arguments) == [name]


def test_what_is_off_or_trusted_is_none() -> None:
    off = {"web_search_options": None, "enable_search": False, "tools": None, "extra_body": None}
    assert hosted_in(off) == []
    assert hosted_in({"tools": [{"type": "web_search"}]}, {"web_search"}) == []
