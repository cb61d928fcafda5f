"""Finds what tools of a model's provider found in the model's messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from langchain_core.messages import AIMessage

_CALL = re.compile(r"(web_search|file_search|code_interpreter|mcp|image_generation)_call|(\w+)_tool_result")
_STANDARD = ("server_tool_use", "server_tool_call", "server_tool_result")


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
