"""LangGraph's node of tools, wherever this version of langchain keeps it."""

from __future__ import annotations

from typing import Any

ToolNode: Any
try:
    from langgraph.prebuilt import ToolNode
except ImportError:
    from langchain.tools.tool_node import _ToolNode as ToolNode

__all__ = ["ToolNode"]
