"""Finds tools that the model's provider runs: what they retrieve reaches the model and nothing of this package."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from langchain_core.messages import AIMessage

from robustrag_integrations.audit.findings import Finding

SEARCHING = ("web_search_options", "search_parameters")  # settings that switch a hosted search on
_SCHEMAS = ("function", "input_schema", "parameters", "toolSpec", "function_declarations")  # of what the program runs
_CALL = re.compile(r"(web_search|file_search|code_interpreter|mcp|image_generation)_call|(\w+)_tool_result")
_STANDARD = ("server_tool_use", "server_tool_call", "server_tool_result")
_FIX = "give it a retrieving tool of your own in its place"


def hosted_tools(tools: object, trusted: Collection[str] = ()) -> list[str]:
    """Return the names of tools, in any provider's format, that are not known to be run by the program.

    Args:
        tools: the tools that a model is offered; nothing in what is no list.
        trusted: names that are left out.
    """
    if not isinstance(tools, Iterable) or isinstance(tools, (str, Mapping)):
        return []
    dicts = [tool for tool in tools if isinstance(tool, Mapping) and not any(tool.get(key) for key in _SCHEMAS)]
    names = [(str(tool.get("type") or ""), str(tool.get("name") or ""), *map(str, tool)) for tool in dicts]
    return [next(filter(None, known), "?") for known in names if not set(known[:2]) & set(trusted)]


def hosted_results(message: object, trusted: Collection[str] = ()) -> list[str]:
    """Return the hosted tools that ran while a model made its message.

    Args:
        message: the model's.
        trusted: tools that are left out, as they were offered.
    """
    if not isinstance(message, AIMessage):
        return []
    blocks = [b for b in message.content if isinstance(b, Mapping)] if isinstance(message.content, list) else []
    ran = [name for block in blocks if (name := _tool_of(block)) is not None]
    named = [name for name in ran if name not in _STANDARD] or ran
    named += ["grounding_metadata"] if message.response_metadata.get("grounding_metadata") else []
    # "web_search_20250305" is the tool, "web_search" its name in the blocks.
    return [n for n in dict.fromkeys(named) if not any(t == n or t.startswith(f"{n}_") for t in trusted)]


def _tool_of(block: Mapping[str, object]) -> str | None:
    """Return the hosted tool that a block is of, or the block's type where it names none; None for other blocks."""
    kind = str(block.get("type"))
    if (found := _CALL.fullmatch(kind)) is None and kind not in _STANDARD:
        return None
    return str(block.get("name") or "") or (kind if found is None or kind in _STANDARD else found[1] or found[2])


def hosted_tool(names: Collection[str], path: str, component: str) -> Finding:
    """Return the finding of a model that is offered tools which its provider runs."""
    problem = f"its provider runs {', '.join(names)}: what that finds reaches the model beside all isolation"
    return Finding("hosted-tool", path, component, problem, _FIX)


def hosted_result(names: Collection[str], path: str, component: str) -> Finding:
    """Return the finding of a model's message that was made from what a tool of its provider found."""
    problem = f"its provider ran {', '.join(names)}, and the model read what that found beside all isolation"
    return Finding("hosted-result", path, component, problem, _FIX)
