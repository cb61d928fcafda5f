"""Tools that an LLM's provider runs by itself, such as a web search: what they find passes nothing of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.llms import LLM

_FIELDS = ("built_in_tools", "built_in_tool")  # of LlamaIndex's LLMs
_ARGUMENTS = ("web_search_options", "built_in_tools", "tools")  # of their calls and `additional_kwargs`


def hosted_tools(llm: LLM, call: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of the tools that an LLM's provider runs.

    Args:
        llm: the LLM; its fields and `additional_kwargs` count.
        call: the arguments of a call.
    """
    found = [name for field in _FIELDS for name in _named(getattr(llm, field, None), field)]
    for holder in (getattr(llm, "additional_kwargs", None) or {}, call or {}):
        found += [name for field in _ARGUMENTS for name in _named(holder.get(field), field)]
    return list(dict.fromkeys(found))


def _named(value: Any, field: str) -> list[str]:
    if not value:
        return []
    if field == "tools":  # functions are the program's own
        tools = [tool for tool in value if isinstance(tool, Mapping)] if isinstance(value, (list, tuple)) else []
        return [str(tool["type"])[:60] for tool in tools if tool.get("type") not in (None, "function", "custom")]
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [str(tool["type"])[:60] if isinstance(tool, Mapping) and "type" in tool else field for tool in listed]
